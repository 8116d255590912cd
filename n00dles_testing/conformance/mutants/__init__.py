"""Broken stores: at least one for each clause, realistic and small, that its own clause catches and no other does.

They are the suite's own test: a check that passes its mutant checks nothing. Each names in `breaks` the clause that it
breaks, and is a correct store but for that. One that cannot break its clause alone says in `also_breaks` which other
clauses see it.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Mutant", "all_mutants", "correct_stores", "left_out"]

_SEES_ALL = ("S17",)
"""Clauses that do what every other one does, and so may see what any of them sees."""

_SEEN_BY_POWER_LOSS = ("P01", "P02", "P03")
"""Clauses that may see what those about kills and faults see: who does not survive a kill survives no power loss."""

_SEEN_BY_MANY_WORKERS = ("W01", "W02", "W03", "W04", "W08")
"""Clauses that may see what those about one worker see: they do all of that, in several processes at once."""

_CORRECT = {
    "correct:JSONFiles": None,
    "correct:AppendOnlyLog": None,
    "correct:FilesWithRevisions": None,
    "correct_sqlite:SQLiteRollback": None,
    "correct_lmdb:LMDBRuns": "lmdb",
}
"""The correct stores of this folder, and the package that each needs."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A broken store: the target by which the suite opens it, the clause it breaks, and clauses that see it as well.

    `server` is what has to be started for it, as in `check_store`.
    """

    target: str
    breaks: str
    also_breaks: tuple[str, ...] = ()
    server: str | None = None

    @property
    def caught_by(self) -> tuple[str, ...]:
        """The clauses that must catch it."""
        return (self.breaks, *self.also_breaks)

    def let_pass_by(self, clauses: Iterable[str]) -> tuple[str, ...]:
        """Return those of the clauses that must let it pass."""
        sees_as_well = (
            *_SEES_ALL,
            *(_SEEN_BY_POWER_LOSS if self.breaks.startswith("C") else ()),
            *(_SEEN_BY_MANY_WORKERS if self.breaks.startswith(("S", "C")) else ()),
        )
        return tuple(each for each in clauses if each not in self.caught_by and each not in sees_as_well)


def all_mutants() -> tuple[Mutant, ...]:
    """Return every broken store of this folder, in the order of the clauses."""
    found = []
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for name in module.__all__:
            store = getattr(module, name)
            if getattr(store, "breaks", None) is not None:
                also, server = getattr(store, "also_breaks", ()), getattr(store, "server", None)
                found.append(Mutant(f"{module.__name__}:{name}", store.breaks, also, server))
    return tuple(found)


def correct_stores() -> tuple[str, ...]:
    """Return the targets of the correct stores, of as different a make as can be, that can be opened here."""
    missing = left_out()
    return tuple(target for name in _CORRECT if (target := f"{__name__}.{name}") not in missing)


def left_out() -> dict[str, str]:
    """Return the correct stores that cannot be opened here, each with the reason."""
    return {
        f"{__name__}.{name}": f"{package} is not installed; `pip install {package}` has this store checked as well"
        for name, package in _CORRECT.items()
        if package is not None and importlib.util.find_spec(package) is None
    }
