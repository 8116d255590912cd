"""Calls that open, make, rename, link and remove files and folders."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable

from .calls import Obstacle
from .entries import Entry, Reading, obstacle
from .watching import Found

__all__ = ["NAME_CALLS"]

_FOLLOWS, _EMPTY_PATH = 0x400, 0x1000
_NO_REPLACE = 1
_IN_ROOT = 0x10
_DIRECT, _NO_NAME = getattr(os, "O_DIRECT", 0), getattr(os, "O_TMPFILE", 0)
_CREAT = os.O_CREAT | os.O_WRONLY | os.O_TRUNC


def _open(entry: Entry) -> Reading | None:
    """Source: open(2), openat2(2)."""
    resolve = 0
    at: tuple[int | None, int] = (0, 1) if entry.name.startswith("openat") else (None, 0)
    if entry.name == "openat2":
        how = entry.thread.memory.read(entry.arguments[2], 24)
        flags, _, resolve = struct.unpack("<3Q", how.ljust(24, b"\0"))
    else:
        flags = _CREAT if entry.name == "creat" else entry.whole(at[1] + 1)
    follow = not (flags & os.O_NOFOLLOW or (flags & os.O_CREAT and flags & os.O_EXCL))
    it = entry.named(*at, follow=follow)
    if it is None or not entry.watch.sees(it):
        return None
    obstacles = []
    if _NO_NAME and flags & _NO_NAME == _NO_NAME:
        obstacles.append(obstacle(it.file, "a file without a name was made in it (O_TMPFILE)"))
    elif flags & _DIRECT and flags & (os.O_WRONLY | os.O_RDWR):
        what = "it is opened with O_DIRECT, past the page cache, which the models of power loss do not know"
        obstacles.append(obstacle(it.file, what))
    if resolve & _IN_ROOT:
        obstacles.append(obstacle(it.file, "openat2 took a folder for the root (RESOLVE_IN_ROOT)"))
    return Reading(entry.call(it.file, flags=flags), _may_change(it, flags), tuple(obstacles), opens=True)


def _may_change(it: Found, flags: int) -> bool:
    """Whether an open makes or empties a file; that of a pipe could wait for its other end."""
    return bool(flags & (os.O_CREAT | os.O_TRUNC)) and it.file.kind in ("file", "none")


def _open_by_handle(entry: Entry) -> Reading:
    root = entry.watch.root
    text = f"{root}: the program opens files by handle (open_by_handle_at), so their paths are not known"
    return Reading(entry.call(None), obstacles=(Obstacle(root, text),), is_asked=False)


def _two_names(entry: Entry, old: Found | None, new: Found | None) -> Reading | None:
    if old is None or new is None or not (entry.watch.sees(old) or entry.watch.sees(new)):
        return None
    return Reading(entry.call(old.file, other=new.file), alone=True, named=old)


def _rename(entry: Entry) -> Reading | None:
    """Source: rename(2)."""
    if entry.name == "rename":
        old, new = entry.named(None, 0, follow=False), entry.named(None, 1, follow=False)
    else:
        old, new = entry.named(0, 1, follow=False), entry.named(2, 3, follow=False)
    reading = _two_names(entry, old, new)
    if reading is None or old is None or new is None:
        return None
    flags = entry.whole(4) if entry.name == "renameat2" else 0
    reading.call = entry.call(old.file, other=new.file, flags=flags)
    if flags & ~_NO_REPLACE:
        what = f"it trades places with {new.file.path} (renameat2 with flags {flags:#x})"
        reading.obstacles = (obstacle(old.file, what),)
    elif old.file.kind == "folder" and not (entry.watch.covers(old.file.path) and entry.watch.covers(new.file.path)):
        what = f"a folder with all that is in it moves between inside and outside of {entry.watch.root}"
        reading.obstacles = (obstacle(old.file, what),)
    return reading


def _link(entry: Entry) -> Reading | None:
    """Source: link(2), also that it does not follow a symbolic link unless told to."""
    if entry.name == "link":
        old, new = entry.named(None, 0, follow=False), entry.named(None, 1, follow=False)
    else:
        flags = entry.whole(4)
        empty = flags & _EMPTY_PATH and not entry.thread.memory.text(entry.arguments[1])
        old = entry.thread.descriptor(entry.whole(0)) if empty else entry.named(0, 1, follow=bool(flags & _FOLLOWS))
        new = entry.named(2, 3, follow=False)
    reading = _two_names(entry, old, new)
    if reading is not None and new is not None:
        reading.makes = new.file.path
    return reading


def _remove(entry: Entry) -> Reading | None:
    it = entry.named(*((0, 1) if entry.name == "unlinkat" else (None, 0)), follow=False)
    return Reading(entry.call(it.file), alone=True) if it is not None and entry.watch.sees(it) else None


def _make_folder(entry: Entry) -> Reading | None:
    it = entry.named(*((0, 1) if entry.name == "mkdirat" else (None, 0)), follow=False)
    if it is None or not entry.watch.sees(it):
        return None
    return Reading(entry.call(it.file), alone=True, makes=it.file.path)


def _symlink(entry: Entry) -> Reading | None:
    it = entry.named(*((1, 2) if entry.name == "symlinkat" else (None, 1)), follow=False)
    if it is None or not entry.watch.sees(it):
        return None
    target = entry.thread.memory.text(entry.arguments[0])
    return Reading(entry.call(it.file, target=target), alone=True, makes=it.file.path)


def _make_node(entry: Entry) -> Reading | None:
    it = entry.named(*((0, 1) if entry.name == "mknodat" else (None, 0)), follow=False)
    if it is None or not entry.watch.sees(it):
        return None
    made = obstacle(it.file, "mknod has made it: a pipe, a socket or a device, or a file past `open`")
    return Reading(entry.call(it.file), alone=True, obstacles=(made,), makes=it.file.path)


NAME_CALLS: dict[str, Callable[[Entry], Reading | None]] = {
    "open": _open,
    "openat": _open,
    "openat2": _open,
    "creat": _open,
    "open_by_handle_at": _open_by_handle,
    "rename": _rename,
    "renameat": _rename,
    "renameat2": _rename,
    "link": _link,
    "linkat": _link,
    "unlink": _remove,
    "unlinkat": _remove,
    "rmdir": _remove,
    "mkdir": _make_folder,
    "mkdirat": _make_folder,
    "symlink": _symlink,
    "symlinkat": _symlink,
    "mknod": _make_node,
    "mknodat": _make_node,
}
