"""SQLite, TRUNCATE and EXTRA: a table by Python's sqlite3, with the rollback journal that is truncated at a commit.

Used as SQLite's documentation says of its safest setting for syncs (https://sqlite.org/pragma.html#pragma_synchronous):
`synchronous=EXTRA`; `journal_mode=TRUNCATE`, as it says, is faster than DELETE on many systems. A connection and a
`BEGIN IMMEDIATE` a call, and the default wait for other writers. The adapter adds the comparison of revisions, and
writes nothing where the save before has failed at its end, and all is there.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import cast

from n00dles import PipelineContext

from .records import Record, TransactionalStore

PACKAGES = ()
SERVER = None
GAPS = {
    "S07": "the text of what is deleted stays in the file, unless secure_delete is on",
    "S10": "SQLite does not promise to find a changed byte",
    "P03": "no page of it speaks of a failed sync of the journal, after which the commit is seen all the same",
}


class TruncatingStore(TransactionalStore):
    """A run is a row."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._local = threading.local()
        with self.transaction():
            self._local.database.execute("CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, record TEXT)")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = TRUNCATE")
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute("BEGIN IMMEDIATE")
            self._local.database = database
            try:
                yield
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise

    def save(self, run_id: str, ctx: PipelineContext) -> None:
        with self.transaction():
            record = self.read(run_id)
            if record and ctx.in_doubt and record["save_id"] == ctx.in_doubt.save_id:
                ctx.acknowledge(ctx.in_doubt)
                if not ctx.unsaved:
                    return
        super().save(run_id, ctx)

    def read(self, run_id: str) -> Record | None:
        row = self._local.database.execute("SELECT record FROM runs WHERE id = ?", (run_id,)).fetchone()
        return None if row is None else cast(Record, json.loads(row[0]))

    def write(self, run_id: str, record: Record) -> None:
        self._local.database.execute("INSERT OR REPLACE INTO runs VALUES (?, ?)", (run_id, json.dumps(record)))

    def remove(self, run_id: str) -> None:
        self._local.database.execute("DELETE FROM runs WHERE id = ?", (run_id,))


def open_store(location: str) -> TruncatingStore:
    """Open the database in a file of the location."""
    return TruncatingStore(f"{location}/runs.db")
