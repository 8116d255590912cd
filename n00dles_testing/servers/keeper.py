"""The parent of one server: a process of its own that ends the server with the process that asked for it.

Run as a program with the standard library alone; `kept.py` starts it. It collects every process that the server leaves
behind, also those that called setsid, and itself ends when the last one has ended, with the server's exit status.
PR_SET_PDEATHSIG from the test process would not do: it fires when the *thread* that started the server ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWUSER = 0x10000000
_IPC_RMID = 0
_LINE_OF_SHARED_MEMORY = 6
_libc = ctypes.CDLL(None, use_errno=True)


def descendants(pid: int) -> list[int]:
    """Return the processes below `pid`, parents before their children."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                stat = Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace")
                state, parent = stat.rpartition(")")[2].split()[:2]
                if state != "Z":
                    children.setdefault(int(parent), []).append(int(entry))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(0), [])
        found += below
        waiting += below
    return found


def is_keeper(pid: int) -> bool:
    """Whether a process is the parent of a server: it ends by itself, after the one that asked for it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return os.fsencode(__file__) in words


def signal_all(pid: int, number: signal.Signals) -> None:
    """Send a signal to everything below `pid`, until nothing is left that has not got it."""
    reached: set[int] = set()
    while new := [process for process in descendants(pid) if process not in reached]:
        for process in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        reached.update(new)


def become(user: dict[str, int] | None) -> None:
    """Take another identity: PostgreSQL refuses to run as uid 0.

    `inside` is what this process is called in a user namespace of its own, outside of which nothing changes; `uid` and
    `gid` are really changed to.
    """
    if user is None:
        return
    if "inside" not in user:
        os.setgroups([])
        os.setgid(user["gid"])
        os.setuid(user["uid"])
        return
    uid, gid = os.getuid(), os.getgid()
    if _libc.unshare(_CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "a user namespace could not be made")
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user['inside']} {uid} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{user['inside_gid']} {gid} 1", encoding="ascii")


def release(pid_file: str | None) -> None:
    """Free the shared memory that a killed PostgreSQL leaves to the machine, and its lock file. Nothing runs any more.

    The file's seventh line has the key and the identifier of the segment.
    """
    if pid_file is None:
        return
    with contextlib.suppress(OSError, ValueError, IndexError):
        line = Path(pid_file).read_text(encoding="utf-8").splitlines()[_LINE_OF_SHARED_MEMORY]
        _libc.shmctl(int(line.split()[1]), _IPC_RMID, None)
    with contextlib.suppress(OSError):
        os.unlink(pid_file)


def _run_server(job: dict[str, Any], keeper: int) -> NoReturn:
    try:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(1)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(2, 1)
        os.chdir(job["folder"])
        os.execve(job["argv"][0], job["argv"], job["environment"])  # noqa: S606 - a shell would be one more process
    except OSError as error:
        print(f"{job['argv'][0]} could not be executed: {error}", file=sys.stderr, flush=True)
    os._exit(127)


def _reap(server: int, status: int) -> tuple[int, bool]:
    """Collect who has ended; return the server's exit status so far, and whether anybody is left."""
    while True:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status, False
        if pid == 0:
            return status, True
        if pid == server:
            code = os.waitstatus_to_exitcode(ended)
            status = code if code >= 0 else 128 - code


def main() -> int:
    """Run one server until its last process has ended, or until the process that asked for it has."""
    job: dict[str, Any] = json.loads(sys.argv[1])
    asked_by = os.pidfd_open(job["asked_by"])
    if os.getppid() != job["asked_by"]:
        return 1
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    become(job["user"])
    wake, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    keeper = os.getpid()
    server = os.fork()
    if server == 0:
        _run_server(job, keeper)
    with contextlib.suppress(BrokenPipeError):
        os.write(1, f"{server}\n".encode())
    os.close(1)
    poll = select.poll()
    poll.register(asked_by, select.POLLIN)
    poll.register(wake, select.POLLIN)
    status, anybody, abandoned = 0, True, False
    while anybody:
        for descriptor, _ in poll.poll():
            if descriptor == asked_by:
                poll.unregister(asked_by)
                abandoned = True
            elif signal.SIGTERM in os.read(wake, 4096):
                abandoned = True
        if abandoned:
            signal_all(keeper, signal.SIGKILL)
        status, anybody = _reap(server, status)
    release(job["pid_file"])
    if abandoned and job["remove"]:
        shutil.rmtree(job["remove"], ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
