"""Tying a process to its parent, and reading how one ended."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

from .scenario import LifeEnd, LifeRequest

__all__ = ["die_with_parent", "end_group", "has_ended", "life_end"]

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


def has_ended(pid: int) -> bool:
    """Whether a child has ended; it is not reaped, so its number stays its own."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def end_group(leader: int) -> None:
    """Kill all that a life has started and left behind. A group that is gone is none of our business."""
    with suppress(ProcessLookupError, PermissionError):  # macOS: no permission for a group of zombies
        os.killpg(leader, signal.SIGKILL)


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
