"""Stores that break S07: a deleted run is gone, alone and for good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from .correct import AppendOnlyLog, JSONFiles, merged, new_record, replace_file
from .outputs_aside import OutputsAside

__all__ = [
    "ASaveBringsItBack",
    "DeletesOneBatch",
    "DeletesTheLastVersion",
    "LeavesALineInTheLog",
    "LeavesReplacedOutputs",
    "MissesWhatIsGone",
    "SharesLargeOutputs",
    "TakesItsGroupAlong",
]

_BATCH = 25


class ASaveBringsItBack(JSONFiles):
    """An upsert: whoever still has the run in hand writes it whole, deleted or not (langchain-ai/langgraph #7206)."""

    breaks: ClassVar[str | None] = "S07"

    def save(self, run_id: str, context: Any) -> None:
        """Write the run, whether it is stored or not."""
        with self.lock:
            record = self.kept(context)
            self.write(run_id, merged(self.read(run_id) or new_record(run_id, context.inputs), record))


class LeavesALineInTheLog(AppendOnlyLog):
    """A delete appends that the run is gone, and all that was in it stays on disk for ever."""

    breaks: ClassVar[str | None] = "S07"

    def delete(self, run_id: str) -> None:
        """Append a line."""
        with self.sound():
            self.append(run_id, None)


class DeletesTheLastVersion(JSONFiles):
    """Keeps the version before each save as a backup, and deletes the newest: the one before is back.

    So it is after a restart, too.
    """

    breaks: ClassVar[str | None] = "S07"
    also_breaks: ClassVar[tuple[str, ...]] = ("C01", "C02")

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Keep the version that was there, and replace it."""
        if self.path(run_id).exists():
            replace_file(self.backup(run_id), self.path(run_id).read_text())
        super().write(run_id, record)

    def read(self, run_id: str) -> Any:
        """Return the newest version that there is."""
        backup = self.backup(run_id)
        return super().read(run_id) or (json.loads(backup.read_text()) if backup.exists() else None)

    def backup(self, run_id: str) -> Path:
        """Return the file of the version before."""
        return self.path(run_id).with_suffix(".backup")


class TakesItsGroupAlong(JSONFiles):
    """Deletes by the part of the id before its last `-`, as the runs of one thread: all that share it are gone.

    The kind of langchain-ai/langgraph #8300. Ids that differ behind a `-` are mixed up as well, so S06 sees it.
    """

    breaks: ClassVar[str | None] = "S07"
    also_breaks: ClassVar[tuple[str, ...]] = ("S06", "S12", "C01", "C02", "P02")

    def delete(self, run_id: str) -> None:
        """Remove every run of the group."""
        super().delete(run_id)
        group = run_id.rpartition("-")[0]
        for path in list(self.folder.glob("*.json")):
            if bytes.fromhex(path.stem).decode().startswith(f"{group}-"):
                path.unlink()


class MissesWhatIsGone(JSONFiles):
    """Raises for a run that is not there, so a delete whose reply was lost cannot be repeated, as C05 sees as well."""

    breaks: ClassVar[str | None] = "S07"
    also_breaks: ClassVar[tuple[str, ...]] = ("C05",)

    def delete(self, run_id: str) -> None:
        """Remove the run's file, which must be there."""
        self.path(run_id).unlink()
        super().delete(run_id)


class DeletesOneBatch(JSONFiles):
    """Deletes 25 nodes, as many as one batch of DynamoDB takes, and never the next ones: a long run is not gone."""

    breaks: ClassVar[str | None] = "S07"

    def delete(self, run_id: str) -> None:
        """Remove the first 25 nodes, and the run with the last of them."""
        with self.lock:
            stored = self.read(run_id)
            left = stored["order"][_BATCH:] if stored else []
            if left:
                outputs = {node: stored["completed"][node] for node in left}
                self.write(run_id, {**stored, "order": left, "completed": outputs})
            else:
                super().delete(run_id)


class SharesLargeOutputs(OutputsAside):
    """Keeps equal large outputs once, under their hash; a delete removes them, and other runs have them too."""

    breaks: ClassVar[str | None] = "S07"

    def aside(self, run_id: str, node: str, text: str) -> Path:
        """Return the file of an output, whoever has it."""
        return super().aside("shared", "", text)

    def tidy(self, run_id: str, named: set[str]) -> None:
        """Leave the files: another run may have them."""

    def delete(self, run_id: str) -> None:
        """Remove the record, and the files that it names."""
        with self.lock:
            path = self.path(run_id)
            names = json.loads(path.read_text())["aside"].values() if path.exists() else ()
            super().delete(run_id)
            for name in set(names):
                (self.folder / name).unlink(missing_ok=True)


class LeavesReplacedOutputs(OutputsAside):
    """Deletes the large outputs that the record names: one that another has replaced stays on the disk for ever."""

    breaks: ClassVar[str | None] = "S07"

    def tidy(self, run_id: str, named: set[str]) -> None:
        """Leave the files that no record names."""

    def delete(self, run_id: str) -> None:
        """Remove the record, and the files that it names."""
        with self.lock:
            path = self.path(run_id)
            names = json.loads(path.read_text())["aside"].values() if path.exists() else ()
            super().delete(run_id)
            for name in names:
                (self.folder / name).unlink(missing_ok=True)
