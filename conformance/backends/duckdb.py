"""DuckDB: a database in one file, for analyses.

Used as its documentation recommends (https://duckdb.org/docs/stable/connect/concurrency and
https://duckdb.org/docs/stable/clients/python/dbapi): one connection to the file, a `cursor()` of it for each thread,
and `begin` and `commit` around what belongs together. One process at a time may write. The adapter adds the comparison
of revisions inside a transaction, and holds a lock of the process during one, since DuckDB lets the later of two
writers fail.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from .records import Record, TransactionalStore

PACKAGES = ("duckdb",)
SERVER = None
_ONE_PROCESS = "its documentation says that one process at a time may write"
GAPS = dict.fromkeys(("S13", "S16", "W01", "W02", "W03", "W04"), _ONE_PROCESS) | {
    "C04": "where a failed commit cannot be undone either, it refuses all until it is opened again, as its error says"
}


class DuckStore(TransactionalStore):
    """A run is a row."""

    def __init__(self, path: str) -> None:
        import duckdb

        self._database: Any = duckdb.connect(path)
        self._database.execute("create table if not exists runs (id text primary key, record text)")
        self._lock = threading.Lock()
        self._cursor: Any = None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._lock, self._database.cursor() as self._cursor:
            self._cursor.execute("begin")
            try:
                yield
            except BaseException:
                self._cursor.execute("rollback")
                raise
            self._cursor.execute("commit")

    def read(self, run_id: str) -> Record | None:
        row = self._cursor.execute("select record from runs where id = ?", [run_id]).fetchone()
        return None if row is None else cast(Record, json.loads(row[0]))

    def write(self, run_id: str, record: Record) -> None:
        self._cursor.execute("insert or replace into runs values (?, ?)", [run_id, json.dumps(record)])

    def remove(self, run_id: str) -> None:
        self._cursor.execute("delete from runs where id = ?", [run_id])

    def close(self) -> None:
        self._database.close()


def open_store(location: str) -> DuckStore:
    """Open the database in a file of the location."""
    return DuckStore(f"{location}/runs.duckdb")
