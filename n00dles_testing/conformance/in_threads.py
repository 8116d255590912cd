"""Doing several things in a thread each, all at once, and keeping what goes wrong in a thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from .scenario import describe

__all__ = ["in_threads"]


async def in_threads(works: Sequence[Callable[[], Any]], limit: float | None = None) -> tuple[bool, list[str]]:
    """Do each work in a thread, all at once; return whether all have ended within the limit, and what they raised.

    A thread drops its exception, and a check that goes on without it would judge what never happened. So a work catches
    what the store raises; the rest is told here, and also that a thread could not be started.
    """
    raised: list[str] = []

    def do(number: int, work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as error:
            raised.append(f"thread {number}: {describe(error)}")

    threads = [threading.Thread(target=do, args=each, daemon=True) for each in enumerate(works)]
    started: list[threading.Thread] = []
    for number, thread in enumerate(threads):
        try:
            thread.start()
        except RuntimeError as error:
            raised.append(f"thread {number}: {describe(error)}")
        else:
            started.append(thread)
    deadline = None if limit is None else time.monotonic() + limit
    for thread in started:
        await asyncio.to_thread(thread.join, None if deadline is None else max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in started), raised
