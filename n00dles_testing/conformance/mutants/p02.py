"""Stores that break P02: no power loss takes an acknowledged save away, or brings what was never saved."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from typing import Any, ClassVar

from .correct import AppendOnlyLog, JSONFiles, NotStoredError, merged, record_of
from .correct_sqlite import SQLiteRollback

__all__ = ["ForgetsTheFolder", "SharesASync", "SyncsAtClose", "TakesPythonsDefault"]


class ForgetsTheFolder(JSONFiles):
    """Syncs the file and renames it, and does not sync the folder: the rename itself is lost, and the save with it."""

    breaks: ClassVar[str | None] = "P02"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Replace the run's file."""
        path = self.path(run_id)
        aside = path.with_suffix(".new")
        with aside.open("w") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)


class TakesPythonsDefault(SQLiteRollback):
    """Uses SQLite as Python's `sqlite3` opens it: a rollback journal, with synchronous=FULL.

    A commit is the removal of the journal, and that is not synced: after a power loss the journal may be back, and
    takes the last commit back. It is what SQLite's manual says of FULL ("might rollback following a power loss").
    """

    breaks: ClassVar[str | None] = "P02"

    def connect(self) -> sqlite3.Connection:
        """Return a connection with the settings that SQLite has by itself."""
        connection = super().connect()
        connection.execute("PRAGMA synchronous = FULL")
        return connection


class SyncsAtClose(AppendOnlyLog):
    """Acknowledges what the page cache has, and syncs once, when it is closed.

    No kill of the process shows it. What is missing may lie in the middle of the file as well, so P01 sees it, too.
    """

    breaks: ClassVar[str | None] = "P02"
    also_breaks: ClassVar[tuple[str, ...]] = ("P01",)

    def append(self, run_id: str, record: dict[str, Any] | None) -> None:
        """Append one line, and acknowledge."""
        self.file.write(json.dumps([run_id, record]) + "\n")
        self.file.flush()
        self.apply(run_id, record)

    def close(self) -> None:
        """Sync at last."""
        if not self.file.closed:
            os.fsync(self.file.fileno())
        super().close()


class SharesASync(AppendOnlyLog):
    """Saves that come together share the sync of the end of their lines, also with one that is syncing already.

    That sync began before the end of the second line was written, so it says nothing about it.
    """

    breaks: ClassVar[str | None] = "P02"
    is_syncing = False

    async def save(self, run_id: str, context: Any) -> None:  # type: ignore[override]
        """Append the run as it now is, and see to it that a sync of it is made."""
        with self.sound():
            if run_id not in self.runs:
                raise NotStoredError(run_id)
            record = merged(self.runs[run_id], record_of(context))
            self.file.write(json.dumps([run_id, record]))
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.write("\n")
            self.file.flush()
            self.apply(run_id, record)
        if not self.is_syncing:
            self.is_syncing = True
            try:
                with self.sound():
                    os.fsync(self.file.fileno())
                await asyncio.sleep(0)  # who comes now has been synced, too
            finally:
                self.is_syncing = False
