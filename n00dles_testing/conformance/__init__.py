"""The conformance suite: does a state store keep the contract?

`check_store(target)` runs every clause that has a check on one store, and says what was found and what nobody tried. A
clause is a registered function; see `registry.clause`, and the folder `clauses`, one file each. The broken stores that
the checks must catch are in `mutants`.
"""

from __future__ import annotations

from .capabilities import CAPABILITIES, Capability, Outcome
from .check import check_store
from .claims import Claims
from .gaps import Gap, GapState
from .progress import Progress
from .registry import Clause, clause, implemented, select
from .report import Grade, ReaderReport, StoreReport, grade

__all__ = [
    "CAPABILITIES",
    "Capability",
    "Claims",
    "Clause",
    "Gap",
    "GapState",
    "Grade",
    "Outcome",
    "Progress",
    "ReaderReport",
    "StoreReport",
    "check_store",
    "clause",
    "grade",
    "implemented",
    "select",
]
