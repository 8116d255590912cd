"""Stores that hold something while a node runs, and one that a factory opens with a pool of one connection."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path
from typing import Any

from n00dles_testing.conformance.mutants.correct import JSONFiles
from n00dles_testing.conformance.mutants.correct_sqlite import SQLiteRollback


class LocksARunUntilItIsSaved(JSONFiles):
    """A pessimistic lock: from the load until the save."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.locked: dict[str, int] = {}

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        if run_id not in self.locked:
            self.locked[run_id] = os.open(self.path(run_id).with_suffix(".locked"), os.O_RDWR | os.O_CREAT)
            fcntl.flock(self.locked[run_id], fcntl.LOCK_EX)
        return super().load_or_create(run_id, inputs)

    def save(self, run_id: str, context: Any) -> None:
        super().save(run_id, context)
        self.unlock(run_id)

    def delete(self, run_id: str) -> None:
        super().delete(run_id)
        self.unlock(run_id)

    def unlock(self, run_id: str) -> None:
        if run_id in self.locked:
            os.close(self.locked.pop(run_id))


class ReadsInATransaction(JSONFiles):
    """Reads in a transaction beside its files, and leaves it open until the next save."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.connection = sqlite3.connect(Path(folder) / "index.db", isolation_level=None, check_same_thread=False)
        self.connection.executescript("PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS runs (run_id TEXT)")

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        if not self.connection.in_transaction:
            self.connection.execute("BEGIN")
        self.connection.execute("SELECT count(*) FROM runs").fetchone()
        return super().load_or_create(run_id, inputs)

    def save(self, run_id: str, context: Any) -> None:
        if self.connection.in_transaction:
            self.connection.execute("COMMIT")
        super().save(run_id, context)

    def close(self) -> None:
        self.connection.close()


class KeepsAFileOpenForEachRun(JSONFiles):
    """Opens a file for each run, and keeps it open."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.files: dict[str, Any] = {}

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        if run_id not in self.files:
            self.files[run_id] = self.path(run_id).with_suffix(".log").open("a")
        return super().load_or_create(run_id, inputs)

    def close(self) -> None:
        for file in self.files.values():
            file.close()


class HasOneConnection(SQLiteRollback):
    """What `WithAPool.pool_of_one` opens: its one connection is taken by a load, and given back by the save."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.taken_by = ""

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        if self.taken_by not in ("", run_id):
            raise RuntimeError(f"the one connection is in use, by {self.taken_by!r}")
        self.taken_by = run_id
        return super().load_or_create(run_id, inputs)

    def save(self, run_id: str, context: Any) -> None:
        super().save(run_id, context)
        self.taken_by = ""


class WithAPool(SQLiteRollback):
    pool_of_one = HasOneConnection
