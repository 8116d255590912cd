"""Tying a process to its parent: what was started for a test must not outlive it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

__all__ = ["die_with_parent"]

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process when its `parent` ends, where it can (Linux); call it right after a fork."""
    if sys.platform == "linux" and _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the kernel was asked
        os._exit(1)


try:
    # Loaded before any fork, so that no child has to.
    _libc = ctypes.CDLL(None) if sys.platform == "linux" else None
except OSError:
    _libc = None
