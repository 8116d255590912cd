"""Starting interpreters, and waiting for processes that are meant to die."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .scenario import LifeEnd, LifeRequest

__all__ = ["AbandonedError", "die_with_parent", "life_end", "start_interpreter", "wait_for"]

_BOOT = (
    "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[1]); module, *arguments = sys.argv[2:]; "
    "sys.argv[:] = [module]; importlib.import_module(module).main(*arguments)"
)
_PR_SET_PDEATHSIG = 1
_POLL_SECONDS = 0.002


class AbandonedError(Exception):
    """Whoever asked for a life is gone; its process has been ended."""


def start_interpreter(
    module: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None, *, keep: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a fresh interpreter that imports what this one can import, and calls `main` of `module`.

    What it prints goes to stderr, so that it cannot mix with a report on stdout. Ctrl-C in a terminal does not reach it:
    it ends with this process. `keep` are descriptors that it inherits.
    """
    path = [entry or str(Path.cwd()) for entry in sys.path]
    if str(Path.cwd()) not in path:
        path.append(str(Path.cwd()))
    return subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", _BOOT, json.dumps(path), module, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=2,
        env={**os.environ, **(environment or {})},
        pass_fds=keep,
        start_new_session=True,
    )


def die_with_parent() -> None:
    """Have the kernel end this process when its parent ends, where it can (Linux); call it right after a fork."""
    if sys.platform == "linux" and _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


try:
    # Loaded before any fork, so that no child has to.
    _libc = ctypes.CDLL(None) if sys.platform == "linux" else None
except OSError:
    _libc = None


def wait_for(pid: int, limit: float, requests: int | None = None) -> tuple[int, bool]:
    """Reap a child of this process, and return its wait status and whether it took more than `limit` seconds.

    It is then killed. `requests` is the pipe of whoever asked: if its other end is closed, the child is killed as well,
    and `AbandonedError` is raised.
    """
    deadline = time.monotonic() + limit
    try:
        ended = _wait_until(pid, deadline, requests)
    except BaseException:
        _end(pid)
        raise
    if ended is None:
        return _end(pid), True
    return ended, False


def _wait_until(pid: int, deadline: float, requests: int | None) -> int | None:
    if not hasattr(os, "pidfd_open"):
        return _poll_until(pid, deadline)
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if requests is not None:
            poll.register(requests, 0)  # 0: only that it is closed
        events = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
    finally:
        os.close(descriptor)
    if any(ready == descriptor for ready, _ in events):
        return os.waitpid(pid, 0)[1]
    if events:
        raise AbandonedError
    return None


def _poll_until(pid: int, deadline: float) -> int | None:
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(_POLL_SECONDS)
    return None


def _end(pid: int) -> int:
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


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
