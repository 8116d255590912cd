"""Threads that a test finds running: what one of them does is told to the test that runs by then, so it says whose."""

from __future__ import annotations

import threading

__all__ = ["OlderThreads", "told"]


class OlderThreads:
    """The threads that run at the moment, but for the caller's own and the main one."""

    def __init__(self) -> None:
        self._threads = frozenset(threading.enumerate()) - {threading.current_thread(), threading.main_thread()}

    def name_of_current(self) -> str | None:
        """Return the name of the calling thread if it is one of them."""
        thread = threading.current_thread()
        return thread.name if thread in self._threads else None


def told(name: str) -> str:
    """Return what to say of an older thread: who started it cannot be known any more."""
    return f"the thread {name!r}, which was started before this test (by an earlier one, a fixture or a module)"
