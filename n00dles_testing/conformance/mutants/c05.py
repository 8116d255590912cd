"""Stores that break C05: a call that failed, or whose reply was lost, can be made again."""

from __future__ import annotations

from typing import Any, ClassVar

from .correct import FilesWithRevisions, JSONFiles, sync_folder

__all__ = ["DeletesOnlyWhatIsThere", "TakesItsOwnSaveForAnothers"]


class TakesItsOwnSaveForAnothers(FilesWithRevisions):
    """A save that has landed and raised all the same is refused as stale when it is made again.

    The revision has gone on, so it must have been somebody else (ModernRelay/omnigraph #513).
    """

    breaks: ClassVar[str | None] = "C05"

    def has_landed(self, context: Any, stored: dict[str, Any]) -> bool:
        """Never ask."""
        return False


class DeletesOnlyWhatIsThere(JSONFiles):
    """Remembers which runs it has written, and removes the file of such a run: it must be there.

    It is not, if the first delete has removed it and failed behind that.
    """

    breaks: ClassVar[str | None] = "C05"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.written: set[str] = set()

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the file, and remember the run."""
        super().write(run_id, record)
        self.written.add(run_id)

    def delete(self, run_id: str) -> None:
        """Remove the file; of an unknown run only if there is one."""
        with self.lock:
            self.path(run_id).unlink(missing_ok=run_id not in self.written)
            sync_folder(self.folder)
            self.written.discard(run_id)
