"""Stores that break S12: newest is decided by sequence, not by clock."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from .correct import FilesWithRevisions, JSONFiles, StaleError, replace_file

__all__ = [
    "CompactsTheRunInUse",
    "CountsInTwoDigits",
    "ForgetsAfterAWeek",
    "LoadsTheLatest",
    "MakesTimesThatOnlyRise",
    "SkipsWhatIsNotNewer",
    "TakesATieForStale",
]

_SAVES_BETWEEN = 200
_WEEK = 7 * 86_400


class LoadsTheLatest(JSONFiles):
    """One file a save, named by the time, and the last name is loaded (microsoft/agent-framework #8513)."""

    breaks: ClassVar[str | None] = "S12"

    def read(self, run_id: str) -> Any:
        """Return the record with the latest time."""
        versions = self.versions(run_id)
        return self.parsed(run_id, max(versions)) if versions else None

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write another version."""
        replace_file(self.path(run_id).with_suffix(f".{time.time_ns():020}.json"), json.dumps(record))

    def delete(self, run_id: str) -> None:
        """Remove every version, the latest last: a kill in the middle leaves the run as it was."""
        with self.lock:
            for path in sorted(self.versions(run_id)):
                path.unlink()
            super().delete(run_id)

    def versions(self, run_id: str) -> list[Path]:
        """Return the files of a run."""
        return list(self.folder.glob(f"{self.path(run_id).stem}.*.json"))


class SkipsWhatIsNotNewer(JSONFiles):
    """`DO UPDATE … WHERE excluded.saved_at >= saved_at`: a save that seems older is acknowledged, and lost."""

    breaks: ClassVar[str | None] = "S12"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record, unless the stored one has a later time."""
        stored, now = self.read(run_id), datetime.now(UTC).isoformat()
        if stored is None or stored["saved_at"] <= now:
            super().write(run_id, {**record, "saved_at": now})


class TakesATieForStale(FilesWithRevisions):
    """Compares times instead of counting: a second save in one microsecond is stale (google/adk-python #4751)."""

    breaks: ClassVar[str | None] = "S12"

    def write_next(self, run_id: str, context: Any, stored: dict[str, Any]) -> None:
        """Write the next revision, if time has passed."""
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        if now == stored.get("saved_at"):
            raise StaleError(run_id, stored)
        super().write_next(run_id, context, stored)
        self.write(run_id, {**self.read(run_id), "saved_at": now})


class MakesTimesThatOnlyRise(LoadsTheLatest):
    """Names each version by a time that never goes back within a process, as generators of UUIDv7 and ULIDs do.

    All is well in one process, whatever its clock shows. Another one whose clock is behind begins below what is stored
    (langchain-ai/langgraph #7179).
    """

    breaks: ClassVar[str | None] = "S12"
    last: ClassVar[int] = 0

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write another version, later than every other one of this process."""
        MakesTimesThatOnlyRise.last = max(time.time_ns(), MakesTimesThatOnlyRise.last + 1)
        name = f".{MakesTimesThatOnlyRise.last:020}.json"
        replace_file(self.path(run_id).with_suffix(name), json.dumps(record))


class CountsInTwoDigits(LoadsTheLatest):
    """One file a save, named by a count in two digits, and the last name is loaded: "100" comes before "99"."""

    breaks: ClassVar[str | None] = "S12"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the version after the last one."""
        versions = sorted(self.versions(run_id))
        count = int(max(versions).suffixes[0][1:]) + 1 if versions else 0
        replace_file(self.path(run_id).with_suffix(f".{count:02}.json"), json.dumps(record))


class CompactsTheRunInUse(JSONFiles):
    """After every 200th save it removes the files that it takes for old: of all runs but the one in hand."""

    breaks: ClassVar[str | None] = "S12"
    also_breaks: ClassVar[tuple[str, ...]] = ("S02",)

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.saves = 0

    def save(self, run_id: str, context: Any) -> None:
        """Save, and compact."""
        super().save(run_id, context)
        self.saves += 1
        if self.saves % _SAVES_BETWEEN == 0:
            for path in set(self.folder.glob("*.json")) - {self.path(run_id)}:
                path.unlink()


class ForgetsAfterAWeek(JSONFiles):
    """`EXPIRE run 604800`: a run that waits for a person's answer is gone after a week, and begins anew."""

    breaks: ClassVar[str | None] = "S12"

    def read(self, run_id: str) -> Any:
        """Return the record, if it is not too old."""
        record = super().read(run_id)
        return None if record is None or time.time() - record.pop("saved_at") > _WEEK else record

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record with the time."""
        super().write(run_id, {**record, "saved_at": time.time()})
