"""Stores that break W03: of many callers that create one run one does, and all see its inputs."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import uuid
from typing import Any, ClassVar

from .correct import FilesWithRevisions, new_record
from .correct_sqlite import SQLiteRollback

__all__ = ["AddsItsInputsToAnothers", "CreatesAfterALook"]


class CreatesAfterALook(FilesWithRevisions):
    """Looks whether the run is there, waits for its turn, and writes it if not; so does another, at the same moment.

    The kind of google/adk-python #4751. Two callers in one event loop meet it, as two processes do: wherever several
    begin one run at once.
    """

    breaks: ClassVar[str | None] = "W03"
    also_breaks: ClassVar[tuple[str, ...]] = ("S01", "W02")

    async def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read the run's file, or write its first revision."""
        found = self.read(run_id)
        await asyncio.sleep(0)
        if found is None:
            found = {**new_record(run_id, inputs), "revision": 1, "incarnation": uuid.uuid4().hex}
            with self.lock:
                self.write(run_id, found)
        return found


class AddsItsInputsToAnothers(SQLiteRollback):
    """Inserts a run that it has not found, and is told by the database when another was faster.

    Then it helpfully adds those of its inputs that the other has not given: the run has inputs that nobody passed.
    """

    breaks: ClassVar[str | None] = "W03"

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read the run's row, or insert it."""
        with self.transaction() as connection:
            found = self.read(connection, run_id)
        if found is not None:
            return found
        with self.transaction() as connection:
            record = new_record(run_id, inputs)
            try:
                connection.execute("INSERT INTO runs VALUES (?, ?)", (run_id, json.dumps(record)))
            except sqlite3.IntegrityError:
                record = self.read(connection, run_id)
                record = {**record, "inputs": {**record["inputs"], **_missing(inputs, record["inputs"])}}
                connection.execute("UPDATE runs SET record = ? WHERE run_id = ?", (json.dumps(record), run_id))
            return record


def _missing(inputs: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in inputs.items() if name not in given}
