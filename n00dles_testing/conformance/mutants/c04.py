"""Stores that break C04: a fault is raised as an error, the record before stays, and the store goes on."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from pathlib import Path
from typing import Any, ClassVar

from .correct import JSONFiles, NotStoredError, merged, new_record, record_of

__all__ = ["LogsErrorsAndGoesOn", "StaysInItsTransaction", "TakesAnErrorForAFirstRun"]


class LogsErrorsAndGoesOn(JSONFiles):
    """A save that fails is logged and acknowledged: persistence is "best effort", and the pipeline goes on."""

    breaks: ClassVar[str | None] = "C04"

    def save(self, run_id: str, context: Any) -> None:
        """Save, or log why not."""
        try:
            super().save(run_id, context)
        except OSError as error:
            logging.getLogger(__name__).debug("run %s was not saved: %s", run_id, error)


class TakesAnErrorForAFirstRun(JSONFiles):
    """What cannot be read is not there: with too many files open, a known run begins anew over its record."""

    breaks: ClassVar[str | None] = "C04"

    def read(self, run_id: str) -> Any:
        """Return the stored record, or None for whatever is wrong with its file."""
        try:
            return super().read(run_id)
        except OSError:
            return None


class StaysInItsTransaction:
    """Begins a transaction for each save, and does not roll it back when a statement fails.

    From then on every save fails: "cannot start a transaction within a transaction" (as langchain-ai/langgraph #5675,
    until a restart). Saving again fails, too, so C05 sees it as well.
    """

    breaks: ClassVar[str | None] = "C04"
    also_breaks: ClassVar[tuple[str, ...]] = ("C05",)

    def __init__(self, folder: str) -> None:
        self.lock = threading.Lock()
        self.connection = sqlite3.connect(Path(folder) / "runs.db", check_same_thread=False, isolation_level=None)
        self.connection.execute("PRAGMA synchronous = EXTRA")
        self.connection.execute("PRAGMA secure_delete = ON")
        self.connection.execute("CREATE TABLE IF NOT EXISTS runs (run_id TEXT PRIMARY KEY, record TEXT)")

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read the row, or insert it."""
        with self.lock:
            if self.read(run_id) is None:
                self.write("INSERT OR IGNORE INTO runs (record, run_id) VALUES (?, ?)", new_record(run_id, inputs))
            return self.read(run_id)

    def save(self, run_id: str, context: Any) -> None:
        """Update the row in a transaction."""
        with self.lock:
            stored = self.read(run_id)
            if stored is None:
                raise NotStoredError(run_id)
            self.connection.execute("BEGIN IMMEDIATE")
            self.write("UPDATE runs SET record = ? WHERE run_id = ?", merged(stored, record_of(context)))
            self.connection.execute("COMMIT")

    def delete(self, run_id: str) -> None:
        """Delete the row."""
        with self.lock:
            self.connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))

    def read(self, run_id: str) -> Any:
        """Return the stored record, or None."""
        row = self.connection.execute("SELECT record FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        return None if row is None else json.loads(row[0])

    def write(self, statement: str, record: dict[str, Any]) -> None:
        """Write a record by a statement."""
        self.connection.execute(statement, (json.dumps(record), record["run_id"]))

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
