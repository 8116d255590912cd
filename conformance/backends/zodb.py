"""ZODB: an object database, in one file.

Used as its documentation recommends (https://zodb.org/en/latest/guide/transactions-and-threading.html): a
`FileStorage`, a tree for many objects, and `with db.transaction() as connection` for each unit of work. One process has
the file open. The adapter adds the comparison of revisions; of two transactions at once ZODB lets the later one fail
with a conflict.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from n00dles import StaleContextError

from .records import Record, TransactionalStore

PACKAGES = ("zodb",)
SERVER = None
_ONE_PROCESS = "its documentation says that one process has a FileStorage open, and that others need a ZEO server"
GAPS = dict.fromkeys(("S13", "S16", "W01", "W02", "W03", "W04"), _ONE_PROCESS) | {
    "S07": "a FileStorage keeps what is deleted until it is packed, as its documentation says",
    "S10": "it does not promise to find a changed byte",
}


class ObjectStore(TransactionalStore):
    """A run is a value of a tree."""

    def __init__(self, path: str) -> None:
        import ZODB
        from BTrees.OOBTree import BTree

        self._database: Any = ZODB.DB(path)
        self._local = threading.local()
        with self._database.transaction() as connection:
            if "runs" not in connection.root():
                connection.root()["runs"] = BTree()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        from ZODB.POSException import ConflictError

        try:
            with self._database.transaction() as connection:
                self._local.runs = connection.root()["runs"]
                yield
        except ConflictError as error:
            raise StaleContextError(f"another has written at the same moment: {error}. Load the run again.") from error

    def read(self, run_id: str) -> Record | None:
        return cast("Record | None", self._local.runs.get(run_id))

    def write(self, run_id: str, record: Record) -> None:
        self._local.runs[run_id] = record

    def remove(self, run_id: str) -> None:
        self._local.runs.pop(run_id, None)

    def close(self) -> None:
        self._database.close()


def open_store(location: str) -> ObjectStore:
    """Open the database in a file of the location."""
    return ObjectStore(f"{location}/runs.fs")
