"""State stores: where runs are kept."""

from __future__ import annotations

from .adapt import as_context, as_store
from .base import Closable, ListsRuns, Loads, MadeAtFirstUse, Prunes, RunSummary, StateStore, TellsTime
from .claims import Claim, Claims
from .leases import Lease, Leases, ListsLeases
from .memory import InMemoryStateStore
from .sqlite import SQLiteStateStore
from .urls import open_store

__all__ = [
    "Claim",
    "Claims",
    "Closable",
    "InMemoryStateStore",
    "Lease",
    "Leases",
    "ListsLeases",
    "ListsRuns",
    "Loads",
    "MadeAtFirstUse",
    "Prunes",
    "RunSummary",
    "SQLiteStateStore",
    "StateStore",
    "TellsTime",
    "as_context",
    "as_store",
    "open_store",
]
