"""Stores that break W02: clients that save one run at the same time lose no update."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

from .correct import FilesWithRevisions, StaleError

__all__ = ["ComparesBeforeItLocks", "LosesItsLockByAClose"]

_in_turn = threading.RLock()
"""The threads of one process wait for each other."""


class ComparesBeforeItLocks(FilesWithRevisions):
    """Reads and compares the revision, and then takes the lock between processes for writing.

    Two that have compared both write: a guard that is one per process, the kind of langchain-ai/langgraph #8136.
    """

    breaks: ClassVar[str | None] = "W02"

    def save(self, run_id: str, context: Any) -> None:
        """Replace the run's file, if the context continued it a moment ago."""
        with _in_turn:
            stored = self.read(run_id)
            if stored is not None and self.has_landed(context, stored):
                context.revision = stored["revision"]
            if stored is None or not self.continues(context, stored):
                raise StaleError(run_id, stored)
            with self.lock:
                self.write_next(run_id, context, stored)


class LosesItsLockByAClose(FilesWithRevisions):
    """Locks the folder by `lockf`, with a descriptor for each call, and each run by a lock between threads.

    A lock of POSIX belongs to the process: when a call on one run ends, and closes its descriptor, the lock that
    another call holds for another run is gone as well, and another process may come in between.
    """

    breaks: ClassVar[str | None] = "W02"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.lock = _PosixLock(Path(folder))  # type: ignore[assignment]
        self.runs: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read the run's file, or write it."""
        with self.runs[run_id]:
            return super().load_or_create(run_id, inputs)

    def save(self, run_id: str, context: Any) -> None:
        """Replace the run's file, if the context continues it."""
        with self.runs[run_id]:
            super().save(run_id, context)

    def delete(self, run_id: str) -> None:
        """Remove the run's file."""
        with self.runs[run_id]:
            super().delete(run_id)


class _PosixLock:
    """One process at a time, as long as no thread of it closes the file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lock"
        self.held = threading.local()

    def __enter__(self) -> None:
        """Wait for the other processes."""
        self.held.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT)
        while True:
            try:
                fcntl.lockf(self.held.descriptor, fcntl.LOCK_EX)
            except OSError:  # the kernel takes it for a deadlock: two threads of one process are one to it
                time.sleep(0.0005)
            else:
                return

    def __exit__(self, *_: object) -> None:
        """Give the lock up."""
        os.close(self.held.descriptor)
