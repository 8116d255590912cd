"""Hearing each call to the outside, one by one, with the power to end the process there or to raise in its place."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Literal

from .io_calls import IOCall, Kind, io_call

__all__ = ["Heard", "Seam", "When"]

When = Literal["before", "after"]

Heard = Callable[[int, IOCall, When], None]
"""Called with the number of a call (from 1), the call, and whether it is about to begin or has just succeeded.

What it raises, the caller gets: instead of the call, or instead of what that has returned.
"""


class Seam:
    """Tells `heard` of every call that leads out of the process, in all threads started later, while it is `listening`.

    It cannot be taken away again completely, so use it in a process that is meant to end soon. With `lasting`, it goes
    on after `heard` has raised; Python would otherwise silence it in that thread.
    """

    def __init__(self, heard: Heard, *, lasting: bool = False) -> None:
        """Install it in this thread, and in those that are started from now on."""
        self._heard = heard
        self._count = 0
        self._lock = threading.Lock()
        self._is_listening = False
        self._inside = threading.local()
        self._new_connections: list[sqlite3.Connection] = []
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        if lasting:
            threading.settrace(self._reinstall)
            sys.settrace(self._reinstall)
        sys.addaudithook(self._audit)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Number the calls made meanwhile, from 1."""
        self._count = 0
        sys.setprofile(self._profile)
        self._is_listening = True
        try:
            yield
        finally:
            self._is_listening = False

    def _profile(self, frame: FrameType, event: str, function: Any) -> None:
        if self._new_connections:
            self._watch_connections()
        if not self._is_listening or event not in ("c_call", "c_return", "c_exception"):
            return
        call = io_call(function, frame)
        if call is None:
            return
        open_calls = self._open_calls()
        if event == "c_call":
            number = self._next()
            self._heard(number, call, "before")
            open_calls.append(number)
        elif open_calls:
            number = open_calls.pop()
            if event == "c_return":
                self._heard(number, call, "after")

    def _open_calls(self) -> list[int]:
        if not hasattr(self._inside, "calls"):
            self._inside.calls = []
        calls: list[int] = self._inside.calls
        return calls

    def _next(self) -> int:
        with self._lock:
            self._count += 1
            return self._count

    def _reinstall(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Come back after an exception that was raised in the place of a call."""
        frame.f_trace_lines = False
        if event == "exception" and self._is_listening and sys.getprofile() is None:
            sys.setprofile(self._profile)
        return self._reinstall

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "sqlite3.connect/handle":
            self._new_connections.append(arguments[0])

    def _watch_connections(self) -> None:
        """Hear of the statements of new connections; when Python tells of one, it is not quite open yet."""
        for connection in list(self._new_connections):
            with suppress(sqlite3.Error):  # not open yet, or another thread's
                connection.set_trace_callback(self._statement)
                with suppress(ValueError):  # another thread may have been here meanwhile
                    self._new_connections.remove(connection)

    def _statement(self, statement: str) -> None:
        """A statement that SQLite begins, and that Python has not told of: it was called by C."""
        if self._is_listening and not self._open_calls():
            self._heard(self._next(), IOCall("sqlite3 statement", Kind.DATABASE), "before")
