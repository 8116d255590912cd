"""Stores that break S13: usable from another task, event loop, thread, and after a fork, or a typed error at once."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from .correct import JSONFiles, NotStoredError, merged, new_record, record_of

__all__ = ["CarriesItsConnectionAcrossAFork", "HasOneCursorForAll"]

_AN_INSTANT = 0.0005


class HasOneCursorForAll(JSONFiles):
    """Asks and reads through one cursor: between the two, another thread asks, and its answer is taken for one's own.

    In one event loop nothing comes between them.
    """

    breaks: ClassVar[str | None] = "S13"
    cursor: Iterator[str] = iter(())

    async def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Ask for the run, and read what came."""
        self.execute(super().load_or_create(run_id, inputs))
        return json.loads(next(self.cursor))

    def execute(self, found: Any) -> None:
        """Have the cursor give what was found, which takes an instant."""
        self.cursor = iter([json.dumps(found)])
        time.sleep(_AN_INSTANT)


class CarriesItsConnectionAcrossAFork:
    """One connection to a SQLite database with a write-ahead log, opened when the store is, and used ever after.

    A fork carries it over, without its locks. The parent closes, is the last one for all that SQLite can see, and
    removes the log; what the child commits then goes into a file without a name, and is acknowledged.
    """

    breaks: ClassVar[str | None] = "S13"

    def __init__(self, folder: str) -> None:
        self.lock = threading.Lock()
        path = Path(folder) / "runs.db"
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        while not self.has_log():
            time.sleep(_AN_INSTANT)
        for setting in ("synchronous = FULL", "secure_delete = ON"):
            self.connection.execute(f"PRAGMA {setting}")
        self.connection.execute("CREATE TABLE IF NOT EXISTS runs (run_id TEXT PRIMARY KEY, record TEXT)")

    def has_log(self) -> bool:
        """Switch to a write-ahead log; SQLite does not wait by itself while another process does that."""
        try:
            return bool(self.connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",))
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            return False

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Insert the run, unless it is there; read it."""
        record = json.dumps(new_record(run_id, inputs))
        with self.lock:
            self.connection.execute("INSERT OR IGNORE INTO runs VALUES (?, ?)", (run_id, record))
            return self.read(run_id)

    def save(self, run_id: str, context: Any) -> None:
        """Update the row, merged with what is stored."""
        with self.lock, self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            stored = self.read(run_id)
            if stored is None:
                raise NotStoredError(run_id)
            record = json.dumps(merged(stored, record_of(context)))
            self.connection.execute("UPDATE runs SET record = ? WHERE run_id = ?", (record, run_id))

    def delete(self, run_id: str) -> None:
        """Delete the row."""
        with self.lock:
            self.connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))

    def read(self, run_id: str) -> Any:
        """Return the stored record, or None."""
        row = self.connection.execute("SELECT record FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        return None if row is None else json.loads(row[0])

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
