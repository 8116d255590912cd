"""Tying a process to its parent, and reading how one ended."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from .scenario import LifeEnd, LifeRequest

__all__ = ["die_with_parent", "life_end"]

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


def life_end(request: LifeRequest, pid: int, status: int, seconds: float, *, timed_out: bool) -> LifeEnd:
    """Read a wait status."""
    return LifeEnd(
        life=request.life,
        pid=pid,
        point=None if request.point is None else str(request.point),
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        timed_out=timed_out,
        seconds=seconds,
    )
