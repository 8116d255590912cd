"""Stores for the tests of power loss: some right and odd, some whose calls do not tell what they do."""

from __future__ import annotations

import mmap
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

from n00dles_testing.conformance.mutants.correct import JSONFiles, new_record, record_of


class KeepsItInItsProcess(JSONFiles):
    """Has what it has read in a dictionary of its module, for as long as the process lives."""

    cache: ClassVar[dict[tuple[str, str], dict[str, Any]]] = {}

    def read(self, run_id: str) -> Any:
        key = (str(self.folder), run_id)
        if key not in self.cache and (found := super().read(run_id)) is not None:
            self.cache[key] = found
        return deepcopy(self.cache.get(key))

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        super().write(run_id, record)
        self.cache[str(self.folder), run_id] = deepcopy(record)

    def delete(self, run_id: str) -> None:
        super().delete(run_id)
        self.cache.pop((str(self.folder), run_id), None)


class WritesThroughAMap(JSONFiles):
    """Writes into a map of its file in memory."""

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        super().write(run_id, record)
        path = Path(self.folder, "pages")
        if not path.exists():
            path.write_bytes(bytes(4096))
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 4096) as pages:
            pages[0] += 1


class WritesNoFile:
    """Is no store for long."""

    def __init__(self, _: str) -> None:
        self.runs: dict[str, dict[str, Any]] = {}

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        return deepcopy(self.runs.setdefault(run_id, new_record(run_id, inputs)))

    def save(self, run_id: str, context: Any) -> None:
        self.runs[run_id] = record_of(context)

    def delete(self, run_id: str) -> None:
        self.runs.pop(run_id, None)


class SavesNothing(JSONFiles):
    """Refuses each save."""

    def save(self, run_id: str, context: Any) -> None:
        raise PermissionError("no")
