"""Stores that take damage in their own ways."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from pathlib import Path
from typing import Any

from n00dles_testing.conformance.mutants.correct import JSONFiles, replace_file
from n00dles_testing.conformance.mutants.correct_sqlite import SQLiteRollback


class CompressedFiles(JSONFiles):
    """One file a run, in which no text is to be seen."""

    def parsed(self, run_id: str, path: Path) -> Any:
        record = json.loads(zlib.decompress(path.read_bytes()))
        assert record["run_id"] == run_id
        return record

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        aside = self.path(run_id).with_suffix(".new")
        aside.write_bytes(zlib.compress(json.dumps(record).encode()))
        aside.replace(self.path(run_id))


class TwoCopies(JSONFiles):
    """Writes each run twice, and reads whichever copy is whole: damage to one does no harm."""

    def parsed(self, run_id: str, path: Path) -> Any:
        try:
            return super().parsed(run_id, path)
        except ValueError:
            return super().parsed(run_id, path.with_suffix(".copy"))

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        replace_file(self.path(run_id).with_suffix(".copy"), json.dumps(record))
        super().write(run_id, record)

    def delete(self, run_id: str) -> None:
        self.path(run_id).with_suffix(".copy").unlink(missing_ok=True)
        super().delete(run_id)


class CountsItsSaves(JSONFiles):
    """Has a field called version that is none: it counts the saves."""

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        super().write(run_id, {**record, "version": record.get("version", 0) + 1})


class ReplacesRowsThatItCannotRead(SQLiteRollback):
    def read(self, connection: sqlite3.Connection, run_id: str) -> Any:
        try:
            return super().read(connection, run_id)
        except ValueError:
            connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
            return None


class GoesBackByASave(JSONFiles):
    """Keeps the version before, and takes it for the newest when that cannot be read."""

    def parsed(self, run_id: str, path: Path) -> Any:
        try:
            return super().parsed(run_id, path)
        except ValueError:
            return json.loads(path.with_suffix(".before").read_text())

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        if self.path(run_id).exists():
            self.path(run_id).with_suffix(".before").write_bytes(self.path(run_id).read_bytes())
        super().write(run_id, record)


class EndsTheProcess(JSONFiles):
    def parsed(self, run_id: str, path: Path) -> Any:
        try:
            return super().parsed(run_id, path)
        except ValueError:
            os._exit(3)


class GivesNone(JSONFiles):
    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        try:
            return super().load_or_create(run_id, inputs)
        except ValueError:
            return None


class ReadsAllAtTheStart(JSONFiles):
    """One damaged record keeps every run from being loaded."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        for path in self.folder.glob("*.json"):
            json.loads(path.read_text())


class KeepsItsFilesElsewhere(JSONFiles):
    def __init__(self, folder: str) -> None:
        elsewhere = Path(f"{folder}-elsewhere")
        elsewhere.mkdir(exist_ok=True)
        super().__init__(str(elsewhere))


class SavesOverDamage(JSONFiles):
    """A load raises; a save takes what it cannot read for nothing. Whose load has raised has nothing to save."""

    def save(self, run_id: str, context: Any) -> None:
        try:
            super().save(run_id, context)
        except ValueError:
            self.write(run_id, self.kept(context))
