"""Several processes that use one location at the same time, and what has to be known of a store before they do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from .capabilities import Outcome
from .child import Procedure
from .elsewhere import Elsewhere
from .expect import MisuseError, NotApplicableError
from .probes import find_out
from .scenario import Scenario
from .subject import StoreSubject

__all__ = ["all_at_once", "keeps_revisions", "moment", "require_shared", "workers"]

_LEAD_SECONDS = 0.03
"""Until all have been told when to begin, at the first attempt."""


async def require_shared(subject: StoreSubject) -> None:
    """Return if two processes that have a location open see each other's saves: else nobody can share it.

    Raises `NotApplicableError` with the proof of the probe `shared`, or `MisuseError` if that did not come so far.
    """
    outcome, proof = await subject.once("shared", lambda: find_out("shared", subject))
    if outcome is Outcome.FOUND:
        return
    if outcome is Outcome.ABSENT:
        raise NotApplicableError(f"the store is not shared: {proof}")
    raise MisuseError(f"whether the store is shared could not be found out: {proof}")


async def keeps_revisions(subject: StoreSubject) -> bool:
    """Whether each save raises the revision of the context that was saved, and another process loads that one."""

    async def find_out_once() -> bool:
        async with subject.probe("does a save raise the revision?") as s:
            handle = await s.create({"topic": "cats"})
            first = handle.context.revision
            await s.save(handle, {"researcher": "cats purr"})
            await s.close()
            again = await s.load(handle.run_id)
            return first < handle.context.revision == again.context.revision
        return False

    return await subject.once("revisions", find_out_once)


@asynccontextmanager
async def workers(s: Scenario, count: int) -> AsyncIterator[list[Elsewhere]]:
    """Start so many processes on the scenario's location, and end them on leaving; none has opened the store yet."""
    # One thread for each process that is waited for.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2 * count + 2))
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(s.elsewhere()) for _ in range(count)]


def moment(attempt: int = 1) -> float:
    """Return a time of the monotonic clock, in a moment: when processes that are told of it now begin together.

    It is further away with each attempt: a machine that is busy tells them later.
    """
    return time.monotonic() + _LEAD_SECONDS * attempt**2


async def all_at_once(
    processes: Sequence[Elsewhere], procedure: Procedure, text: str, arguments: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Have each process perform the procedure with its own arguments, all at the same time; return what came.

    All have ended before any is judged. Raises as `Elsewhere.perform` does, for the first that does.
    """
    calls = [process.perform(procedure, text, **each) for process, each in zip(processes, arguments, strict=True)]
    ends = await asyncio.gather(*calls, return_exceptions=True)
    came: list[dict[str, Any]] = []
    for end in ends:
        if isinstance(end, BaseException):
            raise end
        came.append(end)
    return came
