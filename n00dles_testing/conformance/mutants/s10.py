"""Stores that break S10: a damaged record is an error, and stays as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from .correct import AppendOnlyLog, JSONFiles

__all__ = [
    "BelievesTheNameOfTheFile",
    "MarksWhatIsDamaged",
    "MovesDamageAside",
    "SkipsDamagedLines",
    "SkipsLaterVersions",
    "TakesDamageForAFirstRun",
]


class TakesDamageForAFirstRun(JSONFiles):
    """`except ValueError: return None`: a record that cannot be read is a run that there is not.

    The kind of TencentCloud/TencentDB-Agent-Memory #770.
    """

    breaks: ClassVar[str | None] = "S10"

    def parsed(self, run_id: str, path: Path) -> Any:
        """Return the record, or None."""
        try:
            return super().parsed(run_id, path)
        except ValueError:
            return None


class MovesDamageAside(JSONFiles):
    """Raises, once: it renames the damaged file, so that the next run is not stopped by it, and begins anew."""

    breaks: ClassVar[str | None] = "S10"

    def parsed(self, run_id: str, path: Path) -> Any:
        """Return the record, or move its file out of the way."""
        try:
            return super().parsed(run_id, path)
        except ValueError:
            path.rename(path.with_suffix(".damaged"))
            raise


class MarksWhatIsDamaged(JSONFiles):
    """Raises each time, and has put a mark in the place of the record: nobody can restore what was left of it."""

    breaks: ClassVar[str | None] = "S10"

    def parsed(self, run_id: str, path: Path) -> Any:
        """Return the record, or mark it as damaged."""
        try:
            return super().parsed(run_id, path)
        except ValueError:
            path.write_text("damaged")
            raise


class BelievesTheNameOfTheFile(JSONFiles):
    """Does not look whose record a file holds: a backup that was restored under a wrong name is another run."""

    breaks: ClassVar[str | None] = "S10"

    def parsed(self, run_id: str, path: Path) -> Any:
        """Return the record, whoever's it is."""
        return json.loads(path.read_text())


class SkipsLaterVersions(JSONFiles):
    """Reads records of its own version, and none of a later release: after a downgrade every run begins anew.

    The kind of leinasi2014/dsh-rlm #63.
    """

    breaks: ClassVar[str | None] = "S10"

    def parsed(self, run_id: str, path: Path) -> Any:
        """Return the record, if its version is known."""
        record = super().parsed(run_id, path)
        return record if record["schema_version"] == 1 else None

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record with its version."""
        super().write(run_id, {**record, "schema_version": 1})


class SkipsDamagedLines(AppendOnlyLog):
    """Reads what it can of its log: a run whose last line is damaged goes back by a save, without a word."""

    breaks: ClassVar[str | None] = "S10"

    def replay(self, text: str) -> None:
        """Apply every line that is one."""
        for line in text.splitlines(keepends=True):
            try:
                super().replay(line)
            except ValueError:
                continue
