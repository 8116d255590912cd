"""Stores that break C05: a call that failed, or whose reply was lost, can be made again."""

from __future__ import annotations

from typing import Any, ClassVar

from .correct import FilesWithRevisions, JSONFiles

__all__ = ["IsStillDeleting", "TakesItsOwnSaveForAnothers"]


class TakesItsOwnSaveForAnothers(FilesWithRevisions):
    """A save that has landed and raised all the same is refused as stale when it is made again.

    The revision has gone on, so it must have been somebody else (ModernRelay/omnigraph #513).
    """

    breaks: ClassVar[str | None] = "C05"

    def has_landed(self, context: Any, stored: dict[str, Any]) -> bool:
        """Never ask."""
        return False


class IsStillDeleting(JSONFiles):
    """Notes that a run is being deleted, and takes the note back at the end: not, if it has failed behind the removal.

    A second attempt then waits for the first one, which nobody makes any more.
    """

    breaks: ClassVar[str | None] = "C05"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.deleting: set[str] = set()

    def delete(self, run_id: str) -> None:
        """Remove the file, unless that is being done."""
        with self.lock:
            if run_id in self.deleting and not self.path(run_id).exists():
                raise RuntimeError(f"run {run_id!r} is being deleted")
            self.deleting.add(run_id)
            super().delete(run_id)
            self.deleting.discard(run_id)
