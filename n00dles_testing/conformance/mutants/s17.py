"""Stores that break S17: each does all single things right, and fails when they meet in one order."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, ClassVar

from .correct import FilesWithRevisions, JSONFiles

__all__ = ["AcknowledgesARepetition", "CachesByRevision", "CountsAnew", "RemembersWhatIsGone"]


class CountsAnew(FilesWithRevisions):
    """A revision, and nothing that tells two runs of one id: the next run begins to count at 1 again.

    A worker of the deleted run is refused until the next one is just as long, and then its outputs are taken.
    """

    breaks: ClassVar[str | None] = "S17"

    def continues(self, context: Any, stored: dict[str, Any]) -> bool:
        """Whether the numbers are the same."""
        return bool(context.revision == stored["revision"])


class AcknowledgesARepetition(JSONFiles):
    """Takes a save that is equal to the last one for a repetition whose reply was lost, and does nothing.

    Whoever deletes a run and runs the same pipeline again gets the same outputs: acknowledged, and not stored.
    """

    breaks: ClassVar[str | None] = "S17"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.last: dict[str, str] = {}

    def save(self, run_id: str, context: Any) -> None:
        """Replace the run's file, unless it is what was saved last."""
        with self.lock:
            kept = json.dumps(self.kept(context))  # not as Python compares, for which 1 is True
            if self.last.get(run_id) == kept:
                return
            super().save(run_id, context)
            self.last[run_id] = kept


class CachesByRevision(FilesWithRevisions):
    """Gives what it has read before as long as the revision is the same; a delete empties the cache of its instance.

    One that was deleted and created anew by another instance, and is as long as before, comes back as it was.
    """

    breaks: ClassVar[str | None] = "S17"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.cache: dict[str, dict[str, Any]] = {}

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Return the cached run, if its revision is that of the file."""
        with self.lock:
            record = super().load_or_create(run_id, inputs)
            cached = self.cache.get(run_id)
            if cached is None or cached["revision"] != record["revision"]:
                self.cache[run_id] = record
            return deepcopy(self.cache[run_id])

    def delete(self, run_id: str) -> None:
        """Forget the run, and remove its file."""
        with self.lock:
            self.cache.pop(run_id, None)
            super().delete(run_id)


class RemembersWhatIsGone(JSONFiles):
    """Remembers what it has deleted, and does not look for it: what another process makes of it is not seen."""

    breaks: ClassVar[str | None] = "S17"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.gone: set[str] = set()

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Create a run that was deleted without a look at the disk."""
        with self.lock:
            if run_id in self.gone:
                self.path(run_id).unlink(missing_ok=True)
                self.gone.remove(run_id)
            return super().load_or_create(run_id, inputs)

    def delete(self, run_id: str) -> None:
        """Remove the run's file, and remember that."""
        with self.lock:
            super().delete(run_id)
            self.gone.add(run_id)
