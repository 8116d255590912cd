"""Calling blocking code from the event loop, so that nothing is left running when the caller goes on."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar

__all__ = ["call_in_thread"]

T = TypeVar("T")


async def call_in_thread(executor: Executor | None, work: Callable[[], T]) -> T:
    """Return what `work` returns in a thread of `executor` (None: the event loop's own).

    A thread cannot be interrupted: when the caller is cancelled, a call that has begun ends before the cancellation
    goes on. So a cancelled save never lands behind a newer one, and no node runs twice at the same time.
    """
    context = contextvars.copy_context()
    job = asyncio.get_running_loop().run_in_executor(executor, context.run, work)
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        if not job.cancel():
            await _end_of(job)
        raise


async def _end_of(job: asyncio.Future[Any]) -> None:
    while not job.done():
        try:
            await asyncio.wait([job])
        except asyncio.CancelledError:
            continue
    if not job.cancelled():
        job.exception()
