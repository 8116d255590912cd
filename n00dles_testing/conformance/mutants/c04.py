"""Stores that break C04: a fault is raised as an error, the record before stays, and the store goes on."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from .correct import JSONFiles, NotStoredError, merged, new_record, record_of, sync_folder
from .correct_sqlite import SQLiteRollback

__all__ = [
    "ChangesItsMemoryFirst",
    "IgnoresAShortWrite",
    "IgnoresAnErrorAtClose",
    "LogsErrorsAndGoesOn",
    "SkipsWhatItHasInMemory",
    "StaysInItsTransaction",
    "TakesAnErrorForAFirstRun",
    "TakesAnErrorForALock",
    "TripsOverItsOwnFile",
]


class LogsErrorsAndGoesOn(JSONFiles):
    """A save that fails is logged and acknowledged: persistence is "best effort", and the pipeline goes on."""

    breaks: ClassVar[str | None] = "C04"

    def save(self, run_id: str, context: Any) -> None:
        """Save, or log why not."""
        try:
            super().save(run_id, context)
        except OSError as error:
            logging.getLogger(__name__).debug("run %s was not saved: %s", run_id, error)


class IgnoresAShortWrite(JSONFiles):
    """Calls `write` once and takes it for done: what that returns is how much was written, on a full disk not all.

    It makes no second write, at which the kernel would kill, so to C03 it is none that was killed in a write.
    """

    breaks: ClassVar[str | None] = "C04"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write aside, sync, and replace the run's file."""
        aside = self.path(run_id).with_suffix(".new")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            os.write(descriptor, json.dumps(record).encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        aside.replace(self.path(run_id))
        sync_folder(self.folder)


class IgnoresAnErrorAtClose(JSONFiles):
    """Closes its file whatever comes, as one does after an error; but what is in the buffer is written only then."""

    breaks: ClassVar[str | None] = "C04"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write aside, close, sync, and replace the run's file."""
        aside = self.path(run_id).with_suffix(".new")
        file = aside.open("w")
        try:
            file.write(json.dumps(record))
        finally:
            with suppress(OSError):
                file.close()
        with aside.open("rb") as written:
            os.fsync(written.fileno())
        aside.replace(self.path(run_id))
        sync_folder(self.folder)


class TripsOverItsOwnFile(JSONFiles):
    """Makes the file to write aside only if it is not there, and forgets to remove it when no second one can be opened.

    What a kill has left is removed at the start; after EMFILE, though, no save succeeds without a restart. So none that
    is made again does, and C05 sees it as well.
    """

    breaks: ClassVar[str | None] = "C04"
    also_breaks: ClassVar[tuple[str, ...]] = ("C05",)

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        with self.lock:
            for aside in self.folder.glob("*.new"):
                aside.unlink()

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write aside, and replace the run's file."""
        path, aside = self.path(run_id), self.path(run_id).with_suffix(".new")
        with aside.open("x") as file:
            folder = os.open(self.folder, os.O_RDONLY)
            try:
                file.write(json.dumps(record))
                file.flush()
                os.fsync(file.fileno())
                aside.replace(path)
                os.fsync(folder)
            except OSError:
                aside.unlink(missing_ok=True)
                raise
            finally:
                os.close(folder)


class TakesAnErrorForALock(SQLiteRollback):
    """Takes each error of SQLite's for a database that is locked: the next save carries the outputs of this one anyway.

    The disk is full as well then, and the save was acknowledged.
    """

    breaks: ClassVar[str | None] = "C04"

    def save(self, run_id: str, context: Any) -> None:
        """Save, or leave it to the next one."""
        with suppress(sqlite3.OperationalError):
            super().save(run_id, context)


class TakesAnErrorForAFirstRun(JSONFiles):
    """What cannot be read is not there: with too many files open, a known run begins anew over its record."""

    breaks: ClassVar[str | None] = "C04"

    def read(self, run_id: str) -> Any:
        """Return the stored record, or None for whatever is wrong with its file."""
        try:
            return super().read(run_id)
        except OSError:
            return None


class ChangesItsMemoryFirst(JSONFiles):
    """Keeps what it has read in memory, until the file changes, and changes the memory before the file.

    A save that failed is in the store object, then, but not on disk: who asks it goes on from what a restart loses.
    """

    breaks: ClassVar[str | None] = "C04"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.memory: dict[str, tuple[tuple[int, ...], str]] = {}

    def read(self, run_id: str) -> Any:
        """Return the stored record, from memory if the file is the one that was read."""
        stamp = self.stamp(run_id)
        if stamp and run_id in self.memory and self.memory[run_id][0] == stamp:
            return json.loads(self.memory[run_id][1])
        record = super().read(run_id)
        self.memory[run_id] = (stamp, json.dumps(record))
        return record

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Remember the record, and replace the run's file."""
        text = json.dumps(record)
        self.memory[run_id] = (self.stamp(run_id), text)
        super().write(run_id, record)
        self.memory[run_id] = (self.stamp(run_id), text)

    def stamp(self, run_id: str) -> tuple[int, ...]:
        """Return what changes with the file; nothing if there is none."""
        try:
            status = self.path(run_id).stat()
        except FileNotFoundError:
            return ()
        return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class SkipsWhatItHasInMemory(ChangesItsMemoryFirst):
    """Writes no record that is in memory already: after a failure the same save again is acknowledged, and not done."""

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Replace the run's file, if the record has changed."""
        if json.dumps(self.read(run_id)) != json.dumps(record):
            super().write(run_id, record)


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
