"""Stores that break W04: a worker that was stopped, and wakes up when another has gone on, takes nothing back."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, ClassVar

from .correct import FilesWithRevisions, FolderLock

__all__ = ["BreaksOldLocks", "FencesByWhatItHasSeen"]

_AN_INSTANT = 0.002
_OLD = 0.6
"""In seconds. What a save takes is a hundredth of it, so nobody who holds the lock longer than that can be alive."""


class _LockThatAges(FolderLock):
    """A file that only one can create; one that is old was left by somebody who has died, and is taken away."""

    def __enter__(self) -> None:
        """Wait for the other threads, and create it."""
        self.of_threads.acquire()
        try:
            while not (self.held or self.is_created()):
                self.take_away_if_old()
        except BaseException:
            self.of_threads.release()
            raise
        self.held.append(0)

    def is_created(self) -> bool:
        """Try to be the one who creates it."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def take_away_if_old(self) -> None:
        """See how old it is, by the clock of the disk."""
        try:
            if time.time() - self.path.stat().st_mtime > _OLD:
                self.path.unlink()
            time.sleep(_AN_INSTANT)
        except FileNotFoundError:
            pass

    def __exit__(self, *_: object) -> None:
        """Take it away."""
        self.held.pop()
        try:
            if not self.held:
                self.path.unlink(missing_ok=True)
        finally:
            self.of_threads.release()


class BreaksOldLocks(FilesWithRevisions):
    """Looks at the revision and writes under a lock, which it takes for left behind when it is old.

    Whoever was stopped between the look and the write wakes up with a lock that others have taken away, and writes.
    """

    breaks: ClassVar[str | None] = "W04"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.lock = _LockThatAges(Path(folder))


class FencesByWhatItHasSeen(FilesWithRevisions):
    """Keeps the revision of each run in memory, so that a save need not read it: it knows every save of its process.

    Whoever saves a run after another process has, on a record that is older, takes that process's nodes away.
    """

    breaks: ClassVar[str | None] = "W04"
    also_breaks: ClassVar[tuple[str, ...]] = ("W02", "W08")

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.seen: dict[str, Any] = {}

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Note what is stored."""
        with self.lock:
            found = super().load_or_create(run_id, inputs)
            self.seen[run_id] = (found["incarnation"], found["revision"])
            return found

    def has_landed(self, context: Any, stored: dict[str, Any]) -> bool:
        """Note a save of its own that was only told to have failed."""
        has_landed = super().has_landed(context, stored)
        if has_landed:
            self.seen[stored["run_id"]] = (stored["incarnation"], stored["revision"])
        return has_landed

    def continues(self, context: Any, stored: dict[str, Any]) -> bool:
        """Compare with what was seen."""
        return bool(self.seen.get(stored["run_id"]) == (context.incarnation, context.revision))

    def write_next(self, run_id: str, context: Any, stored: dict[str, Any]) -> None:
        """Note it."""
        super().write_next(run_id, context, stored)
        self.seen[run_id] = (context.incarnation, context.revision)
