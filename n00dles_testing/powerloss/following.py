"""From system calls to operations: who a file is, through renames, links, open descriptors and numbers used again."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable

from ..tracing.calls import Event, File, Mark, TracedCall
from .contents import Content
from .operations import (
    NEVER,
    ROOT,
    ChangeMode,
    Create,
    Link,
    MakeFolder,
    MakeSpecial,
    Marked,
    Operation,
    Rename,
    Special,
    Symlink,
    Sync,
    SyncAll,
    Truncate,
    Unlink,
    Write,
)
from .tree import Draft, Tree

__all__ = ["Follower", "LostTrack", "Unfollowable"]

_SPREAD = 4
"""Positions of operations are that many times those of the trace, so that a call can be a write and then a sync."""

_SYNCS = ("fsync", "fdatasync", "msync", "syncfs")
"""Calls that leave something behind when they fail; `sync` cannot."""

_TEMPORARY = getattr(os, "O_TMPFILE", 0)
_SPECIAL = {stat.S_IFIFO: Special.PIPE, stat.S_IFSOCK: Special.SOCKET}


class Unfollowable(Exception):
    """What a program did to its files cannot be told from its calls, so nobody knows what a disk might hold.

    The message says which file it is, and what was done to it. The verdict above is UNKNOWN.
    """


class LostTrack(Exception):
    """The calls, taken in this order, contradict each other. In another order they may not."""


class Follower:
    """Turns calls, one after the other, into operations, and keeps the tree that these lead to.

    `numbers` gives the inode of ours for the kernel's numbers of what is in `base`. A number goes to another file once
    its file is gone; so what decides is who was the last to get it. `alone` are the calls, by the position where they
    began, that no other one overlaps: only of them it is certain that what was there when they began is what they met.
    """

    def __init__(self, base: Tree, numbers: dict[int, int], root: str, alone: Collection[int]) -> None:
        self.draft = Draft(base)
        self.operations: list[Operation] = []
        self.names: dict[int, set[str]] = {}
        self._root = root
        self._numbers = dict(numbers)
        self._number_of = {inode: number for number, inode in numbers.items()}
        self._next = max([ROOT, *self._number_of], default=ROOT) + 1
        self._alone = alone
        self._following = _handlers(self)
        for path, inode in base.names():
            self.names.setdefault(inode, set()).add(path)

    def follow(self, events: Iterable[Event]) -> None:
        """Take the calls in this order. `LostTrack` if they cannot have happened in it; `Unfollowable` if never."""
        for event in events:
            if isinstance(event, Mark):
                at = event.entered * _SPREAD
                self._add(Marked(at, at, event.text))
            elif event.result is None or event.result >= 0:
                if handler := self._following.get(event.name):
                    handler(event)
            elif event.name in _SYNCS or (event.data and event.flags & os.O_DSYNC):
                self._following[event.name](event)

    # What each call does

    def _open(self, call: TracedCall) -> None:
        file = _file(call)
        path = self._inside(file.path)
        if path is None:
            return
        if _TEMPORARY and call.flags & _TEMPORARY == _TEMPORARY:
            self._new(call)
            return
        inode = self.draft.find(path)
        if inode is None and call.flags & os.O_CREAT:
            self._add(Create(*_span(call), *self._place(path), self._new(call), _permissions(call)), path)
            return
        inode = self._opened(call, path, inode)
        if call.flags & os.O_TRUNC and inode is not None:
            self._resize(call, inode, 0)

    def _opened(self, call: TracedCall, path: str, inode: int | None) -> int | None:
        """Return what an open has found: the file with the number that it has, which need not be that of its path."""
        if not call.inode:  # it never returned
            return inode
        if inode is not None and inode not in self._number_of:
            self._know(inode, call.inode)
            return inode
        found = self._numbers.get(call.inode)
        if call.entered in self._alone and found != inode and not isinstance(self.draft.node(inode or 0), str):
            raise LostTrack(f"`{path}` was opened, and is not the file that had this name by the calls before")
        return found

    def _write(self, call: TracedCall) -> None:
        inode = self._inode(call)
        if inode is None or not call.data or isinstance(self.draft.node(inode), Special):
            return  # what is in a pipe is on no disk
        if call.offset is None:
            raise Unfollowable(f"`{self._shown(_file(call).path)}` was written, and it is not known where in it")
        entered, exited = _span(call)
        is_synced = call.flags & os.O_DSYNC and call.result is not None
        self._add(Write(entered, exited - 2 if is_synced else exited, inode, call.offset, call.data))
        if is_synced:
            part = (call.offset, call.offset + len(call.data))
            data_only = call.flags & os.O_SYNC != os.O_SYNC
            self._add(Sync(exited - 1, exited, inode, data_only, failed=_has_failed(call), part=part))

    def _truncate(self, call: TracedCall) -> None:
        inode = self._inode(call)
        if inode is not None and call.length is not None:
            self._resize(call, inode, call.length)

    def _allocate(self, call: TracedCall) -> None:
        inode = self._inode(call)
        if inode is not None and call.length is not None and call.length > self._size(inode):
            self._resize(call, inode, call.length, allocated=True)

    def _sync(self, call: TracedCall) -> None:
        inode = self._inode(call)
        if inode is not None:
            part = None
            if call.offset is not None and call.length is not None:  # of msync
                part = (call.offset, call.offset + call.length)
            self._add(Sync(*_span(call), inode, data_only=call.name != "fsync", failed=_has_failed(call), part=part))

    def _sync_all(self, call: TracedCall) -> None:
        self._add(SyncAll(*_span(call), failed=_has_failed(call)))

    def _make_folder(self, call: TracedCall) -> None:
        if (path := self._inside(_file(call).path)) is not None:
            self._add(MakeFolder(*_span(call), *self._place(path), self._new(call), _permissions(call)), path)

    def _make_special(self, call: TracedCall) -> None:
        if (path := self._inside(_file(call).path)) is None:
            return
        where = (*_span(call), *self._place(path), self._new(call))
        special = _SPECIAL.get(stat.S_IFMT(call.mode or 0))
        mode = _permissions(call)
        self._add(Create(*where, mode) if special is None else MakeSpecial(*where, special, mode), path)

    def _change_mode(self, call: TracedCall) -> None:
        inode = self._inode(call)
        if inode is not None and call.mode is not None:
            self._add(ChangeMode(*_span(call), inode, call.mode))

    def _symlink(self, call: TracedCall) -> None:
        if (path := self._inside((call.other or _file(call)).path)) is not None:
            self._add(Symlink(*_span(call), *self._place(path), self._new(call), call.target), path)

    def _unlink(self, call: TracedCall) -> None:
        if (path := self._inside(_file(call).path)) is not None:
            self._add(Unlink(*_span(call), *self._place(path), self._entry(call, path)))

    def _link(self, call: TracedCall) -> None:
        path = self._inside(_other(call).path)
        inode = self._inode(call)
        if path is None:
            return
        if inode is None:
            raise Unfollowable(f"`{path}` is a link to {_file(call).path}, outside of the folder that is recorded")
        self._add(Link(*_span(call), *self._place(path), inode), path)

    def _rename(self, call: TracedCall) -> None:
        source, goal = self._inside(_file(call).path), self._inside(_other(call).path)
        if source is None and goal is not None:
            where = _file(call).path
            raise Unfollowable(
                f"`{goal}` was moved here from {where}, outside of the folder that is recorded; "
                "make a temporary file in the store's own folder, and rename it there"
            )
        if source is None:
            return
        inode = self._entry(call, source)
        if goal is None:
            self._add(Unlink(*_span(call), *self._place(source), inode))
            return
        replaces = self.draft.find(goal)
        if replaces != inode:  # else both are names of one file, and stay
            self._add(Rename(*_span(call), *self._place(source), *self._place(goal), inode, replaces), goal)

    # Who and where

    def _add(self, operation: Operation, path: str | None = None) -> None:
        try:
            self.draft.apply(operation)
        except TypeError as error:
            raise LostTrack(str(error)) from None
        self.operations.append(operation)
        if path is not None and not isinstance(operation, Marked | SyncAll):
            self.names.setdefault(operation.inode, set()).add(path)

    def _resize(self, call: TracedCall, inode: int, size: int, *, allocated: bool = False) -> None:
        old = self._size(inode)
        if size != old:
            self._add(Truncate(*_span(call), inode, old, size, allocated))

    def _size(self, inode: int) -> int:
        node = self.draft.node(inode)
        return node.size if isinstance(node, Content) else 0

    def _new(self, call: TracedCall) -> int:
        inode = self._next
        self._next += 1
        self._know(inode, call.inode)
        return inode

    def _know(self, inode: int, number: int) -> None:
        if number:
            self._numbers[number] = inode
            self._number_of[inode] = number

    def _inode(self, call: TracedCall) -> int | None:
        """Return whom a call is about, None if that is nothing of ours."""
        file = _file(call)
        path = self._inside(file.path)
        inode = self._numbers.get(file.inode)
        if inode is None and path is not None:
            inode = self.draft.find(path)
            if inode is None or inode in self._number_of:
                raise LostTrack(f"{call.name} is about `{path}`, a file that nobody has created")
            self._know(inode, file.inode)
        if inode is not None and file.kind == "file" and call.entered in self._alone and self._size(inode) != file.size:
            shown = self._shown(file.path)
            raise LostTrack(
                f"`{shown}` had {file.size} bytes before {call.name}, and {self._size(inode)} by the calls before"
            )
        return inode

    def _entry(self, call: TracedCall, path: str) -> int:
        """Return whom a name leads to that a call takes away."""
        inode = self.draft.find(path)
        if inode is None:
            raise LostTrack(f"{call.name} took away `{path}`, which was not there by the calls before")
        number = self._number_of.setdefault(inode, _file(call).inode)
        if call.entered in self._alone and number != _file(call).inode:
            raise LostTrack(f"{call.name} took away `{path}`, which was another file by the calls before")
        return inode

    def _place(self, path: str) -> tuple[int, str]:
        """Return the folder of a path, and the name in it."""
        folder, _, name = path.rpartition("/")
        inode = self.draft.find(folder)
        if not name:
            raise Unfollowable("the folder that is recorded was itself moved, made or taken away")
        if inode is None or not isinstance(self.draft.node(inode), dict):
            raise LostTrack(f"`{folder}` is no folder by the calls before, and `{path}` is in it")
        return inode, name

    def _inside(self, path: str) -> str | None:
        """Return a path relative to the folder that is recorded, None if it is outside."""
        if path == self._root:
            return ""
        return path[len(self._root) + 1 :] if path.startswith(self._root + "/") else None

    def _shown(self, path: str) -> str:
        return self._inside(path) or path


def _handlers(follower: Follower) -> dict[str, Callable[[TracedCall], None]]:
    does = {
        "open openat openat2 creat": follower._open,
        "write writev pwrite64 pwritev pwritev2 sendfile splice copy_file_range": follower._write,
        "truncate ftruncate": follower._truncate,
        "fallocate": follower._allocate,
        "fsync fdatasync msync": follower._sync,
        "sync syncfs": follower._sync_all,
        "mkdir mkdirat": follower._make_folder,
        "mknod mknodat bind": follower._make_special,
        "chmod fchmod fchmodat fchmodat2": follower._change_mode,
        "symlink symlinkat": follower._symlink,
        "unlink unlinkat rmdir": follower._unlink,
        "link linkat": follower._link,
        "rename renameat renameat2": follower._rename,
    }
    return {name: handler for names, handler in does.items() for name in names.split()}


def _span(call: TracedCall) -> tuple[int, int]:
    return call.entered * _SPREAD, NEVER if call.exited is None else call.exited * _SPREAD


def _permissions(call: TracedCall) -> int | None:
    return None if call.mode is None else stat.S_IMODE(call.mode)


def _has_failed(call: TracedCall) -> bool:
    return call.result is not None and call.result < 0


def _file(call: TracedCall) -> File:
    if call.file is None:
        raise Unfollowable(f"{call.name} was called, and it is not known on which file")
    return call.file


def _other(call: TracedCall) -> File:
    if call.other is None:
        raise Unfollowable(f"{call.name} was called, and it is not known with which new name")
    return call.other
