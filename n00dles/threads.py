"""Calling blocking code from the event loop, so that nothing is left running when the caller goes on."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar

__all__ = ["call_in_thread", "wait_out"]

T = TypeVar("T")


async def call_in_thread(executor: Executor | None, work: Callable[[], T], *, keep_result: bool = False) -> T:
    """Return what `work` returns in a thread of `executor` (None: the event loop's own).

    A thread cannot be interrupted: when the caller is cancelled, a call that has begun ends before the cancellation
    goes on. So a cancelled save never lands behind a newer one, and no node runs twice at the same time. With
    `keep_result`, what a call has returned meanwhile is returned, and the caller asks its task whether it is cancelled.
    """
    context = contextvars.copy_context()
    # A future of asyncio can be cancelled while its thread is at work, so whoever takes this lock first decides.
    turn = threading.Lock()

    def begin() -> T:
        if not turn.acquire(blocking=False):
            raise RuntimeError("the caller has gone")
        try:
            return context.run(work)
        except StopIteration as error:
            # No future carries it, and whoever awaits the job would wait for ever; generators do the same (PEP 479).
            raise RuntimeError("StopIteration came out of the call; did a next() find nothing?") from error

    job = asyncio.get_running_loop().run_in_executor(executor, begin)
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        if turn.acquire(blocking=False):
            job.cancel()
        else:
            await wait_out(job)
            if keep_result and not job.cancelled() and job.exception() is None:
                return job.result()
        raise


async def wait_out(*jobs: asyncio.Future[Any]) -> None:
    """Return when all `jobs` have ended, however often this task is cancelled meanwhile; their errors are dropped."""
    running = {job for job in jobs if not job.done()}
    while running:
        try:
            _, running = await asyncio.wait(running)
        except asyncio.CancelledError:
            running = {job for job in running if not job.done()}
    for job in jobs:
        if not job.cancelled():
            job.exception()
