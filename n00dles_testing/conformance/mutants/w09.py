"""Stores that break W09: a prune removes what is finished and old, whole, and nothing that is at work."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from .correct_shared import SharedFiles

__all__ = ["PrunesByTheTimeOfCreation", "PrunesWhatItHasListed"]


class PrunesByTheTimeOfCreation(SharedFiles):
    """Counts a run's age from its creation: one that took a week is removed on the day on which it is finished."""

    breaks: ClassVar[str | None] = "W09"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Note the time of the creation, or keep it."""
        stored = self.read(run_id) or {"created_at": time.time()}
        super().write(run_id, {**record, "created_at": stored["created_at"]})

    def time_of(self, record: dict[str, Any]) -> float:
        """Return the time of the creation."""
        return float(record["created_at"])


class PrunesWhatItHasListed(SharedFiles):
    """Lists what is to go, and removes that, one run after the other: by then it may be a run that was begun anew."""

    breaks: ClassVar[str | None] = "W09"

    def prune(self, *, older_than: float) -> list[str]:
        """List, then delete."""
        with self.lock:
            old = [record["run_id"] for record in self.finished() if self.time_of(record) < time.time() - older_than]
        for run_id in old:
            self.delete(run_id)
        return old
