"""Dying in the middle of a function: a trace function that looks at the lines of one body, and at nothing else."""

from __future__ import annotations

import contextvars
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

__all__ = ["LineWatch", "code_of", "watching"]

_COUNTED_LINES = 10_000
"""Enough to find a middle; a body that loops longer is let go, since tracing slows it down."""


def code_of(function: Callable[..., Any]) -> CodeType | None:
    """Return the code of the body that a user wrote, behind decorators and partials; None if it is not Python."""
    while True:
        function = inspect.unwrap(function)
        if not isinstance(function, functools.partial):
            break
        function = function.func
    if inspect.ismethod(function):
        function = function.__func__
    if not inspect.isfunction(function):
        function = getattr(type(function), "__call__", function)  # noqa: B004 - an object that is called
    return getattr(function, "__code__", None)


class LineWatch:
    """Counts the lines that one call of a body executes, and acts at the `stop_at`-th, before it is executed."""

    def __init__(self, code: CodeType, stop_at: int | None = None, action: Callable[[int], None] | None = None) -> None:
        self.code = code
        self.lines = 0
        self._stop_at = stop_at
        self._action = action

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Be the trace function of the body's frame."""
        if event == "line":
            self.lines += 1
            if self.lines == self._stop_at and self._action is not None:
                self._action(frame.f_lineno)
            if self.lines >= _COUNTED_LINES:
                return None
        return self


_watch: contextvars.ContextVar[LineWatch | None] = contextvars.ContextVar("n00dles_testing_line_watch", default=None)
_thread = threading.local()


def _trace(frame: FrameType, event: str, arg: Any) -> Any:
    # A trace function runs in the context of what it traces, so each call of a body finds its own watch here.
    watch = _watch.get()
    return watch if watch is not None and frame.f_code is watch.code else None


@contextmanager
def watching(watch: LineWatch | None) -> Iterator[None]:
    """Watch the body that is called inside, in this thread and task; the trace function of before comes back after."""
    if watch is None:
        yield
        return
    depth = getattr(_thread, "depth", 0)
    if depth == 0:
        _thread.outer = sys.gettrace()
        sys.settrace(_trace)
    _thread.depth = depth + 1
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)
        _thread.depth -= 1
        if _thread.depth == 0:
            sys.settrace(_thread.outer)
