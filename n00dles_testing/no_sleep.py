"""Sleeps that are recorded and not slept, and a search for those that would block the event loop.

A test of retries that really sleeps takes minutes; one that sets all delays to 0 does not see that the code calls
`time.sleep` where it should have awaited. Reports behind it: stanfordnlp/dspy PR #10157, jaylfc/taOS PR #1088.
"""

from __future__ import annotations

import asyncio
import math
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest

from n00dles.idempotency import current_node

from .callers import find_caller
from .frozen_time import FrozenTime
from .no_sleep_places import replaced

__all__ = ["NoSleep", "Sleep", "watched"]

_REAL_PAUSE = 0.001
_OTHERS = (
    *("_pytest", "pytest_timeout", "xdist", "execnet", "n00dles_testing"),
    *("subprocess", "multiprocessing", "psycopg", "redis", "valkey"),
)
_REAL = (*_OTHERS, "n00dles.stores", "n00dles.leasing")
"""Modules that begin with one of these wait for something real (a process, a server, a lease), so they really do.

Threads, executors and event loops are none of them: where one of these calls `sleep`, it was handed to it.
"""

_BETWEEN = ("anyio", "asyncio", "contextlib", "functools", "n00dles_testing")
_real_sleep, _real_async_sleep = time.sleep, asyncio.sleep
_PLUGIN = "n00dles-no-sleep"


@dataclass(frozen=True, slots=True)
class Sleep:
    """A sleep that was asked for, and not slept.

    `who` is the module that asked, of a library its name ("n00dles" for the executor, "tenacity"); `where` the line of
    the program or the test behind it; `node` that of the run, if one is called or waits to be called again.
    `is_blocking` says that it was `time.sleep` in a thread with a running event loop.
    """

    seconds: float
    who: str
    where: str
    node: str | None = None
    is_blocking: bool = False


class NoSleep:
    """Records what `asyncio.sleep` and `time.sleep` are asked for, in all threads; `calls` has it, in order.

    Sleeps of less than `threshold` seconds are slept: they wait for something, or only yield. All others return after a
    millisecond, in which other tasks and threads get their turn. A blocking `time.sleep` in async code is never slept,
    however short it is, and fails the test. With a held clock, that is moved on to where the sleep would have ended.
    """

    def __init__(self, clock: FrozenTime | None = None) -> None:
        self.calls: list[Sleep] = []
        self.threshold = 0.05
        self._clock = clock
        self._lock = threading.Lock()

    @property
    def blocking(self) -> list[Sleep]:
        """The sleeps that would have blocked an event loop."""
        return [call for call in self.calls if call.is_blocking]

    def problem(self) -> str | None:
        """Say which sleeps would have blocked an event loop, if any."""
        lines = [f"  {call.where}: time.sleep({call.seconds:g}){_of_node(call.node)}" for call in self.blocking]
        if not lines:
            return None
        return "\n".join(
            [
                "time.sleep was called in async code, where it stops every other task of the event loop:",
                *dict.fromkeys(lines),
                "Write `await asyncio.sleep(…)` there, or move blocking work to a sync body: that runs in a thread.",
            ]
        )

    def sleep(self, seconds: float, frame: FrameType) -> None:
        """Stand for `time.sleep`."""
        is_blocking = asyncio._get_running_loop() is not None
        is_real = not 0 <= seconds < math.inf or _is_real(frame)
        if is_real or (seconds < self.threshold and not is_blocking):
            _real_sleep(seconds)
            return
        begin = self._moment()
        self._note(seconds, frame, is_blocking)
        if not is_blocking:
            _real_sleep(_REAL_PAUSE)
        self._move_on(begin, seconds)

    async def async_sleep(self, seconds: float, noted: Callable[[], None]) -> None:
        """Stand for `asyncio.sleep`."""
        begin = self._moment()
        noted()
        await _real_async_sleep(_REAL_PAUSE)
        self._move_on(begin, seconds)

    def is_slept(self, seconds: float, frame: FrameType) -> bool:
        """Whether an `asyncio.sleep` is a real one."""
        return not self.threshold <= seconds < math.inf or _is_real(frame)

    def _note(self, seconds: float, frame: FrameType, is_blocking: bool) -> None:
        caller = find_caller(frame)
        where = str(caller) if caller is not None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
        call = Sleep(seconds, _who(frame), where, current_node(), is_blocking)
        with self._lock:
            self.calls.append(call)

    def _moment(self) -> float:
        return 0.0 if self._clock is None else self._clock.now.timestamp()

    def _move_on(self, begin: float, seconds: float) -> None:
        """Move a held clock to the end of a sleep; of sleeps side by side, to the last end."""
        if self._clock is not None:
            with self._lock:
                self._clock.tick(max(0.0, begin + seconds - self._moment()))


