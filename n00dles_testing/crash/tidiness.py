"""The folder of an exploration, which is gone after it, however it ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..temporary_folder import TemporaryFolder
from .backends import Setup

__all__ = ["tidied", "undisturbed_by_signals"]


@contextmanager
def tidied(setup: Setup) -> Iterator[Path]:
    """Give a folder for the scenarios; at the end, end the backend and remove the folder.

    In this order: a process that lives would write new files while the old ones are removed. And whoever has no
    patience and presses Ctrl-C twice does not stop it half-way; it takes seconds at most.
    """
    folder = TemporaryFolder("n00dles-crash-")
    try:
        yield folder.path
    finally:
        with undisturbed_by_signals():
            try:
                setup.close()
            finally:
                folder.remove()


@contextmanager
def undisturbed_by_signals() -> Iterator[None]:
    """Let neither SIGINT nor SIGTERM raise anything inside; only the main thread can see to that, and need."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
