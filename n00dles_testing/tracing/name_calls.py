"""Calls that open, make, rename, link and remove files and folders."""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Callable

from .calls import Obstacle
from .entries import Entry, Reading, obstacle
from .threads import AT_FDCWD
from .watching import Found

__all__ = ["NAME_CALLS"]

_FOLLOWS, _EMPTY_PATH = 0x400, 0x1000
_NO_REPLACE = 1
_IN_ROOT = 0x10
_DIRECT, _NO_NAME, _ONLY_A_PATH = getattr(os, "O_DIRECT", 0), getattr(os, "O_TMPFILE", 0), getattr(os, "O_PATH", 0)
_OF_A_PATH = _ONLY_A_PATH | os.O_NOFOLLOW | getattr(os, "O_DIRECTORY", 0)
"""The flags that count for what is opened as a path only (O_PATH): it is neither made nor emptied."""
_CREAT = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
_LONGEST_ADDRESS = 110


def _open(entry: Entry) -> Reading | None:
    """Source: open(2), openat2(2)."""
    resolve = 0
    at: tuple[int | None, int] = (0, 1) if entry.name.startswith("openat") else (None, 0)
    if entry.name == "openat2":
        how = entry.thread.memory.read(entry.arguments[2], 24)
        flags, permissions, resolve = struct.unpack("<3Q", how.ljust(24, b"\0"))
    elif entry.name == "creat":
        flags, permissions = _CREAT, entry.whole(1)
    else:
        flags, permissions = entry.whole(at[1] + 1), entry.whole(at[1] + 2)
    if flags & _ONLY_A_PATH:
        flags &= _OF_A_PATH
    if resolve & _IN_ROOT:
        return _open_in_root(entry, flags)
    follow = not (flags & os.O_NOFOLLOW or (flags & os.O_CREAT and flags & os.O_EXCL))
    it = entry.named(*at, follow=follow)
    if it is None or not entry.watch.sees(it):
        if it is not None:
            entry.watch.outside.is_opened(it.file.path, flags)
        return None
    obstacles = []
    if flags & _DIRECT and flags & (os.O_WRONLY | os.O_RDWR):
        what = "it is opened with O_DIRECT, past the page cache, which the models of power loss do not know"
        obstacles.append(obstacle(it.file, what))
    is_new = it.file.kind == "none" and flags & os.O_CREAT
    mode = entry.new_mode(permissions, stat.S_IFREG) if is_new else None
    return Reading(entry.call(it.file, flags=flags, mode=mode), _may_change(it, flags), tuple(obstacles), opens=True)


def _may_change(it: Found, flags: int) -> bool:
    """Whether an open makes or empties a file; that of a pipe could wait for its other end."""
    if _NO_NAME and flags & _NO_NAME == _NO_NAME:
        return True
    return bool(flags & (os.O_CREAT | os.O_TRUNC)) and it.file.kind in ("file", "none")


def _open_in_root(entry: Entry, flags: int) -> Reading | None:
    """A folder is taken for the root, also by links on the way; so it is not known which file is made or emptied."""
    folder = entry.named_folder(0) if flags & (os.O_CREAT | os.O_TRUNC) else None
    if folder is None or not (entry.watch.sees(folder) or entry.watch.is_below(folder.file.path)):
        return None
    what = "openat2 took it for the root, and has made or opened a file below it (RESOLVE_IN_ROOT)"
    return Reading(entry.call(folder.file, flags=flags), alone=True, obstacles=(obstacle(folder.file, what),))


def _open_by_handle(entry: Entry) -> Reading:
    root = entry.watch.root
    text = f"{root}: the program opens files by handle (open_by_handle_at), so their paths are not known"
    return Reading(entry.call(None), obstacles=(Obstacle(root, text),), is_asked=False)


def _two_names(entry: Entry, old: Found | None, new: Found | None) -> Reading | None:
    if old is None or new is None:
        return None
    if not entry.watch.covers(new.file.path):
        entry.watch.outside.gets(new.file.path, old.file.path)
    if not (entry.watch.sees(old) or entry.watch.sees(new)):
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
    if reading is not None and old is not None and old.file.kind == "file" and old.links == 0:
        what = "a file that was made without a name (O_TMPFILE) gets one, which the models of power loss do not know"
        reading.obstacles = (obstacle(reading.call.other or old.file, what),)
    return reading


def _remove(entry: Entry) -> Reading | None:
    it = entry.named(*((0, 1) if entry.name == "unlinkat" else (None, 0)), follow=False)
    return Reading(entry.call(it.file), alone=True) if it is not None and entry.watch.sees(it) else None


def _make_folder(entry: Entry) -> Reading | None:
    it = entry.named(*((0, 1) if entry.name == "mkdirat" else (None, 0)), follow=False)
    if it is None or not entry.watch.sees(it):
        return None
    mode = entry.new_mode(entry.whole(2 if entry.name == "mkdirat" else 1), stat.S_IFDIR)
    return Reading(entry.call(it.file, mode=mode), alone=True, makes=it.file.path)


def _symlink(entry: Entry) -> Reading | None:
    it = entry.named(*((1, 2) if entry.name == "symlinkat" else (None, 1)), follow=False)
    if it is None or not entry.watch.sees(it):
        if it is not None:
            entry.watch.outside.gets(it.file.path)
        return None
    target = entry.thread.memory.text(entry.arguments[0])
    return Reading(entry.call(it.file, target=target), alone=True, makes=it.file.path)


def _make_node(entry: Entry) -> Reading | None:
    """Source: mknod(2), also that no type is that of a file."""
    at: tuple[int | None, int] = (0, 1) if entry.name == "mknodat" else (None, 0)
    it = entry.named(*at, follow=False)
    if it is None or not entry.watch.sees(it):
        return None
    wanted = entry.whole(at[1] + 1)
    mode = entry.new_mode(wanted, stat.S_IFMT(wanted) or stat.S_IFREG)
    made = obstacle(it.file, "it is a device, which mknod has made")
    obstacles = (made,) if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else ()
    return Reading(entry.call(it.file, mode=mode), alone=True, obstacles=obstacles, makes=it.file.path)


def _bind(entry: Entry) -> Reading | None:
    """A socket gets a path. Source: bind(2), unix(7), also for the names that are no paths."""
    address = entry.thread.memory.read(entry.arguments[1], min(entry.whole(2), _LONGEST_ADDRESS))
    path = address[2:].partition(b"\0")[0]
    if int.from_bytes(address[:2], "little") != socket.AF_UNIX or not path:
        return None
    it = entry.thread.named(AT_FDCWD, os.fsdecode(path), follow=False)
    if it is None or not entry.watch.sees(it):
        return None
    return Reading(entry.call(it.file, mode=entry.new_mode(0o777, stat.S_IFSOCK)), alone=True, makes=it.file.path)


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
    "bind": _bind,
}
