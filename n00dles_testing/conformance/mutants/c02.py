"""Stores that break C02: acknowledged saves are there after SIGKILL right after the acknowledgement."""

from __future__ import annotations

import json
import sqlite3
import threading
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

from .correct import AppendOnlyLog, JSONFiles, NotStoredError, merged, new_record, record_of

__all__ = ["CoalescesLongRuns", "CommitsAtClose", "ForgetsToFlush", "WritesBackWhatItLoaded"]

_MANY = 50
_EACH = 10


class ForgetsToFlush(AppendOnlyLog):
    """Leaves lines in Python's own buffer until the file is closed (the kind of agno-agi/agno #6089).

    On a disk that is full when the buffer is written at last, what it has acknowledged is lost: C04 sees it as well.
    """

    breaks: ClassVar[str | None] = "C02"
    also_breaks: ClassVar[tuple[str, ...]] = ("C04",)

    def append(self, run_id: str, record: dict[str, Any] | None) -> None:
        """Write without a flush, and acknowledge."""
        self.file.write(json.dumps([run_id, record]) + "\n")
        self.apply(run_id, record)


class CommitsAtClose:
    """Lets the sqlite3 module open a transaction by itself, and commits it when the store is closed.

    Its own connection sees every row, so all looks well until the process is killed. Meanwhile nobody else can write,
    which is why S15 sees it as well; and an error rolls back all that was acknowledged since the start, which C04 sees.
    """

    breaks: ClassVar[str | None] = "C02"
    also_breaks: ClassVar[tuple[str, ...]] = ("S15", "C04")

    def __init__(self, folder: str) -> None:
        self.connection = sqlite3.connect(Path(folder) / "runs.db", check_same_thread=False)
        self.connection.execute("PRAGMA secure_delete = ON")
        self.lock = threading.Lock()
        self.connection.execute("CREATE TABLE IF NOT EXISTS runs (run_id TEXT PRIMARY KEY, record TEXT)")

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read the row, or insert it."""
        with self.lock:
            if self.read(run_id) is None:
                self.write(run_id, new_record(run_id, inputs))
            return self.read(run_id)

    def save(self, run_id: str, context: Any) -> None:
        """Replace the row, in a transaction that nobody commits."""
        with self.lock:
            stored = self.read(run_id)
            if stored is None:
                raise NotStoredError(run_id)
            self.write(run_id, merged(stored, record_of(context)))

    def delete(self, run_id: str) -> None:
        """Delete the row, in a transaction that nobody commits."""
        with self.lock:
            self.connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))

    def read(self, run_id: str) -> Any:
        """Return the stored record, or None."""
        row = self.connection.execute("SELECT record FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        return None if row is None else json.loads(row[0])

    def close(self) -> None:
        """Commit at last."""
        self.connection.commit()
        self.connection.close()

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Insert or replace a row."""
        self.connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?)", (run_id, json.dumps(record)))


class WritesBackWhatItLoaded(JSONFiles):
    """Writes runs of its own at once, and runs that it has loaded when it is closed.

    A test that kills the process which has created the run sees nothing: only a resumed run is lost, at the next kill.
    """

    breaks: ClassVar[str | None] = "C02"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.created: set[str] = set()
        self.changed: dict[str, Any] = {}

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Return what is not written yet, else what is."""
        if run_id in self.changed:
            return deepcopy(self.changed[run_id])
        if not self.path(run_id).exists():
            self.created.add(run_id)
        return super().load_or_create(run_id, inputs)

    def save(self, run_id: str, context: Any) -> None:
        """Write a run of our own, keep one that was loaded."""
        if run_id in self.created:
            super().save(run_id, context)
            return
        with self.lock:
            stored = self.changed.get(run_id) or self.read(run_id)
            if stored is None:
                raise NotStoredError(run_id)
            self.changed[run_id] = merged(stored, record_of(context))

    def delete(self, run_id: str) -> None:
        """Remove the run."""
        with self.lock:
            super().delete(run_id)
            self.changed.pop(run_id, None)

    def close(self) -> None:
        """Write at last."""
        for run_id, record in self.changed.items():
            self.write(run_id, record)


class CoalescesLongRuns(JSONFiles):
    """Of a run with 50 nodes or more it writes each tenth save, and the others at close: writing had become slow."""

    breaks: ClassVar[str | None] = "C02"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.held: dict[str, dict[str, Any]] = {}
        self.saves = 0

    def read(self, run_id: str) -> Any:
        """Return what is not written yet, else what is."""
        return deepcopy(self.held[run_id]) if run_id in self.held else super().read(run_id)

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record, or keep it for later."""
        self.saves += 1
        if len(record["order"]) >= _MANY and self.saves % _EACH:
            self.held[run_id] = deepcopy(record)
        else:
            super().write(run_id, record)
            self.held.pop(run_id, None)

    def delete(self, run_id: str) -> None:
        """Remove the run."""
        with self.lock:
            super().delete(run_id)
            self.held.pop(run_id, None)

    def close(self) -> None:
        """Write at last."""
        for run_id, record in self.held.items():
            super().write(run_id, record)
        self.held.clear()
