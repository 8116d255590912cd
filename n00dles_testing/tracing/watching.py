"""Which files are watched: those below a folder, and those from below it that are reached by another name."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from .calls import File, Kind

__all__ = ["Found", "Watch", "found"]

_DELETED = " (deleted)"


@dataclass(frozen=True, slots=True)
class Found:
    """A file that a call is about: as it is told, and what only the tracer needs."""

    file: File
    device: int = 0
    links: int = 0


def found(path: str, status: os.stat_result | None) -> Found:
    """Return the file of a path, as `stat` tells it; without that there is no such file."""
    if status is None:
        return Found(File(path, 0, "none", 0))
    if path.endswith(_DELETED) and (status.st_nlink == 0 or not os.path.lexists(path)):
        path = path.removesuffix(_DELETED)
    return Found(File(path, status.st_ino, _kind(status.st_mode), status.st_size), status.st_dev, status.st_nlink)


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


class Watch:
    """The watched folder, and what is known to have names outside of it, too."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self._below = os.path.join(self.root, "")
        self.device = os.stat(self.root).st_dev
        self._elsewhere: set[tuple[int, int]] = set()
        for folder, _, names in os.walk(self.root):
            for name in names:
                status = os.lstat(os.path.join(folder, name))
                if status.st_nlink > 1:
                    self._elsewhere.add((status.st_dev, status.st_ino))

    def covers(self, path: str) -> bool:
        """Whether this is the folder or a path below it."""
        return path.startswith(self._below) or path == self.root

    def sees(self, it: Found) -> bool:
        """Whether a call on this file is to be told."""
        return self.covers(it.file.path) or (it.device, it.file.inode) in self._elsewhere

    def gets_a_name(self, it: Found, path: str) -> None:
        """Keep in mind that a watched file can be reached by this path."""
        if not self.covers(path):
            self._elsewhere.add((it.device, it.file.inode))
