"""Cancelling a save at a chosen moment, and the proof that the cancellation met it in the middle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .expect import BrokenClause
from .records import show
from .scenario import Handle, Scenario, describe

__all__ = ["CancelledSave", "Moment", "When", "cancel_a_save", "time_a_save"]


class When(Enum):
    """How a moment is given."""

    BEFORE = "before it has begun"
    WAITS = "while it waits (at its await {at})"
    IS_OVER = "when its await {at} is over, and it does not know yet"
    PART = "after {part:.0%} of the time that it takes"
    LIMIT = "by a time limit, after {part:.0%} of the time that it takes"


@dataclass(frozen=True, slots=True)
class Moment:
    """When a save is cancelled: at the await of this number, or after a part of the time that an undisturbed one took.

    `seconds` is that time.
    """

    when: When
    at: int = 0
    part: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        return self.when.value.format(at=self.at, part=self.part)


@dataclass(frozen=True, slots=True)
class CancelledSave:
    """How it ended. `awaits` counts how often it gave way to others; `is_hit` says that it was cancelled at one.

    `is_acknowledged` says that it returned all the same; without, nobody has said whether it is done.
    """

    awaits: int
    is_hit: bool
    is_acknowledged: bool


class _Awaited:
    """Awaits `work` for its task, and tells `gives_way` each time, with its number and what it waits for."""

    def __init__(self, work: Callable[[], Awaitable[Any]], gives_way: Callable[[int, Any], None]) -> None:
        self.count = 0
        self.is_hit = False
        self._work = work
        self._gives_way = gives_way

    def __await__(self) -> Generator[Any, None, Any]:
        steps: Any = self._work().__await__()
        thrown: BaseException | None = None
        while True:
            try:
                awaited = next(steps) if thrown is None else steps.throw(thrown)
            except StopIteration as stop:
                return stop.value
            self.count += 1
            self._gives_way(self.count, awaited)
            thrown = None
            try:
                yield awaited
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:  # the cancellation, on its way to the store
                self.is_hit = self.is_hit or isinstance(error, asyncio.CancelledError)
                thrown = error


async def time_a_save(s: Scenario, handle: Handle, outputs: Mapping[str, Any]) -> tuple[int, float]:
    """Save undisturbed; return how often that has given way to others, and the seconds that it took."""
    instance = await s.opened()
    for node, output in outputs.items():
        handle.context.checkpoint(node, output)
    awaited = _Awaited(lambda: instance.save(handle.run_id, handle.context), lambda *_: None)

    async def save() -> None:
        await awaited

    started = time.perf_counter()
    await s.call(f"save({show(handle.run_id)}) with {show(dict(outputs))}", save(), lambda _: "acknowledged")
    s.acknowledged[handle.run_id] = s.acknowledged[handle.run_id].after(outputs)
    return awaited.count, time.perf_counter() - started


async def cancel_a_save(
    s: Scenario, handle: Handle, outputs: Mapping[str, Any], moment: Moment, *, limit: float
) -> CancelledSave:
    """Save, and cancel that at a moment; return when it has ended.

    Raises `BrokenClause` if it has not within `limit` seconds.
    """
    instance = await s.opened()
    for node, output in outputs.items():
        handle.context.checkpoint(node, output)
    step = s.journal.write(f"save({show(handle.run_id)}) with {show(dict(outputs))}, cancelled {moment}")
    loop = asyncio.get_running_loop()

    def gives_way(number: int, awaited: Any) -> None:
        if number != moment.at:
            return
        if moment.when is When.IS_OVER and asyncio.isfuture(awaited):
            awaited.add_done_callback(lambda _: task.cancel())  # called before that which wakes the task
        else:
            loop.call_soon(task.cancel)

    awaited = _Awaited(lambda: instance.save(handle.run_id, handle.context), gives_way)
    task = asyncio.create_task(_limited(awaited, moment))
    if moment.when is When.BEFORE:
        task.cancel()
    elif moment.when is When.PART:
        loop.call_later(moment.part * moment.seconds, task.cancel)
    await asyncio.wait({task}, timeout=limit)
    if not task.done():
        s.journal.outcome(step, "has not ended")
        details = (("allowed", "it ends"), ("came", "nothing"), ("why", "whoever has cancelled it waits for its end"))
        raise BrokenClause(f"a cancelled save has not ended within {limit:.0f} s", details)
    error = None if task.cancelled() else task.exception()
    is_acknowledged = not task.cancelled() and error is None
    s.journal.outcome(
        step, "acknowledged" if is_acknowledged else f"raised {describe(error)}" if error else "cancelled"
    )
    return CancelledSave(awaited.count, awaited.is_hit, is_acknowledged)


async def _limited(awaited: _Awaited, moment: Moment) -> None:
    if moment.when is not When.LIMIT:
        await awaited
        return
    async with asyncio.timeout(moment.part * moment.seconds):
        await awaited
