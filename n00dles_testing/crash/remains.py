"""What a run leaves behind in its process once its executor has returned: tasks, calls, saves, threads."""

from __future__ import annotations

import asyncio
import sys
import threading
from types import FrameType
from typing import Any

from .instrument import Trigger
from .recorded_store import RecordedStore

__all__ = ["Remains"]

_LINGER_SECONDS = 0.2
_LOOK_SECONDS = 0.01
_IDLE = ("concurrent/futures/thread.py", "threading.py", "queue.py")
"""Where a thread is that waits for work, or is about to end."""
_HANDS_OVER = "concurrent/futures/_base.py", "_invoke_callbacks"
"""Where a thread of a pool is whose work has ended, while it tells so."""


class Remains:
    """Knows what was there before the run, so that it can tell afterwards what is there because of it."""

    def __init__(self, trigger: Trigger, store: RecordedStore) -> None:
        self._trigger = trigger
        self._store = store
        self._tasks = asyncio.all_tasks()
        self._threads = set(threading.enumerate())

    def now(self) -> dict[str, Any]:
        """Return what is left, for the ledger."""
        return {
            "tasks": sorted(map(_name, self._left_tasks())),
            "calls": sorted((+self._trigger.calling).elements()),
            "saves": self._store.saving,
            "threads": sorted(thread.name for thread in self._left_threads()),
        }

    async def linger(self) -> None:
        """Let what is left show what it does, for a short while; if nothing is, for a few turns of the event loop."""
        for _ in range(3):
            await asyncio.sleep(0)
        waited = 0.0
        while waited < _LINGER_SECONDS and (self._left_tasks() or self._left_threads() or self._store.saving):
            await asyncio.sleep(_LOOK_SECONDS)
            waited += _LOOK_SECONDS

    def _left_tasks(self) -> set[asyncio.Task[Any]]:
        return asyncio.all_tasks() - self._tasks

    def _left_threads(self) -> list[threading.Thread]:
        frames = sys._current_frames()
        started = [thread for thread in threading.enumerate() if thread not in self._threads]
        return [thread for thread in started if _is_at_work(frames.get(thread.ident or 0))]


def _is_at_work(frame: FrameType | None) -> bool:
    file, function = _HANDS_OVER
    is_at_work = False
    while frame is not None:
        path = frame.f_code.co_filename.replace("\\", "/")
        if path.endswith(file) and frame.f_code.co_name == function:
            return False
        is_at_work = is_at_work or not path.endswith(_IDLE)
        frame = frame.f_back
    return is_at_work


def _name(task: asyncio.Task[Any]) -> str:
    """Return the name that somebody gave it, or else what it runs."""
    name = task.get_name()
    coroutine = task.get_coro()
    return getattr(coroutine, "__qualname__", name) if name.startswith("Task-") else name
