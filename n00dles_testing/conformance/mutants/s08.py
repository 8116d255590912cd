"""Stores that break S08: a save from an older state takes nothing away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from .correct import FilesWithRevisions, JSONFiles, NotStoredError, StaleError, merged, replace_file
from .outputs_aside import LARGE, OutputsAside

__all__ = ["CountsInMemory", "LastWriterWins", "RefusesAndWrites", "TakesItsOwnRevision", "UploadsBeforeItCompares"]


class LastWriterWins(JSONFiles):
    """`UPDATE runs SET record = ?`: a worker that is behind takes away what others have completed."""

    breaks: ClassVar[str | None] = "S08"
    # Saves that overlap, and one that is made again after another worker has saved, come from an older state, too.
    also_breaks: ClassVar[tuple[str, ...]] = ("S09", "C05")

    def save(self, run_id: str, context: Any) -> None:
        """Replace the run's file, whatever is in it."""
        with self.lock:
            if self.read(run_id) is None:
                raise NotStoredError(run_id)
            self.write(run_id, self.kept(context))


class CountsInMemory(FilesWithRevisions):
    """Keeps the revisions in the store object: one that has just been opened knows none, and takes any.

    The kind of langchain-ai/langgraph #8136: a guard that is one per instance. After a save that has landed and failed
    all the same, it counts differently from what is stored, so C04 and C05 see it as well.
    """

    breaks: ClassVar[str | None] = "S08"
    also_breaks: ClassVar[tuple[str, ...]] = ("C04", "C05")

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.seen: dict[str, int] = {}

    def continues(self, context: Any, stored: dict[str, Any]) -> bool:
        """Whether nobody has saved the run through this object since."""
        seen = self.seen.get(stored["run_id"], context.revision)
        return bool(context.incarnation == stored["incarnation"] and context.revision == seen)

    def write_next(self, run_id: str, context: Any, stored: dict[str, Any]) -> None:
        """Write the next revision, and remember it if the run is remembered."""
        super().write_next(run_id, context, stored)
        if run_id in self.seen:
            self.seen[run_id] = context.revision

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Return the run, and remember the revision of a new one."""
        is_new = self.read(run_id) is None
        record = super().load_or_create(run_id, inputs)
        if is_new:
            self.seen[run_id] = record["revision"]
        return record


class RefusesAndWrites(FilesWithRevisions):
    """Writes before it compares, and takes nothing back: the worker is refused, and its node is there all the same."""

    breaks: ClassVar[str | None] = "S08"
    # A save made again after another worker has saved is such a save, too.
    also_breaks: ClassVar[tuple[str, ...]] = ("C05",)

    def save(self, run_id: str, context: Any) -> None:
        """Merge into the run's file, then look whether that was right."""
        with self.lock:
            stored = self.read(run_id)
            if (
                stored is not None
                and stored["incarnation"] == context.incarnation
                and not self.continues(context, stored)
                and not self.has_landed(context, stored)
            ):
                self.write(run_id, merged(stored, self.kept(context)))
                raise StaleError(run_id, stored)
            super().save(run_id, context)


class TakesItsOwnRevision(FilesWithRevisions):
    """Reloads and writes when the revision does not fit (google/adk-python #3717): refused once, and taken then."""

    breaks: ClassVar[str | None] = "S08"

    def save(self, run_id: str, context: Any) -> None:
        """Replace the run's file; a context that was refused is taken at its next attempt."""
        try:
            super().save(run_id, context)
        except StaleError:
            stored = self.read(run_id)
            if stored is not None and stored["incarnation"] == context.incarnation:
                context.revision = stored["revision"]
            raise


class UploadsBeforeItCompares(OutputsAside, FilesWithRevisions):
    """Puts large outputs where they belong, by node, and then compares: who is refused has replaced them."""

    breaks: ClassVar[str | None] = "S08"

    def save(self, run_id: str, context: Any) -> None:
        """Write the large outputs, then save."""
        with self.lock:
            texts = {node: json.dumps(context.completed[node]) for node in context.order}
            for node, text in texts.items():
                if len(text) > LARGE and self.path(run_id).exists():
                    replace_file(self.aside(run_id, node, text), text)
            super().save(run_id, context)

    def aside(self, run_id: str, node: str, text: str) -> Path:
        """Return the file of a node, whatever its output is."""
        return super().aside(run_id, node, "")
