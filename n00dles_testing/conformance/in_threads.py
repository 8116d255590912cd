"""Doing several things in a thread each, all at once, and keeping what goes wrong in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

from .scenario import describe

__all__ = ["in_threads"]

_PAUSE = 0.002


async def in_threads(
    works: Sequence[Callable[[], Any]], is_given_up: Callable[[], bool] = lambda: False
) -> tuple[bool, list[str]]:
    """Do each work in a thread, all at once; return whether all have ended before it was given up, and what was raised.

    A thread drops its exception, and a check that goes on without it would judge what never happened. So a work catches
    what the store raises; the rest is told here, and also that a thread could not be started.
    """
    raised: list[str] = []

    def do(number: int, work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as error:
            raised.append(f"thread {number}: {describe(error)}")

    started: list[threading.Thread] = []
    for each in enumerate(works):
        thread = threading.Thread(target=do, args=each, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raised.append(f"thread {each[0]}: {describe(error)}")
        else:
            started.append(thread)
    while any(thread.is_alive() for thread in started):
        if is_given_up():
            return False, raised
        await asyncio.sleep(_PAUSE)
    return True, raised
