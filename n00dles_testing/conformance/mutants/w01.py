"""Stores that break W01: many processes, each with runs of its own, do not disturb each other."""

from __future__ import annotations

import fcntl
import threading
from typing import Any, ClassVar

from .correct import JSONFiles

__all__ = ["TidiesUpWithoutWaiting"]

_EVERY = 6
_in_turn = threading.RLock()
"""The threads of one process wait for each other."""


class TidiesUpWithoutWaiting(JSONFiles):
    """Removes what kills have left behind with every sixth save, under a lock for which it does not wait.

    Alone it always gets it. Beside others a save that is done raises that the folder is locked.
    """

    breaks: ClassVar[str | None] = "W01"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.saves = 0

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read the run's file, or write it."""
        with _in_turn:
            return super().load_or_create(run_id, inputs)

    def save(self, run_id: str, context: Any) -> None:
        """Replace the run's file, and now and then tidy up."""
        with _in_turn:
            super().save(run_id, context)
            self.saves += 1
            if self.saves % _EVERY == 0:
                self.tidy_up()

    def delete(self, run_id: str) -> None:
        """Remove the run's file."""
        with _in_turn:
            super().delete(run_id)

    def tidy_up(self) -> None:
        """Remove every file that was written aside and never renamed."""
        with self.lock.path.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for aside in self.folder.glob("*.new"):
                aside.unlink()
