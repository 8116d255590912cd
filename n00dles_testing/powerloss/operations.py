"""What a program did to the files of one folder, as operations on inodes and names, and when it synced them.

Inodes are numbers of our own, given at creation and never again; the folder that is watched is `ROOT`. `entered` and
`exited` are positions in one order: an operation surely came before another one only if it exited before that entered.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum

__all__ = [
    "NEVER",
    "ROOT",
    "ChangeMode",
    "Create",
    "Link",
    "MakeFolder",
    "MakeSpecial",
    "Marked",
    "Operation",
    "Rename",
    "Special",
    "Symlink",
    "Sync",
    "SyncAll",
    "Truncate",
    "Unlink",
    "Write",
]

ROOT = 1
NEVER = sys.maxsize
"""The `exited` of a call that never returned."""


class Special(Enum):
    """What has a name on the disk, and no bytes there."""

    PIPE = "pipe"
    SOCKET = "socket"


@dataclass(frozen=True, slots=True)
class _At:
    entered: int
    exited: int


@dataclass(frozen=True, slots=True)
class _Named(_At):
    folder: int
    name: str
    inode: int


@dataclass(frozen=True, slots=True)
class Create(_Named):
    """A new, empty file. `mode` are its permissions (bits as in chmod(2)), None if they are not known."""

    mode: int | None = None


@dataclass(frozen=True, slots=True)
class MakeFolder(_Named):
    """A new folder, with its permissions as in `Create`."""

    mode: int | None = None


@dataclass(frozen=True, slots=True)
class MakeSpecial(_Named):
    """A new pipe or socket (mkfifo, bind), with its permissions as in `Create`."""

    special: Special
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class Symlink(_Named):
    """A new symbolic link."""

    target: str


@dataclass(frozen=True, slots=True)
class Link(_Named):
    """One more name of a file."""


@dataclass(frozen=True, slots=True)
class Unlink(_Named):
    """A name is gone: that of a file, or of an empty folder."""


@dataclass(frozen=True, slots=True)
class Rename(_At):
    """A file or folder gets another name; `replaces` is the inode that had that name before."""

    folder: int
    name: str
    to_folder: int
    to_name: str
    inode: int
    replaces: int | None


@dataclass(frozen=True, slots=True)
class Write(_At):
    """Bytes are written into a file, at `offset`; a gap before them is a hole of zeros."""

    inode: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate(_At):
    """A file gets another size; what is new is zeros. With `allocated` (fallocate) there are blocks for it already."""

    inode: int
    old: int
    size: int
    allocated: bool = False


@dataclass(frozen=True, slots=True)
class ChangeMode(_At):
    """The permissions of a file, folder, pipe or socket become these (bits as in chmod(2))."""

    inode: int
    mode: int


@dataclass(frozen=True, slots=True)
class Sync(_At):
    """A file or folder is synced. With `data_only` (fdatasync) what its size needs is, and other metadata is not.

    `part`, if given, says of which bytes the data is written, from and to: that of a write with O_DSYNC, or of msync.
    The kernel writes whole pages. One that `failed` forces nothing, and data that was pending then is forced by no
    later sync either.
    """

    inode: int
    data_only: bool
    failed: bool = False
    part: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class SyncAll(_At):
    """Everything is synced (sync, syncfs). One that `failed` is as a failed sync of every file."""

    failed: bool = False


@dataclass(frozen=True, slots=True)
class Marked(_At):
    """A word of the program itself: "INV …" when a call of the store begins, "ACK …" when it has returned."""

    text: str


Operation = (
    Create
    | MakeFolder
    | MakeSpecial
    | Symlink
    | Link
    | Unlink
    | Rename
    | Write
    | Truncate
    | ChangeMode
    | Sync
    | SyncAll
    | Marked
)
