"""ZODB: an object database, in one file.

Used as its documentation recommends (https://zodb.org/en/latest/guide/transactions-and-threading.html): a
`FileStorage`, a tree for many objects, and `with db.transaction() as connection` for each unit of work. One process has
the file open. The adapter adds the comparison of revisions, and holds a lock of the process during a transaction: of
two at once, also of different runs, ZODB lets the later one fail with a conflict, to be tried again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from .records import Record, TransactionalStore

PACKAGES = ("zodb",)
SERVER = None
_ONE_PROCESS = "its documentation says that one process has a FileStorage open, and that others need a ZEO server"
GAPS = dict.fromkeys(("S13", "S16", "W01", "W02", "W03", "W04"), _ONE_PROCESS) | {
    "S07": "a FileStorage keeps what is deleted until it is packed, as its documentation says",
    "S10": "it does not promise to find a changed byte",
    "C05": "where the end of a commit fails it closes its file, as its source says, and has to be opened again",
    "P03": "no page of it speaks of a failed sync, after which it closes its file, which may be opened again",
}


class ObjectStore(TransactionalStore):
    """A run is a value of a tree."""

    def __init__(self, path: str) -> None:
        import ZODB
        from BTrees.OOBTree import BTree

        self._database: Any = ZODB.DB(path)
        self._lock = threading.Lock()
        self._runs: Any = None
        with self._database.transaction() as connection:
            if "runs" not in connection.root():
                connection.root()["runs"] = BTree()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._lock, self._database.transaction() as connection:
            self._runs = connection.root()["runs"]
            yield

    def read(self, run_id: str) -> Record | None:
        return cast("Record | None", self._runs.get(run_id))

    def write(self, run_id: str, record: Record) -> None:
        self._runs[run_id] = record

    def remove(self, run_id: str) -> None:
        self._runs.pop(run_id, None)

    def close(self) -> None:
        self._database.close()


def open_store(location: str) -> ObjectStore:
    """Open the database in a file of the location."""
    return ObjectStore(f"{location}/runs.fs")
