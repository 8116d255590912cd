"""Stopping another process with SIGSTOP so that it is proven to stand still, and letting it go on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path

from .expect import VacuousCheck

__all__ = ["go_on", "is_stopped", "stop", "until_stopped"]

_SECONDS = 10.0
_PAUSE = 0.002


async def stop(pid: int) -> None:
    """Stop a process. Raises `VacuousCheck` if it does not stand still then."""
    os.kill(pid, signal.SIGSTOP)
    if not await until_stopped(pid):
        raise VacuousCheck(f"process {pid} was to be stopped by SIGSTOP and went on, so nothing was shown")


def go_on(pid: int) -> None:
    """Let a stopped process go on. Raises `VacuousCheck` if it was not standing still until now."""
    stood_still = is_stopped(pid)
    os.kill(pid, signal.SIGCONT)
    if not stood_still:
        raise VacuousCheck(f"process {pid} was continued by something else, so nothing was shown")


async def until_stopped(pid: int, ended: asyncio.Future[object] | None = None) -> bool:
    """Wait until a process stands still; return False if it does not, or if `ended` is done before."""
    deadline = time.monotonic() + _SECONDS
    while not is_stopped(pid):
        if time.monotonic() > deadline or (ended is not None and ended.done()):
            return False
        await asyncio.sleep(_PAUSE)
    return True


def is_stopped(pid: int) -> bool:
    """Whether a process stands still; the system is asked."""
    try:
        # The name before the state may hold spaces and brackets, but its bracket is the last one.
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        asked = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False)
        state = asked.stdout.strip()[:1]
    return state == "T"
