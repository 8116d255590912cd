"""Stores that break C05: a call that failed, or whose reply was lost, can be made again."""

from __future__ import annotations

from typing import Any, ClassVar

from .correct import FilesWithRevisions, JSONFiles, merged, record_of

__all__ = ["IsStillDeleting", "LandsWithTheNextSave", "TakesAnySaveForItsOwn", "TakesItsOwnSaveForAnothers"]


class TakesItsOwnSaveForAnothers(FilesWithRevisions):
    """A save that has landed and raised all the same is refused as stale when it is made again.

    The revision has gone on, so it must have been somebody else (ModernRelay/omnigraph #513).
    """

    breaks: ClassVar[str | None] = "C05"

    def has_landed(self, context: Any, stored: dict[str, Any]) -> bool:
        """Never ask."""
        return False


class TakesAnySaveForItsOwn(FilesWithRevisions):
    """A save that is made again after an error is not compared with what is stored: whatever is there must be its own.

    Another worker that has saved in between loses its nodes.
    """

    breaks: ClassVar[str | None] = "C05"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.in_doubt: list[Any] = []

    def continues(self, context: Any, stored: dict[str, Any]) -> bool:
        """Whether a context is in doubt, or is as what is stored."""
        return any(context is each for each in self.in_doubt) or super().continues(context, stored)

    def write_next(self, run_id: str, context: Any, stored: dict[str, Any]) -> None:
        """Write the next revision; until that has come through, the context is in doubt."""
        self.in_doubt.append(context)
        super().write_next(run_id, context, stored)
        self.in_doubt = [each for each in self.in_doubt if each is not context]


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


class LandsWithTheNextSave(JSONFiles):
    """Keeps a record that could not be written, and writes it with the next save of another run, to be helpful.

    The caller has been told that it failed, has saved again and gone on: the old record lands over the new one.
    """

    breaks: ClassVar[str | None] = "C05"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.owed: dict[str, dict[str, Any]] = {}

    def save(self, run_id: str, context: Any) -> None:
        """Save, and then what is owed to others."""
        with self.lock:
            stored = self.read(run_id)
            try:
                super().save(run_id, context)
            except OSError:
                self.owed[run_id] = merged(stored, record_of(context))
                raise
            for other in [each for each in self.owed if each != run_id]:
                self.write(other, self.owed.pop(other))
