"""A correct store on SQLite's rollback journal: one table, one row a run, a connection for each call.

Written as a user would who reads SQLite's manual: nothing is held between two calls, so there is nothing to share with
another thread, to carry across a fork, or to forget to close.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from .correct import NotStoredError, merged, new_record, record_of

__all__ = ["SQLiteRollback"]

_WAIT_SECONDS = 10.0
"""How long a transaction waits for that of another connection."""


class SQLiteRollback:
    """The whole run as JSON in its row; each call is one transaction that takes the write lock when it begins.

    `synchronous=EXTRA` also syncs the removal of the journal, without which a power cut takes a commit back.
    `secure_delete` writes zeros over what is deleted.
    """

    breaks: ClassVar[str | None] = None

    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / "runs.db"
        with self.transaction() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS runs (run_id TEXT PRIMARY KEY, record TEXT NOT NULL)")

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read the run's row, or insert it."""
        with self.transaction() as connection:
            found = self.read(connection, run_id)
            if found is not None:
                return found
            record = new_record(run_id, inputs)
            connection.execute("INSERT INTO runs VALUES (?, ?)", (run_id, json.dumps(record)))
            return record

    def save(self, run_id: str, context: Any) -> None:
        """Update the run's row, merged with what is stored."""
        with self.transaction() as connection:
            stored = self.read(connection, run_id)
            if stored is None:
                raise NotStoredError(run_id)
            record = json.dumps(merged(stored, record_of(context)))
            connection.execute("UPDATE runs SET record = ? WHERE run_id = ?", (record, run_id))

    def delete(self, run_id: str) -> None:
        """Delete the run's row."""
        with self.transaction() as connection:
            connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))

    def read(self, connection: sqlite3.Connection, run_id: str) -> Any:
        """Return the stored record, or None."""
        row = connection.execute("SELECT record FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        return None if row is None else json.loads(row[0])

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a connection, take the write lock, and commit; roll back if an error is raised."""
        with closing(self.connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def connect(self) -> sqlite3.Connection:
        """Return a connection with the settings that make a commit durable, and a delete final."""
        connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA secure_delete = ON")
        return connection
