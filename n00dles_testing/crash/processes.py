"""Watching children, and reading how one ended."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from .scenario import LifeEnd, LifeRequest

__all__ = ["end_group", "has_ended", "life_end"]


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
