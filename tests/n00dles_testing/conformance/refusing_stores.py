"""Stores that refuse everything, so that no clause that takes a refusal for fine has seen anything."""

from __future__ import annotations

import json
import re
import sqlite3
from copy import deepcopy
from pathlib import Path
from typing import Any

from n00dles.errors import SerializationError
from n00dles_testing.conformance.mutants.correct import JSONFiles, new_record, record_of


class OneConnectionOfOneThread:
    """Connects where it is opened, in one thread; SQLite refuses every call in another one."""

    def __init__(self, folder: str) -> None:
        self.connection = sqlite3.connect(Path(folder) / "runs.db", isolation_level=None)
        self.connection.execute("CREATE TABLE IF NOT EXISTS runs (run_id TEXT PRIMARY KEY, record TEXT)")

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        found = self.connection.execute("SELECT record FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        if found is None:
            self.write(new_record(run_id, inputs))
            return new_record(run_id, inputs)
        return json.loads(found[0])

    def save(self, run_id: str, context: Any) -> None:
        self.write(record_of(context))

    def delete(self, run_id: str) -> None:
        self.connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))

    def write(self, record: dict[str, Any]) -> None:
        row = (record["run_id"], json.dumps(record))
        self.connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?)", row)


class RefusesEverySave:
    """Creates runs, and saves none."""

    def __init__(self, folder: str) -> None:
        self.runs: dict[str, Any] = {}

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        return deepcopy(self.runs.setdefault(run_id, new_record(run_id, inputs)))

    def save(self, run_id: str, context: Any) -> None:
        raise ValueError(f"run {run_id!r} was not saved: node 'researcher' is too large")

    def delete(self, run_id: str) -> None:
        self.runs.pop(run_id, None)


class RefusesOddNames(JSONFiles):
    """Has room for names of nodes that are made of ASCII letters, digits, `_` and `-`, and says so."""

    def save(self, run_id: str, context: Any) -> None:
        for node in context.order:
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,200}", node):
                raise SerializationError("its name", "is more than a word", node=node)
        super().save(run_id, context)


class RefusesOddNamesWithoutAWord(JSONFiles):
    """Likewise, and does not say which node it is."""

    def save(self, run_id: str, context: Any) -> None:
        if any(not re.fullmatch(r"[A-Za-z0-9_-]{1,200}", node) for node in context.order):
            raise ValueError("400 Bad Request")
        super().save(run_id, context)
