"""diskcache: a mapping on disk, in SQLite and, for large values, files.

Used as its tutorial recommends for data that is to be kept (https://grantjenks.com/docs/diskcache/tutorial.html#index):
an `Index`, which evicts nothing, with the default settings; `transact()` makes several calls one step, also among
processes. The adapter adds the comparison of revisions inside such a transaction.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, cast

from .records import Record, TransactionalStore

PACKAGES = ("diskcache",)
SERVER = None
GAPS = {
    "S06": "no id leads outside; it closes only the connection of the calling thread, and those of an earlier location "
    "touch their files when they are collected",
    "S07": "what is deleted stays in SQLite's log until a checkpoint, and neither promises otherwise",
    "S10": "neither diskcache nor SQLite promises to find a changed byte",
    "P02": "its documented default is synchronous=NORMAL, with which SQLite may lose the last commits in a power loss",
}


class IndexStore(TransactionalStore):
    """A run is an item of the index."""

    def __init__(self, folder: str) -> None:
        from diskcache import Index

        self._runs: Any = Index(folder)

    def transaction(self) -> AbstractContextManager[Any]:
        return cast("AbstractContextManager[Any]", self._runs.transact())

    def read(self, run_id: str) -> Record | None:
        return cast("Record | None", self._runs.get(run_id))

    def write(self, run_id: str, record: Record) -> None:
        self._runs[run_id] = record

    def remove(self, run_id: str) -> None:
        self._runs.pop(run_id, None)

    def close(self) -> None:
        self._runs.cache.close()


def open_store(location: str) -> IndexStore:
    """Open the index in the location."""
    return IndexStore(f"{location}/index")
