"""What a trace consists of: system calls about watched files, and marks that the program itself put between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Event", "File", "Mark", "Obstacle", "Trace", "TracedCall"]

Kind = Literal["file", "folder", "link", "other", "none"]


@dataclass(frozen=True, slots=True)
class File:
    """The file that a call is about, as it was when the call began.

    `path` is absolute, without links in its folders; that of a descriptor whose file was unlinked is the last one it
    had. `inode` is the kernel's number, which it may give again once the file is gone; 0 and kind "none" if there is no
    such file yet. `size` is in bytes.
    """

    path: str
    inode: int
    kind: Kind
    size: int


@dataclass(frozen=True, slots=True)
class TracedCall:
    """One system call. `entered` and `exited` are positions in one order over all threads, and marks.

    `name` is that of the kernel ("pwrite64", "openat"). `result` is what the kernel returned, a negative errno if it
    failed; `exited` and `result` are None if it never returned, or has not yet. `file` is the file written, synced,
    opened, unlinked, renamed or linked; `other` the name it is renamed or linked to, as it was before. `inode` is that
    of the file that an open, a creation or a link has found or made, 0 if it failed. `flags` are those of an open, else
    the status flags of the descriptor (O_APPEND, O_SYNC, O_DSYNC). `offset` is where `data` went in the file; `data` is
    what was really written, cut to `result`. `length` is the new size of a truncation, and the end of an allocation.
    `target` is that of a symbolic link. `mode` is what a `chmod` gives to a file, or a creation to a new one, then with
    its type, as `stat` tells it. `injected` says what was done to it: "ENOSPC", "short", "SIGKILL". A call that
    was killed so has done nothing; another one that never returned may have, or not. A write that failed and has `data`
    has written it, and what failed is the sync that O_DSYNC, O_SYNC or RWF_DSYNC asks for (`Fail.after_writing`).

    Calls that change something never overlap each other; a sync may overlap anything. O_APPEND and RWF_APPEND are in
    `flags` and `offset`; RWF_DSYNC and RWF_SYNC in `flags`. `sync_file_range` forces nothing for good, since it writes
    no metadata; `msync` is told if it waits (MS_SYNC): it syncs `length` bytes from `offset` on. `sync` has no file.
    The data of `sendfile`, `splice` and `copy_file_range` is what is in the file at their end. `ioctl` (clone) tells
    none, and leaves an obstacle. A file without a name (O_TMPFILE) has a path in the folder that it was opened in.
    """

    entered: int
    thread: int
    name: str
    file: File | None = None
    other: File | None = None
    exited: int | None = None
    result: int | None = None
    inode: int = 0
    flags: int = 0
    offset: int | None = None
    data: bytes = b""
    length: int | None = None
    target: str = ""
    injected: str = ""
    process: int = 0
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A word that the traced program has put into the order of the calls, such as "ACK 3"."""

    entered: int
    text: str


Event = TracedCall | Mark


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something done to the watched file `path` that calls alone do not tell, such as a shared writable mapping.

    `text` is a whole sentence, which names the file. What concerns no file in particular (io_uring) has the root as
    its path.
    """

    path: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Trace:
    """All that was traced, in the order of entering.

    Unless the caller can excuse every one of the `obstacles` (by its path), nobody knows which states are possible.
    `status` is how the program ended, as `subprocess` tells it: -9 if it was killed. `process` is its number.
    `timed_out` says that the time limit has killed it. `left_behind` are the processes that it has started and that
    were still there a little after its end: all were killed then, each is named as "sleep (process 123)".
    `outside` are the files outside of the watched folder that it has written and left there, see `Outside`.
    """

    events: tuple[Event, ...]
    obstacles: tuple[Obstacle, ...]
    status: int
    process: int = 0
    timed_out: bool = False
    left_behind: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
