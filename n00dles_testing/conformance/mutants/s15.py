"""Stores that break S15: something piles up from one opening to the next, or is held between two calls."""

from __future__ import annotations

import atexit
import os
import sqlite3
import tempfile
import threading
from typing import Any, ClassVar

from .correct import AppendOnlyLog, FilesWithRevisions, JSONFiles
from .correct_sqlite import SQLiteRollback

__all__ = [
    "ClosesAtExit",
    "KeepsWhatItDeletesOpen",
    "KeepsWhatItRefusesOpen",
    "LeavesItToTheCollector",
    "LeavesLockFiles",
    "ReadsInAnOpenTransaction",
    "StartsAThreadPerOpening",
]


class ClosesAtExit(SQLiteRollback):
    """Keeps a connection for statistics, and has it closed when the process ends: a worker ends after weeks."""

    breaks: ClassVar[str | None] = "S15"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.statistics = sqlite3.connect(self.path, check_same_thread=False)
        self.statistics.execute("PRAGMA schema_version")
        atexit.register(self.statistics.close)


class KeepsWhatItDeletesOpen(JSONFiles):
    """Opens the folder to sync it after a removal, and does not close it: one descriptor for each run deleted."""

    breaks: ClassVar[str | None] = "S15"

    def delete(self, run_id: str) -> None:
        """Remove the file, and sync the folder once more."""
        super().delete(run_id)
        os.fsync(os.open(self.folder, os.O_RDONLY))


class KeepsWhatItRefusesOpen(FilesWithRevisions):
    """Opens the run's file to compare, and closes it only if the save goes on: an error leaves it open."""

    breaks: ClassVar[str | None] = "S15"

    def save(self, run_id: str, context: Any) -> None:
        """Save with the file open."""
        compared = os.open(self.path(run_id), os.O_RDONLY) if self.path(run_id).exists() else None
        super().save(run_id, context)
        if compared is not None:
            os.close(compared)


class LeavesItToTheCollector(AppendOnlyLog):
    """Closes nothing: Python does so when the object goes, with a warning (the kind of python/cpython PR #108015)."""

    breaks: ClassVar[str | None] = "S15"

    def close(self) -> None:
        """Do nothing."""


class StartsAThreadPerOpening(JSONFiles):
    """Starts a thread that would compact the files once told to; nobody tells it to end."""

    breaks: ClassVar[str | None] = "S15"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.compacts = threading.Event()
        threading.Thread(target=self.compacts.wait, name="compaction", daemon=True).start()


class LeavesLockFiles(JSONFiles):
    """Makes a lock file for each save, under a name of its own, and removes none."""

    breaks: ClassVar[str | None] = "S15"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write under a lock that nobody else will ever see."""
        descriptor, _ = tempfile.mkstemp(suffix=".lock", dir=self.folder)
        os.close(descriptor)
        super().write(run_id, record)


class ReadsInAnOpenTransaction(SQLiteRollback):
    """Reads through a session that ends its transaction when the next one begins, as object mappers do by default.

    Until then, for as long as a node runs, the write-ahead log cannot be emptied, and grows. A fork inherits the
    session without its locks, so S13 sees it, too.
    """

    breaks: ClassVar[str | None] = "S15"
    also_breaks: ClassVar[tuple[str, ...]] = ("S13",)

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.lock = threading.Lock()
        self.sessions: dict[int, sqlite3.Connection] = {}

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read in the session; create the run if it is not there."""
        with self.lock:
            session = self.session()
            session.rollback()
            session.execute("BEGIN")
            found = self.read(session, run_id)
            return super().load_or_create(run_id, inputs) if found is None else found

    def session(self) -> sqlite3.Connection:
        """Return the session of this process."""
        if os.getpid() not in self.sessions:
            self.sessions[os.getpid()] = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        return self.sessions[os.getpid()]

    def connect(self) -> sqlite3.Connection:
        """Return a connection in the mode in which readers and writers do not wait for each other."""
        connection = super().connect()
        connection.execute("PRAGMA journal_mode = WAL")
        return connection

    def close(self) -> None:
        """Close the session."""
        if session := self.sessions.pop(os.getpid(), None):
            session.close()
