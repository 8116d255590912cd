"""What a program keeps outside of the folder that is watched: nobody records it, and so nobody can take it back."""

from __future__ import annotations

import os
import stat

__all__ = ["Outside"]

_OF_THE_KERNEL = ("/proc/", "/sys/")
_BYTECODE = (".pyc", "/__pycache__/")


class Outside:
    """Which files outside a program opens for writing, moves, or links to, and which of these are still there.

    Some are of no account. A temporary file is gone at the end (those of SQLite have no name from the beginning). A log
    is only ever appended to, and not read. The bytecode of Python is made anew from the source. A lock is empty. A file
    that is opened to be written and is not is as before. Devices, and the files of the kernel, hold nothing.
    """

    def __init__(self) -> None:
        self._before: dict[str, object] = {}
        self._logs: dict[str, bool] = {}

    def is_opened(self, path: str, flags: int) -> None:
        """Take down that a file is going to be opened, or that one is going to be written that was opened before."""
        way = flags & (os.O_WRONLY | os.O_RDWR | os.O_APPEND)
        if way & ~os.O_APPEND:
            self._take_down(path)
        if path in self._before:
            self._logs[path] = way == os.O_WRONLY | os.O_APPEND and self._logs.get(path, True)

    def knows(self, path: str) -> bool:
        """Whether this file was taken down already."""
        return path in self._before

    def gets(self, path: str, what: str | None = None) -> None:
        """Take down that this name is going to be given to another file, or to a new link."""
        self._take_down(path)
        self._logs[path] = self._logs.get(what or path, False)

    def kept(self) -> tuple[str, ...]:
        """Return what is there now and was not, or is another one: at the end of the program."""
        paths = [path for path, before in self._before.items() if _what_is_at(path) not in (None, before)]
        return tuple(path for path in paths if not self._logs[path])

    def _take_down(self, path: str) -> None:
        if not path.startswith(_OF_THE_KERNEL) and not any(word in path for word in _BYTECODE):
            self._before.setdefault(path, _what_is_at(path))


def _what_is_at(path: str) -> object:
    """Return what is another one after a change; None for what holds nothing."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return os.readlink(path)
    except OSError:
        return None
    if stat.S_ISREG(status.st_mode) and status.st_size:
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    return None
