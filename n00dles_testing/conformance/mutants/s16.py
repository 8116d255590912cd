"""Stores that break S16: processes that open a fresh location at once all succeed."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from pathlib import Path
from typing import ClassVar

from .correct import AppendOnlyLog, JSONFiles, replace_file, sync_folder
from .correct_sqlite import SQLiteRollback

__all__ = [
    "CreatesTheTableAfterALook",
    "LocksEachInstanceAlone",
    "MakesItsFolderAfterALook",
    "SwitchesToWALWithoutWaiting",
    "WritesAHeaderAfterALook",
]


class CreatesTheTableAfterALook(SQLiteRollback):
    """Looks whether the table is there, and creates it if not: so does another process, at the same moment.

    The kind of openai/openai-agents-python PR #4987.
    """

    breaks: ClassVar[str | None] = "S16"

    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / "runs.db"
        with contextlib.closing(self.connect()) as connection:
            found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone()
            if found is None:
                connection.execute("CREATE TABLE runs (run_id TEXT PRIMARY KEY, record TEXT NOT NULL)")


class SwitchesToWALWithoutWaiting(SQLiteRollback):
    """Has no patience for the switch of a new file to WAL: how long it waits for a lock is set behind it.

    The kind of theexperiencecompany/gaia PR #1173.
    """

    breaks: ClassVar[str | None] = "S16"

    def connect(self) -> sqlite3.Connection:
        """Return a connection; the order of its settings is wrong."""
        connection = sqlite3.connect(self.path, timeout=10, isolation_level=None)
        if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA busy_timeout = 10000")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        return connection


class MakesItsFolderAfterALook(JSONFiles):
    """Makes a folder for its files if there is none."""

    breaks: ClassVar[str | None] = "S16"

    def __init__(self, folder: str) -> None:
        inner = Path(folder) / "runs"
        if not inner.exists():
            inner.mkdir()
        super().__init__(str(inner))


class WritesAHeaderAfterALook(AppendOnlyLog):
    """Begins its file with a line that tells the version; two processes that find it empty write two of them.

    Whoever opens the store afterwards finds a line that is no run.
    """

    breaks: ClassVar[str | None] = "S16"

    def __init__(self, folder: str) -> None:
        path = Path(folder) / "runs.log"
        begun = path.read_text() if path.exists() else ""
        if "\n" not in begun:
            with path.open("a") as file:
                if begun:  # by a process that had no time to sync it
                    file.truncate(0)
                file.write("version 1\n")  # the sync of the first line is for both
            sync_folder(path.parent)
        super().__init__(folder)

    def replay(self, text: str) -> None:
        """Apply every line but the first."""
        header, _, lines = text.partition("\n")
        if header != "version 1":
            raise ValueError(f"{self.path} begins with {header!r}, and is no file of version 1")
        super().replay(lines)

    def delete(self, run_id: str) -> None:
        """Write the file anew, without the run."""
        with self.sound():
            self.apply(run_id, None)
            self.file.close()
            replace_file(self.path, "version 1\n" + "".join(json.dumps(line) + "\n" for line in self.runs.items()))
            self.file = self.path.open("a")


class LocksEachInstanceAlone(JSONFiles):
    """Has a lock in each instance, and none that another process would see: both write the same file aside."""

    breaks: ClassVar[str | None] = "S16"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.lock = threading.RLock()  # type: ignore[assignment]
