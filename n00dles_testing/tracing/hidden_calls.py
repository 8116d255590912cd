"""Calls that change a file, or make it possible to, without a write that can be read: each is an obstacle."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable

from .calls import Obstacle
from .entries import Entry, Reading, obstacle
from .filters import ATOMIC_WRITE, UNTRACED
from .watching import Found

__all__ = ["HIDDEN_CALLS", "SHARED_MAPPING"]

SHARED_MAPPING = "it is mapped into memory to be written there, which is no call"
_IO_CONTROL = struct.Struct("<QIIHhIQQq")
_WRITES_OR_SYNCS = {1, 2, 3, 8}
"""PWRITE, FSYNC, FDSYNC and PWRITEV of `linux/aio_abi.h`."""
_NEW_MOUNTS = 0x20000
"""CLONE_NEWNS of `linux/sched.h`."""


def _map(entry: Entry) -> Reading | None:
    it = None if entry.whole(3) & mmap.MAP_ANONYMOUS else entry.descriptor(4)
    if it is None:
        return None
    entry.watch.is_mapped = True
    return _mapped(entry, [it]) if entry.whole(2) & mmap.PROT_WRITE else None


def _protect(entry: Entry) -> Reading | None:
    """Nearly always it is about memory without a file, as `malloc` does it, so it is not worth a look."""
    if not entry.watch.is_mapped:
        return None
    return _mapped(entry, [it.found for it in entry.thread.mapped(*entry.arguments[:2]) if entry.watch.sees(it.found)])


def _mapped(entry: Entry, files: list[Found]) -> Reading | None:
    if not files:
        return None
    obstacles = tuple(obstacle(it.file, SHARED_MAPPING) for it in files)
    return Reading(entry.call(files[0].file), obstacles=obstacles, is_asked=False)


def _control(entry: Entry) -> Reading | None:
    it = entry.descriptor(0)
    if it is None:
        return None
    what = "it shares bytes with another file (ioctl, clone or dedupe)"
    if entry.whole(1) == ATOMIC_WRITE:
        what = "all that was written in an atomic write of F2FS comes into it at once (ioctl)"
    return Reading(entry.call(it.file), obstacles=(obstacle(it.file, what),))


def _ring(entry: Entry) -> Reading:
    return _of_the_root(entry, "the program uses io_uring, whose reads and writes are no calls")


def _submit(entry: Entry) -> Reading | None:
    """Source: io_submit(2)."""
    obstacles: list[Obstacle] = []
    for address in entry.thread.memory.words(entry.arguments[2], min(entry.whole(1), 1024)):
        block = entry.thread.memory.read(address, _IO_CONTROL.size)
        if len(block) < _IO_CONTROL.size:
            break
        _, _, _, what, _, descriptor, *_ = _IO_CONTROL.unpack(block)
        it = entry.thread.descriptor(descriptor)
        if what in _WRITES_OR_SYNCS and it is not None and entry.watch.sees(it):
            obstacles.append(obstacle(it.file, "it is written or synced in the background (io_submit)"))
    return Reading(entry.call(None), obstacles=tuple(obstacles), is_asked=False) if obstacles else None


def _clone_process(entry: Entry) -> Reading | None:
    """Source: clone(2). A child that is not to be traced has the filter all the same, and nobody who answers to it."""
    flags = entry.arguments[0]
    if entry.name == "clone3":
        (flags,) = entry.thread.memory.words(entry.arguments[0], 1) or (0,)
    if not flags & UNTRACED:
        return None
    return _of_the_root(entry, "the program starts a process that must not be traced (CLONE_UNTRACED)")


def _other_paths(entry: Entry) -> Reading | None:
    """Source: chroot(2), pivot_root(2), setns(2), mount(2). Paths are then others than those that the tracer sees."""
    return _of_the_root(entry, f"the program changes what paths lead to ({entry.name})")


def _other_mounts(entry: Entry) -> Reading | None:
    """Source: setns(2). Of other namespaces (network, processes) no path depends."""
    return _other_paths(entry) if entry.whole(1) & _NEW_MOUNTS or not entry.whole(1) else None


def _of_the_root(entry: Entry, what: str) -> Reading:
    root = entry.watch.root
    return Reading(entry.call(None), obstacles=(Obstacle(root, f"{root}: {what}"),), is_asked=False)


HIDDEN_CALLS: dict[str, Callable[[Entry], Reading | None]] = {
    "mmap": _map,
    "mprotect": _protect,
    "pkey_mprotect": _protect,
    "ioctl": _control,
    "io_uring_setup": _ring,
    "io_uring_enter": _ring,
    "io_submit": _submit,
    "clone": _clone_process,
    "clone3": _clone_process,
    "chroot": _other_paths,
    "pivot_root": _other_paths,
    "mount": _other_paths,
    "umount2": _other_paths,
    "move_mount": _other_paths,
    "setns": _other_mounts,
}
