"""Ending a run from outside while its process lives on: it is cancelled, runs out of time, or gets a SIGINT.

The run is a task of its own then, as it is for whoever calls `asyncio.run(arun(…))`, or awaits it under a time limit.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Generator
from typing import Any, cast

from .points import How

__all__ = ["Awaits", "Disturbance"]


class Awaits:
    """Awaits `work` for its task, counting how often that gives way to others, and tells `gives_way` each time.

    `gives_way` is told the number and who can say where that is, as in "Checkpointer.save > call_in_thread". `until`
    is when the work last went on, in the time of `clock`: what is asked of it later reaches it no more.
    """

    def __init__(
        self,
        work: Awaitable[Any],
        gives_way: Callable[[int, Callable[[], str]], None],
        clock: Callable[[], float],
    ) -> None:
        self.count = 0
        self.until = clock()
        self._work = work
        self._gives_way = gives_way
        self._clock = clock

    def __await__(self) -> Generator[Any, None, Any]:
        work: Any = self._work if inspect.iscoroutine(self._work) else self._work.__await__()
        thrown = None
        while True:
            try:
                awaited = work.send(None) if thrown is None else work.throw(thrown)
            except StopIteration as stop:
                return stop.value
            self.count += 1
            self._gives_way(self.count, self._where)
            thrown = None
            try:
                yield awaited
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:  # a cancellation, on its way to the work
                thrown = error
            self.until = self._clock()

    def _where(self) -> str:
        names, inner = [], cast(Any, self._work)
        while inspect.iscoroutine(inner):
            names.append(inner.cr_code.co_qualname)
            inner = inner.cr_await
        return " > ".join(names[-_SHOWN_FRAMES:])


_SHOWN_FRAMES = 3


class Disturbance:
    """What one life is disturbed with, if it is to be ended from outside. `delivered` says that it got through.

    `interrupt` sends a SIGINT to this process; without it the task that lives is cancelled, which is what asyncio makes
    of the signal.
    """

    def __init__(self, how: How | None, interrupt: Callable[[], None] | None) -> None:
        self.how = how
        self._interrupt = interrupt
        self._limit: asyncio.Timeout | None = None
        self._run: asyncio.Task[Any] | None = None
        self._living: asyncio.Task[Any] | None = None
        self._was_cancelled = False
        self._was_interrupted = False

    @property
    def is_from_outside(self) -> bool:
        """Whether the run has to be a task of its own for it."""
        return self.how in (How.CANCEL, How.TIMEOUT, How.INTERRUPT)

    @property
    def delivered(self) -> bool:
        """Whether the run was there to be ended, and has been told."""
        if self.how is How.TIMEOUT:
            return self._limit is not None and self._limit.expired()
        return self._was_cancelled

    async def around(self, work: Awaitable[Any]) -> Any:
        """Await `work` in a task that can be ended by `strike`. What it raises is what its caller would see."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._living = asyncio.current_task()
        self._run = asyncio.ensure_future(self._limited(work))
        self._run.set_name("the run")
        try:
            return await self._run
        except asyncio.CancelledError:
            if self._take_back_interrupt():
                # asyncio.run raises it in this place, once it has seen its main task end as cancelled.
                raise KeyboardInterrupt from None
            raise
        finally:
            self._take_back_interrupt()

    async def _limited(self, work: Awaitable[Any]) -> Any:
        if self.how is not How.TIMEOUT:
            return await work
        async with asyncio.timeout(None) as self._limit:
            return await work

    def strike(self) -> None:
        """End the run; from whichever thread something of it is at work in."""
        if self._has_ended():
            return  # what it has left behind passes a point that the run did not: there is nobody to be told
        if self.how is How.INTERRUPT and self._interrupt is not None:
            self._was_interrupted = True
            self._interrupt()
        elif threading.get_ident() == self._thread:
            self._deliver()
        else:
            self._loop.call_soon_threadsafe(self._deliver)

    def _has_ended(self) -> bool:
        return self._run is not None and self._run.done()

    def _deliver(self) -> None:
        if self._has_ended():
            return
        if self.how is How.TIMEOUT:
            if self._limit is not None and not self._limit.expired():
                self._limit.reschedule(self._loop.time())
        elif self.how is How.INTERRUPT:
            if self._living is not None:
                self._was_interrupted = self._living.cancel()
        elif self._run is not None:
            self._was_cancelled = self._run.cancel()

    def _take_back_interrupt(self) -> bool:
        """Return whether the task that lives was cancelled by an interrupt; it goes on, to write down what came."""
        if not self._was_interrupted or self._living is None or self._living.cancelling() != 1:
            return False
        self._living.uncancel()
        self._was_interrupted, self._was_cancelled = False, True
        return True

    _loop: asyncio.AbstractEventLoop
    _thread: int
