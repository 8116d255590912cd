"""LMDB: a memory-mapped key-value store with transactions.

Used as the documentation of its Python binding recommends (https://lmdb.readthedocs.io/en/release/): one environment a
process and path, opened once, with the default `sync=True`; each call is a transaction of its own. A map is given room
in advance. A key has room for 511 bytes, so it is the SHA-256 of the run's id. An environment must not be used after a
fork, so the adapter opens another one there. It adds the comparison of revisions inside a transaction.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, cast

from .records import Record, TransactionalStore

PACKAGES = ("lmdb",)
SERVER = None
GAPS = {
    "S07": "LMDB leaves the bytes of what is deleted in free pages",
    "S10": "LMDB keeps no checksums",
    "C04": "where its meta page could not be written, it refuses all until it is opened again, as it says of MDB_PANIC",
}
_ROOM = 1 << 30


class LMDBStore(TransactionalStore):
    """A run is a value of JSON text."""

    _environments: ClassVar[dict[tuple[int, str], list[Any]]] = {}
    """The open environment and how many stores use it, by process and path."""
    _opening: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: str) -> None:
        self._path = path
        self._local = threading.local()
        self._owner = os.getpid()
        self._environment(+1)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._environment(0).begin(write=True) as transaction:
            self._local.transaction = transaction
            yield

    def read(self, run_id: str) -> Record | None:
        text = self._local.transaction.get(_key(run_id))
        return None if text is None else cast(Record, json.loads(text))

    def write(self, run_id: str, record: Record) -> None:
        self._local.transaction.put(_key(run_id), json.dumps(record).encode())

    def remove(self, run_id: str) -> None:
        self._local.transaction.delete(_key(run_id))

    def close(self) -> None:
        if self._owner == os.getpid():
            self._environment(-1)

    def _environment(self, change: int) -> Any:
        import lmdb

        key = (os.getpid(), self._path)
        with self._opening:
            if key not in self._environments:
                self._environments[key] = [lmdb.open(self._path, map_size=_ROOM), 0]
            entry = self._environments[key]
            entry[1] += change
            if change < 0 and entry[1] == 0:
                del self._environments[key]
                entry[0].close()
            return entry[0]


def _key(run_id: str) -> bytes:
    return hashlib.sha256(run_id.encode()).digest()


def open_store(location: str) -> LMDBStore:
    """Open the environment in a folder of the location."""
    return LMDBStore(f"{location}/runs.lmdb")
