"""Calls that change a file, or make it possible to, without a write that can be read: each is an obstacle."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable

from .calls import Obstacle
from .entries import Entry, Reading, obstacle
from .watching import Found

__all__ = ["HIDDEN_CALLS", "SHARED_MAPPING"]

SHARED_MAPPING = "it is mapped into memory to be written there, which is no call"
_IO_CONTROL = struct.Struct("<QIIHhIQQq")
_WRITES_OR_SYNCS = {1, 2, 3, 8}
"""PWRITE, FSYNC, FDSYNC and PWRITEV of `linux/aio_abi.h`."""


def _map(entry: Entry) -> Reading | None:
    if entry.whole(3) & mmap.MAP_ANONYMOUS or not entry.whole(2) & mmap.PROT_WRITE:
        return None
    return _mapped(entry, [it for it in [entry.descriptor(4)] if it is not None])


def _protect(entry: Entry) -> Reading | None:
    return _mapped(entry, [it for it in entry.thread.mapped(*entry.arguments[:2]) if entry.watch.sees(it)])


def _mapped(entry: Entry, files: list[Found]) -> Reading | None:
    if not files:
        return None
    obstacles = tuple(obstacle(it.file, SHARED_MAPPING) for it in files)
    return Reading(entry.call(files[0].file), obstacles=obstacles, is_asked=False)


def _transfer(entry: Entry) -> Reading | None:
    it = entry.descriptor(0 if entry.name == "sendfile" else 2)
    return None if it is None else _obstructed(entry, it, f"its bytes come from another file or a pipe ({entry.name})")


def _clone(entry: Entry) -> Reading | None:
    it = entry.descriptor(0)
    return None if it is None else _obstructed(entry, it, "it shares bytes with another file (ioctl, clone or dedupe)")


def _obstructed(entry: Entry, it: Found, what: str) -> Reading:
    return Reading(entry.call(it.file), obstacles=(obstacle(it.file, what),))


def _ring(entry: Entry) -> Reading:
    root = entry.watch.root
    text = f"{root}: the program uses io_uring, whose reads and writes are no calls"
    return Reading(entry.call(None), obstacles=(Obstacle(root, text),), is_asked=False)


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


HIDDEN_CALLS: dict[str, Callable[[Entry], Reading | None]] = {
    "mmap": _map,
    "mprotect": _protect,
    "pkey_mprotect": _protect,
    "sendfile": _transfer,
    "splice": _transfer,
    "copy_file_range": _transfer,
    "ioctl": _clone,
    "io_uring_setup": _ring,
    "io_submit": _submit,
}
