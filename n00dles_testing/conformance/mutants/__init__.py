"""Broken stores: at least one for each clause, realistic and small, that its own clause catches and no other does.

They are the suite's own test: a check that passes its mutant checks nothing. Each names in `breaks` the clause that it
breaks, and is a correct store but for that. One that cannot break its clause alone says in `also_breaks` which other
clauses see it.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass

__all__ = ["Mutant", "all_mutants", "correct_stores"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A broken store: the target by which the suite opens it, the clause it breaks, and clauses that see it as well."""

    target: str
    breaks: str
    also_breaks: tuple[str, ...] = ()


def all_mutants() -> tuple[Mutant, ...]:
    """Return every broken store of this folder, in the order of the clauses."""
    found = []
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for name in module.__all__:
            breaks = getattr(getattr(module, name), "breaks", None)
            if breaks is not None:
                also = getattr(getattr(module, name), "also_breaks", ())
                found.append(Mutant(f"{module.__name__}:{name}", breaks, also))
    return tuple(found)


def correct_stores() -> tuple[str, ...]:
    """Return the targets of the correct stores that the mutants are made from."""
    return tuple(f"{__name__}.correct:{name}" for name in ("JSONFiles", "AppendOnlyLog", "FilesWithRevisions"))
