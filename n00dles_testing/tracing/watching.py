"""Which files are watched: those below a folder, and those from below it that are reached by another name."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass

from .calls import File, Kind
from .outside import Outside

__all__ = ["Found", "Watch", "about_descriptor", "found"]

_DELETED = " (deleted)"


@dataclass(frozen=True, slots=True)
class Found:
    """A file that a call is about: as it is told, and what only the tracer needs."""

    file: File
    device: int = 0
    links: int = 0
    owner: tuple[int, int] = (0, 0)


def found(path: str, status: os.stat_result | None) -> Found:
    """Return the file of a path, as `stat` tells it; without that there is no such file."""
    if status is None:
        return Found(File(path, 0, "none", 0))
    if path.endswith(_DELETED) and (status.st_nlink == 0 or not os.path.lexists(path)):
        path = path.removesuffix(_DELETED)
    file = File(path, status.st_ino, _kind(status.st_mode), status.st_size)
    return Found(file, status.st_dev, status.st_nlink, (status.st_uid, status.st_gid))


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def about_descriptor(place: str) -> dict[bytes, bytes]:
    """Return what is told of a descriptor, from its file in `/proc/N/fdinfo`. Source: proc_pid_fdinfo(5)."""
    with open(place, "rb", 0) as file:
        return dict(line.split(b":\t", 1) for line in file.read().splitlines() if b":\t" in line)


def _mount_of(path: str) -> int:
    descriptor = os.open(path, os.O_PATH)
    try:
        return int(about_descriptor(f"/proc/self/fdinfo/{descriptor}")[b"mnt_id"])
    finally:
        os.close(descriptor)


class Watch:
    """The watched folder, and what is known to have names outside of it, too."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self.is_mapped = False
        """Whether a watched file is, or was, mapped as shared, if only to be read."""
        self._below = os.path.join(self.root, "")
        self.device = os.stat(self.root).st_dev
        self.mount = _mount_of(self.root)
        self.outside = Outside()
        self._elsewhere: set[tuple[int, int]] = set()
        for folder, _, names in os.walk(self.root):
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # a process that is still alive has just removed it
                    status = os.lstat(os.path.join(folder, name))
                    if status.st_nlink > 1:
                        self._elsewhere.add((status.st_dev, status.st_ino))

    def covers(self, path: str) -> bool:
        """Whether this is the folder or a path below it."""
        return path.startswith(self._below) or path == self.root

    def is_below(self, folder: str) -> bool:
        """Whether the watched folder is in this one, at any depth."""
        return self.root.startswith(os.path.join(folder, ""))

    def sees(self, it: Found) -> bool:
        """Whether a call on this file is to be told."""
        return self.covers(it.file.path) or (it.device, it.file.inode) in self._elsewhere

    def gets_a_name(self, it: Found, path: str) -> None:
        """Keep in mind that a watched file can be reached by this path."""
        if not self.covers(path):
            self._elsewhere.add((it.device, it.file.inode))
