"""Factories that do not use the location that they are given."""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

from n00dles_testing.conformance.mutants.correct import JSONFiles, merged, new_record, record_of

_one: list[JSONFiles] = []


def always_the_same_object(location: str) -> JSONFiles:
    if not _one:
        _one.append(JSONFiles(location))
    return _one[0]


def always_the_same_folder(location: str) -> JSONFiles:
    folder = os.path.join(tempfile.gettempdir(), "the-only-one")
    os.makedirs(folder, exist_ok=True)
    return JSONFiles(folder)


class KeepsItsRunsInTheModule:
    """The mock store that every project has."""

    runs: dict[str, Any] = {}  # noqa: RUF012 - that is the fault

    def __init__(self, location: str) -> None: ...

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        return record_copy(self.runs.setdefault(run_id, new_record(run_id, inputs)))

    def save(self, run_id: str, context: Any) -> None:
        self.runs[run_id] = merged(self.runs[run_id], record_of(context))

    def delete(self, run_id: str) -> None:
        self.runs.pop(run_id, None)


def record_copy(record: Any) -> Any:
    import copy

    return copy.deepcopy(record)


class HangsInItsFirstSave(JSONFiles):
    """Opens, and that is all."""

    def save(self, run_id: str, context: Any) -> None:
        time.sleep(3600)


_by_location: dict[str, JSONFiles] = {}


def one_object_a_location(location: str) -> JSONFiles:
    return _by_location.setdefault(location, JSONFiles(location))
