"""A process with a keeper, which ends whatever the process has left running: also what is in a session of its own.

A store may detach a server that keeps what it has read in its memory. If that lived on into the next state, it would
answer from the state before. When a process ends, the kernel gives its children to the nearest ancestor that has asked
for that (PR_SET_CHILD_SUBREAPER). Whoever examines cannot be the one: it traces other processes, and may be somebody's
pytest; it would adopt what is not its own. The process itself cannot, since a state may kill it. So a process stands
between, which does nothing else.
"""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import NoReturn

from ..parent import adopt_orphans, die_with_parent

__all__ = ["Kept", "StillRunningError"]

_TIME_TO_END = 5.0
_PAUSE = 0.0005
_KERNEL_KNOWS_CHILDREN = os.path.exists("/proc/thread-self/children")


class StillRunningError(RuntimeError):
    """What a process has left running could not be ended; the message is a sentence that names it."""


class Kept:
    """A fork that calls `run`, which never returns. `news` can be read from as soon as the fork has ended."""

    def __init__(self, run: Callable[[], NoReturn], *, ours: Connection) -> None:
        """Fork; `ours` is what only the caller keeps."""
        self.news, tells = Pipe(duplex=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that a thread of somebody's may hold a lock
            self._keeper = os.fork()
        if not self._keeper:
            self.news.close()
            ours.close()
            _keep(run, tells)
        tells.close()

    def has_company(self) -> bool:
        """Whether anything runs that the fork has started, directly or not."""
        return len(_descendants(self._keeper)) > 1

    def end(self, *, patience: float = 0.0) -> int:
        """End it, if it has not ended after that time, with all that it has left; return how, as `subprocess` tells.

        Raises `StillRunningError`.
        """
        self.news.poll(patience)
        os.kill(self._keeper, signal.SIGTERM)  # it is our child, and not reaped, so the number is its own
        try:
            code, left = self.news.recv()
        except EOFError:
            code, left = -signal.SIGKILL, []  # the keeper itself was killed, and its fork by that
        self.news.close()
        os.waitpid(self._keeper, 0)
        if left:
            raise StillRunningError(f"a process that the store has started cannot be ended: {', '.join(left)}")
        return int(code)


def _keep(run: Callable[[], NoReturn], tells: Connection) -> NoReturn:
    """Be the keeper."""
    try:
        adopt_orphans()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        keeper = os.getpid()
        fork = os.fork()
        if not fork:
            tells.close()
            die_with_parent(keeper)
            run()
        signal.signal(signal.SIGTERM, lambda *_: os.kill(fork, signal.SIGKILL))
        _reap_until_ended(fork)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _, status = os.waitpid(fork, 0)
        tells.send((os.waitstatus_to_exitcode(status), _end_all(keeper)))
    finally:
        os._exit(0)


def _reap_until_ended(fork: int) -> None:
    """Reap all others until this one has ended, which stays a zombie: nobody else gets its number."""
    while True:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        if ended is None or ended.si_pid == fork:
            return
        os.waitpid(ended.si_pid, 0)


def _end_all(keeper: int) -> list[str]:
    """End all descendants of this process, and return the names of those that cannot be ended."""
    ends = time.monotonic() + _TIME_TO_END
    while left := _descendants(keeper):  # one may start another before it is killed
        for process in left:
            _kill(process)
        _reap()
        if time.monotonic() > ends:
            return [_named(process) for process in left]
        time.sleep(_PAUSE)
    return []


def _kill(process: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process, signal.SIGKILL)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _descendants(process: int) -> list[int]:
    """Return the children of a process, their children, and so on, also those that have ended and were not reaped."""
    found = [process]
    for each in found:
        found += _children(each)
    return found[1:]


def _children(process: int) -> list[int]:
    if not _KERNEL_KNOWS_CHILDREN:
        return _children_by_their_parent(process)
    tasks = f"/proc/{process}/task"
    found = []
    with suppress(OSError):  # it has just ended
        for thread in os.listdir(tasks):
            with suppress(OSError), open(f"{tasks}/{thread}/children") as file:
                found += [int(number) for number in file.read().split()]
    return found


def _children_by_their_parent(process: int) -> list[int]:
    """Return the same, more slowly: ask every process for its parent."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                if int(file.read().rpartition(b")")[2].split()[1]) == process:
                    found.append(int(name))
    return found


def _named(process: int) -> str:
    name = "?"
    with suppress(OSError), open(f"/proc/{process}/comm", errors="replace") as file:
        name = file.read().strip()
    return f"{name} (process {process})"