@contextmanager
def watched(request: pytest.FixtureRequest) -> Iterator[NoSleep]:
    """Give the test of `request` its `no_sleep`; the test fails if it has blocked an event loop."""
    plugins = request.config.pluginmanager
    if not plugins.has_plugin(_PLUGIN):  # so that a run without it has one hook less to call
        plugins.register(_Reports(), _PLUGIN)
    clock = request.getfixturevalue("frozen_time") if "frozen_time" in request.fixturenames else None
    with sleepless(clock) as no_sleep:
        request.node.stash[_watched] = no_sleep
        yield no_sleep


_watched: pytest.StashKey[NoSleep] = pytest.StashKey()
_current: NoSleep | None = None


class _Reports:
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail a test that has blocked an event loop, or add that to its failure."""
        __tracebackhide__ = True
        no_sleep = item.stash.get(_watched, None)
        try:
            result = yield
        except Exception as error:
            if no_sleep is not None and (problem := no_sleep.problem()):
                error.add_note(problem)
            raise
        if no_sleep is not None and (problem := no_sleep.problem()):
            pytest.fail(problem, pytrace=False)
        return result


@contextmanager
def sleepless(clock: FrozenTime | None = None) -> Iterator[NoSleep]:
    """Record sleeps in the `with` block instead of sleeping them, also where something else than `time` has `sleep`."""
    global _current  # noqa: PLW0603 - a process has one time.sleep
    before, _current = _current, NoSleep(clock)
    stand_ins: dict[int, Any] = {id(_real_sleep): _sleep, id(_real_async_sleep): _async_sleep}
    undo = list(replaced(stand_ins, lambda module: module == __name__ or _begins(module, _OTHERS)))
    try:
        yield _current
    finally:
        for put_back in undo:
            put_back()
        _current = before


def _sleep(seconds: float, /) -> None:
    """Stand for `time.sleep`; what was imported while this one was in its place keeps it."""
    if _current is None:
        _real_sleep(seconds)
    else:
        _current.sleep(seconds, sys._getframe(1))


def _async_sleep(delay: float, result: Any = None) -> Coroutine[Any, Any, Any]:
    """Stand for `asyncio.sleep`."""
    frame: FrameType = sys._getframe(1)
    while frame.f_back is not None and _begins(str(frame.f_globals.get("__name__", "")), ("anyio",)):
        frame = frame.f_back  # who calls anyio.sleep is the one that sleeps
    if _current is None or _current.is_slept(delay, frame):
        return _real_async_sleep(delay, result)
    return _unslept(_current, delay, result, frame)


async def _unslept(no_sleep: NoSleep, seconds: float, result: Any, frame: FrameType) -> Any:
    await no_sleep.async_sleep(seconds, lambda: no_sleep._note(seconds, frame, is_blocking=False))
    return result


def _is_real(frame: FrameType) -> bool:
    return _begins(str(frame.f_globals.get("__name__", "")), _REAL)


def _begins(module: str, prefixes: tuple[str, ...]) -> bool:
    return any(module == prefix or module.startswith((f"{prefix}.", f"{prefix}_")) for prefix in prefixes)


def _who(frame: FrameType | None) -> str:
    """Return the module that sleeps, without what only stands in between; of n00dles and of tenacity, its name."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        package = module.partition(".")[0]
        if package not in _BETWEEN:
            return package if package in ("n00dles", "tenacity") else module
        frame = frame.f_back
    return "?"


def _of_node(node: str | None) -> str:
    return "" if node is None else f", in node {node!r}"
