"""The contract of an executor, E01 to E18: one file a clause, with its check, its occasions and its documentation.

A check looks at what truly happened (the ledger) and at what the store held between the lives, and compares with an
undisturbed run of the same pipeline. It reports nothing that a correct executor could do, however different from that
of n00dles it is built. `occasions` counts how often a scenario could have broken the clause: none is no pass.
"""

from __future__ import annotations

import importlib
import pkgutil
import re

from ..case import Clause

__all__ = ["CLAUSES", "JUDGED", "related"]

_FILES = sorted(found.name for found in pkgutil.iter_modules(__path__) if re.match(r"e[0-9]{2}_", found.name))

CLAUSES: tuple[Clause, ...] = tuple(importlib.import_module(f"{__name__}.{name}").CLAUSE for name in _FILES)
"""All clauses. Those without a `check` cannot be told from one scenario; the campaign tries them in its own way."""

JUDGED: tuple[Clause, ...] = tuple(clause for clause in CLAUSES if clause.check is not None)
"""The clauses that any scenario can be held against."""


def related(one: str, other: str) -> bool:
    """Whether two clauses are the same, or one is a special case of the other: a fault may then break both."""
    known = {clause.id: clause for clause in CLAUSES}
    return one == other or one in known[other].sharpens or other in known[one].sharpens
