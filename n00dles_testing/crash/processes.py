"""Starting interpreters, tying a process to its parent, and reading how one ended."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .scenario import LifeEnd, LifeRequest

__all__ = ["die_with_parent", "life_end", "start_interpreter"]

_BOOT = (
    "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[1]); module, *arguments = sys.argv[2:]; "
    "sys.argv[:] = [module]; importlib.import_module(module).main(*arguments)"
)
_PR_SET_PDEATHSIG = 1


def start_interpreter(
    module: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None, *, keep: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a fresh interpreter that imports what this one can import, and calls `main` of `module`.

    What it prints goes to stderr, so that it cannot mix with a report on stdout. Ctrl-C in a terminal does not reach
    it: it ends with this process. `keep` are descriptors that it inherits.
    """
    path = [entry or str(Path.cwd()) for entry in sys.path]
    return subprocess.Popen(
        [sys.executable, "-c", _BOOT, json.dumps(path), module, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=2,
        env={**os.environ, **(environment or {})},
        pass_fds=keep,
        start_new_session=True,
    )


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
