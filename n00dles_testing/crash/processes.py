"""Watching children, reading how one ended, and ending what it has left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from ..parent import processes
from ..temporary_folder import is_guard
from .scenario import LifeEnd, LifeRequest

__all__ = ["LIFE_VARIABLE", "children", "end_group", "end_marked", "end_orphans", "has_ended", "life_end"]

LIFE_VARIABLE = "N00DLES_TESTING_LIFE"
"""Names a life in its environment, and in that of whatever program it starts."""
_ROUNDS = 20
_PAUSE = 0.005  # seconds


def has_ended(pid: int) -> bool:
    """Whether a child has ended; it is not reaped, so its number stays its own."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def end_group(leader: int) -> None:
    """Kill all that a life has started and left behind. A group that is gone is none of our business."""
    with suppress(ProcessLookupError, PermissionError):  # macOS: no permission for a group of zombies
        os.killpg(leader, signal.SIGKILL)


def end_orphans(living: Collection[int], helpers: Collection[int] = ()) -> None:
    """Kill what lives that have ended have left outside their groups, and this process has adopted.

    Whatever belongs to a life of `living` is let be, and so is, while there is one, what does not say whose it is. So
    are guards of temporary folders, which end by themselves. `helpers` are children of this process that no life has
    started. They are not reaped, so their numbers stay theirs.
    """
    spared = (None, *map(str, living))
    for _ in range(_ROUNDS):  # what one of them has started becomes our child when it ends
        orphans = [each for each in children() if each not in living and each not in helpers]
        doomed = [each for each in orphans if not living or _life_of(each) not in spared]
        doomed = [each for each in doomed if not is_guard(each)]
        killed = [each for each in doomed if _kill_child(each)]
        for each in killed:
            os.waitpid(each, 0)
        for each in set(orphans) - set(killed):
            os.waitpid(each, os.WNOHANG)  # it may have ended by itself
        if not killed:
            return


def _kill_child(pid: int) -> bool:
    """Kill a child, which is not reaped, so the number is its own; say whether it is ours to kill, and not a sudo."""
    try:
        os.kill(pid, signal.SIGKILL)
    except PermissionError:
        return False
    return True


def children() -> list[int]:
    """Return the children of this process, which has one thread; none where the kernel does not say (Linux does)."""
    try:
        return [int(each) for each in Path(f"/proc/self/task/{os.getpid()}/children").read_bytes().split()]
    except OSError:
        return []


def end_marked(life: str) -> None:
    """Kill whatever has this mark of a life in its environment, in whatever session, where /proc lists processes."""
    for _ in range(_ROUNDS):  # one may start another before it is killed
        left = [pid for pid in processes() if _life_of(pid) == life and not is_guard(pid)]
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            return
        time.sleep(_PAUSE)


def _life_of(pid: int) -> str | None:
    """Return the life that has started a program, by its environment."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    mark = f"{LIFE_VARIABLE}=".encode()
    return next((each.removeprefix(mark).decode() for each in variables if each.startswith(mark)), None)


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
