"""Time limits of node calls, with one timer of the event loop for all calls of a run.

`asyncio.timeout` arms and cancels a timer for each call, which is a quarter of what the executor spends on a node. Here
the timer stays armed while calls come and go, and sees when it fires which of them are overdue. Cancellation is told
from a cancellation by somebody else as `asyncio.timeout` does it, by the count of requests.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

__all__ = ["TimeLimit", "TimeLimits"]


class TimeLimits:
    """The limits of the calls that are under way. Used in one event loop; `close` it when no call is."""

    def __init__(self) -> None:
        self._running: set[TimeLimit] = set()
        self._timer: asyncio.TimerHandle | None = None

    def of(self, seconds: float) -> TimeLimit:
        """Return a limit for the `with` block that makes one call."""
        return TimeLimit(self, seconds)

    def close(self) -> None:
        """Let go of the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def start(self, limit: TimeLimit, loop: asyncio.AbstractEventLoop) -> None:
        """Watch `limit` until it is ended."""
        self._running.add(limit)
        if self._timer is None or limit.deadline < self._timer.when():
            self.close()
            self._timer = loop.call_at(limit.deadline, self._look, loop)

    def end(self, limit: TimeLimit) -> None:
        """Watch `limit` no more."""
        self._running.discard(limit)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for limit in [limit for limit in self._running if limit.deadline <= now]:
            self._running.discard(limit)
            limit.expire()
        if self._running:
            self._timer = loop.call_at(min(limit.deadline for limit in self._running), self._look, loop)


class TimeLimit:
    """Ends the block with `TimeoutError` when it takes longer than `seconds`."""

    __slots__ = ("_cancelling", "_expired", "_limits", "_seconds", "_task", "deadline")

    def __init__(self, limits: TimeLimits, seconds: float) -> None:
        self._limits = limits
        self._seconds = seconds
        self._expired = False

    def expired(self) -> bool:
        """Whether the block was ended by this limit."""
        return self._expired

    def expire(self) -> None:
        """End the block."""
        self._expired = True
        self._task.cancel()

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a time limit needs a task")
        self._task = task
        self._cancelling = task.cancelling()
        self.deadline = loop.time() + self._seconds
        self._limits.start(self, loop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._limits.end(self)
        if self._expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error
