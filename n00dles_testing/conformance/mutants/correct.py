"""The correct stores that the mutants are made from. Both keep the contract, and the suite's own tests prove it.

They are written as a user would write them: plain classes with sync methods, no base class, nothing of n00dles.
"""

from __future__ import annotations

import json
import os
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

__all__ = ["AppendOnlyLog", "JSONFiles", "record_of"]


def record_of(context: Any) -> dict[str, Any]:
    """Copy the four fields that every store must keep."""
    record = {name: getattr(context, name) for name in ("run_id", "inputs", "completed", "order")}
    return deepcopy({**record, "completed": dict(record["completed"])})


class JSONFiles:
    """One file a run, replaced whole by each save: written aside, synced, renamed, and the folder synced."""

    breaks: ClassVar[str | None] = None

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read the run's file, or write it."""
        found = self.read(run_id)
        if found is not None:
            return found
        record = {"run_id": run_id, "inputs": deepcopy(inputs), "completed": {}, "order": []}
        self.write(run_id, record)
        return record

    def save(self, run_id: str, context: Any) -> None:
        """Replace the run's file."""
        self.write(run_id, record_of(context))

    def delete(self, run_id: str) -> None:
        """Remove the run's file."""
        self.path(run_id).unlink(missing_ok=True)
        self.sync_folder()

    def path(self, run_id: str) -> Path:
        """Return the file of a run: its id in hex, so that no two ids share one."""
        return self.folder / f"{run_id.encode().hex()}.json"

    def read(self, run_id: str) -> Any:
        """Return the stored record, or None."""
        path = self.path(run_id)
        return json.loads(path.read_text()) if path.exists() else None

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Replace the record, so that a crash leaves the old one or the new one."""
        aside = self.path(run_id).with_suffix(".new")
        with aside.open("w") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self.path(run_id))
        self.sync_folder()

    def sync_folder(self) -> None:
        """Make a rename or a removal durable."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class AppendOnlyLog:
    """All runs in memory, and in one file to which each change is appended as a line."""

    breaks: ClassVar[str | None] = None

    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / "runs.log"
        self.runs: dict[str, dict[str, Any]] = {}
        if self.path.exists():
            self.replay(self.path.read_text())
        self.file = self.path.open("a")

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Return a copy of the run, or append a new one."""
        if run_id not in self.runs:
            self.append(run_id, {"run_id": run_id, "inputs": deepcopy(inputs), "completed": {}, "order": []})
        return deepcopy(self.runs[run_id])

    def save(self, run_id: str, context: Any) -> None:
        """Append the run as it now is."""
        self.append(run_id, record_of(context))

    def delete(self, run_id: str) -> None:
        """Append that the run is gone."""
        self.append(run_id, None)

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def append(self, run_id: str, record: dict[str, Any] | None) -> None:
        """Append one line and sync it."""
        self.file.write(json.dumps([run_id, record]) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())
        self.apply(run_id, record)

    def apply(self, run_id: str, record: dict[str, Any] | None) -> None:
        """Do to the runs in memory what a line says."""
        if record is None:
            self.runs.pop(run_id, None)
        else:
            self.runs[run_id] = record

    def replay(self, text: str) -> None:
        """Apply every whole line; one that a crash has torn was never acknowledged."""
        for line in text.splitlines(keepends=True):
            if line.endswith("\n"):
                self.apply(*json.loads(line))
