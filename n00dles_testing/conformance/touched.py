"""What a process touches outside its own memory: the proof that a store which keeps nothing does not even try.

Two witnesses. Python tells (PEP 578) when a file is opened, SQLite or a socket connected, a process started. What a C
library does by itself, as the clients of most databases do, Python does not tell; the kernel does, in `/proc/self/fd`,
for as long as the descriptor is open.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
import threading
from typing import Any

__all__ = ["Touched"]

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_DESCRIPTORS = "/proc/self/fd"
_INTERVAL = 0.002
_STARTS_A_PROCESS = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec", "os.system")


class Touched:
    """What was touched since this was made. It cannot be stopped again, so only a process of its own makes one."""

    def __init__(self) -> None:
        self._found: set[str] = set()
        self._before = _open_descriptors()
        sys.addaudithook(self._hear)
        if self.sees_descriptors:
            # A connection may live no longer than one call.
            threading.Thread(target=self._watch, daemon=True).start()

    @property
    def sees_descriptors(self) -> bool:
        """Whether this system shows what C libraries open; without, nothing is proven by an empty list."""
        return os.path.isdir(_DESCRIPTORS)

    def look(self) -> None:
        """Note what is open now."""
        for number, target in _open_descriptors() - self._before:
            if (what := _kind_of(number, target)) is not None:
                self._found.add(what)

    def all(self) -> list[str]:
        """Return what was touched so far, each once."""
        self.look()
        return sorted(self._found)

    def _watch(self) -> None:
        pause = threading.Event()
        while not pause.wait(_INTERVAL):
            self.look()

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING and _counts(path):
                self._found.add(f"file {os.fsdecode(path)}")
        elif event == "sqlite3.connect" and str(arguments[0]) not in ("", ":memory:"):
            self._found.add(f"database {arguments[0]}")
        elif event == "socket.connect":
            self._found.add(f"address {arguments[1]}")
        elif event in _STARTS_A_PROCESS:
            self._found.add(f"a process of its own ({event})")


def _open_descriptors() -> set[tuple[int, str]]:
    """Return number and target of each; a socket's target names its inode, so a number used again is another one."""
    found = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(_DESCRIPTORS):
            with contextlib.suppress(OSError):
                found.add((int(name), os.readlink(f"{_DESCRIPTORS}/{name}")))
    return found


def _kind_of(number: int, target: str) -> str | None:
    """Say what a descriptor is, if it leads out of the process: a file open for writing, or a socket."""
    with contextlib.suppress(OSError, ValueError):
        mode = os.stat(number).st_mode
        if stat.S_ISSOCK(mode):
            return _peer_of(number)
        if stat.S_ISREG(mode) and _is_written(number) and _counts(target) and not target.startswith("/memfd:"):
            return f"file {target}"
    return None


def _peer_of(number: int) -> str | None:
    """Return where a socket leads; None for a pair within the process, with which event loops wake themselves."""
    with socket.socket(fileno=os.dup(number)) as twin:
        if twin.family == getattr(socket, "AF_NETLINK", None):
            return None
        try:
            peer = twin.getpeername()
        except OSError:
            peer = ""
        if twin.family == socket.AF_UNIX and not peer and not twin.getsockname():
            return None
        return f"address {peer or twin.getsockname()}"


def _is_written(number: int) -> bool:
    with open(f"/proc/self/fdinfo/{number}", encoding="ascii") as info:
        flags = next(line for line in info if line.startswith("flags:"))
    return bool(int(flags.split()[1], 8) & (os.O_WRONLY | os.O_RDWR))


def _counts(path: Any) -> bool:
    if not isinstance(path, str | bytes):
        return False
    text = os.fsdecode(path)
    return not text.startswith(("/dev/", "/proc/")) and "__pycache__" not in text
