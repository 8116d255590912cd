"""Work for the workers of any `concurrent.futures.Executor`: threads or processes here, or on other machines."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self, TypeVar

from .interpreters import working_folder

__all__ = ["Home", "handed_out", "no_workers", "size_of", "why_lost"]

_UNKNOWN_SIZE = 32
"""So many workers are kept busy where an executor does not say how many it has."""

Task = TypeVar("Task")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Home:
    """Where work comes from: the `folder` in which relative names begin, and the `path` that is imported from."""

    folder: str
    path: tuple[str, ...]

    @classmethod
    def here(cls) -> Self:
        """Return that of this process."""
        return cls(working_folder() or "", tuple(os.path.abspath(entry) for entry in sys.path))

    def bring(self) -> str | None:
        """Have this process import from there, too; return the folder, None if this machine has none of that name."""
        for entry in self.path:
            if entry not in sys.path:
                sys.path.append(entry)
        return self.folder if Path(self.folder).is_dir() else None


def handed_out(
    executor: Executor, work: Callable[[Task], Made], tasks: Iterable[Task], at_once: int
) -> Generator[tuple[Task, Future[Made]], None, None]:
    """Have workers do `work` on each task, `at_once` at a time, and yield each with its future as that is done.

    A task is drawn when it is handed out. The future of a worker that was lost has an error, as has that of a task that
    the executor does not take. On leaving, what nobody has begun is taken back. The executor stays open: it is somebody
    else's.
    """
    source = iter(tasks)
    waiting: dict[Future[Made], Task] = {}
    try:
        while True:
            for task in islice(source, at_once - len(waiting)):
                waiting[_submitted(executor, work, task)] = task
            if not waiting:
                return
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield waiting.pop(future), future
    finally:
        for future in waiting:
            future.cancel()


def _submitted(executor: Executor, work: Callable[[Task], Made], task: Task) -> Future[Made]:
    try:
        return executor.submit(work, task)
    except Exception as error:  # it is broken, or was shut down: nobody takes anything any more
        refused: Future[Made] = Future()
        refused.set_exception(error)
        return refused


def no_workers(workers: object) -> str:
    """Return why nothing can be shared out to `workers`; '' if it can."""
    if isinstance(workers, Executor) or (type(workers) is int and workers >= 1):
        return ""
    return f"workers={workers!r} is no number of workers, from 1, and no executor of concurrent.futures."


def why_lost(error: BaseException) -> str:
    """Return in one line why a worker is taken for lost."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0] or 'it gives no reason'}"


def size_of(executor: Executor) -> int:
    """Return how many workers an executor has, or a guess where it does not say."""
    size = getattr(executor, "_max_workers", None)
    return size if isinstance(size, int) and size > 0 else _UNKNOWN_SIZE
