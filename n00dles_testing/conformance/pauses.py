"""Moments of rest before a process calls the system, so that what can come between a look and an act does come.

Processes on a machine of few cores run one after the other: each has looked and acted before the next one looks. A rest
before each call that leads out of Python, to the system or into a library written in C, is no more than what a loaded
machine may do at any time.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["pauses"]

_LONGEST_SECONDS = 0.001
_MOST = 60
_WAYS_OUT = {"posix", "io", "_io", "sqlite3", "_sqlite3", "fcntl", "_socket"}
"""Modules of the standard library that lead out of the process."""

_left = 0
"""How many rests are still taken; 0 while nobody wants any."""


@contextmanager
def pauses() -> Iterator[None]:
    """Rest before each of the first calls out of Python, in this thread and in those that are started from now on."""
    global _left  # noqa: PLW0603 - threads that are there already look at it
    _left = _MOST
    threading.setprofile(_hear)
    sys.setprofile(_hear)
    try:
        yield
    finally:
        sys.setprofile(None)
        _left = 0


def _hear(frame: FrameType, event: str, function: Any) -> None:
    global _left  # noqa: PLW0603
    if event == "c_call" and _left > 0 and _leads_out(function):
        _left -= 1
        time.sleep(random.random() * _LONGEST_SECONDS)


def _leads_out(function: Any) -> bool:
    module = getattr(function, "__module__", None) or type(getattr(function, "__self__", None)).__module__
    package = module.partition(".")[0]
    return package in _WAYS_OUT or package not in sys.stdlib_module_names
