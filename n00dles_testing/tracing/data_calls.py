"""Calls that change or sync the bytes of a file: writes, sizes, syncs."""

from __future__ import annotations

import os
from collections.abc import Callable

from .entries import Entry, Reading, obstacle

__all__ = ["DATA_CALLS"]

_RWF_DSYNC, _RWF_SYNC, _RWF_APPEND, _RWF_NOAPPEND = 0x2, 0x4, 0x10, 0x20
_KEEPS_SIZE = 0x1
_MS_SYNC = 4
_DIRECT = getattr(os, "O_DIRECT", 0)
_OF_PARTS = {"writev", "pwritev", "pwritev2"}


def _write(entry: Entry) -> Reading | None:
    """Source: pwritev2(2), also for the flags; that O_APPEND beats an offset, pwrite(2)."""
    it = entry.written(0)
    if it is None:
        return None
    position, flags = entry.thread.position(entry.whole(0))
    offset = position
    if entry.name.startswith("pw"):
        offset = entry.signed(3)
    if entry.name == "pwritev2":
        wanted = entry.whole(5)
        offset = position if offset == -1 else offset
        flags |= os.O_DSYNC if wanted & _RWF_DSYNC else 0
        flags |= os.O_SYNC if wanted & _RWF_SYNC else 0
        flags |= os.O_APPEND if wanted & _RWF_APPEND else 0
        flags &= ~(os.O_APPEND if wanted & _RWF_NOAPPEND else 0)
    if flags & os.O_APPEND:
        offset = it.file.size
    address, length = entry.arguments[1:3]
    memory = entry.thread.memory
    parts = memory.parts(address, length) if entry.name in _OF_PARTS else None
    data = memory.read(address, length) if parts is None else b"".join(memory.read(*part) for part in parts)
    direct = "it is written with O_DIRECT, past the page cache, which the models of power loss do not know"
    return Reading(
        entry.call(it.file, flags=flags, offset=offset, data=data),
        alone=it.file.kind == "file",
        obstacles=(obstacle(it.file, direct),) if flags & _DIRECT else (),
        vector=None if parts is None else _first_with_bytes(address, parts),
    )


def _first_with_bytes(address: int, parts: list[tuple[int, int]]) -> tuple[int, int, int] | None:
    """Return the `vector` of a reading. A part is an `iovec`: 8 bytes of address, and 8 of length."""
    found = next((number for number, (_, length) in enumerate(parts) if length), None)
    return None if found is None else (address + 16 * found + 8, found + 1, parts[found][1])


def _transfer(entry: Entry) -> Reading | None:
    """Bytes come from another file or a pipe. Source: sendfile(2), copy_file_range(2), splice(2)."""
    place = 0 if entry.name == "sendfile" else 2
    it = entry.descriptor(place)
    if it is None:
        return None
    number = entry.whole(place)
    offset, flags = entry.thread.position(number)
    if place and (address := entry.arguments[3]):
        (offset,) = entry.thread.memory.words(address, 1) or (0,)
    # A splice that waits for bytes must not keep others waiting, who may have to write them.
    waits = entry.name == "splice" and not entry.thread.has_bytes(entry.whole(0))
    if waits or it.file.kind != "file":
        text = f"its bytes come from another file or a pipe ({entry.name})"
        return Reading(entry.call(it.file), obstacles=(obstacle(it.file, text),))
    return Reading(entry.call(it.file, flags=flags, offset=offset), alone=True, fills=number)


def _sync(entry: Entry) -> Reading | None:
    it = entry.descriptor(0)
    if it is None:
        return None
    return Reading(entry.call(it.file, flags=entry.thread.position(entry.whole(0))[1]))


def _sync_file_system(entry: Entry) -> Reading | None:
    """Files of one file system may have several devices, on overlayfs and btrfs; a mount is of one file system."""
    number = entry.whole(0)
    it = entry.thread.descriptor(number)
    if it is None or not (it.device == entry.watch.device or entry.thread.mount(number) == entry.watch.mount):
        return None
    return Reading(entry.call(it.file))


def _sync_everything(entry: Entry) -> Reading:
    return Reading(entry.call(None))


def _sync_mapping(entry: Entry) -> Reading | None:
    """Only MS_SYNC does something: it is an fdatasync of the part that is mapped. Source: mm/msync.c."""
    if not entry.whole(2) & _MS_SYNC:
        return None
    mappings = [it for it in entry.thread.mapped(*entry.arguments[:2]) if entry.watch.sees(it.found)]
    if not mappings:
        return None
    it, *others = mappings
    several = "msync syncs several mappings at once, and only the first is told"
    return Reading(
        entry.call(it.found.file, offset=it.offset, length=it.length),
        obstacles=tuple(obstacle(other.found.file, several) for other in others),
    )


def _truncate(entry: Entry) -> Reading | None:
    it = entry.descriptor(0) if entry.name == "ftruncate" else entry.named(None, 0, follow=True)
    if it is None or not entry.watch.sees(it):
        return None
    return Reading(entry.call(it.file, length=entry.signed(1)), alone=it.file.kind == "file")


def _allocate(entry: Entry) -> Reading | None:
    """Source: fallocate(2). Without a mode it makes the file longer; else it must at least leave the bytes alone."""
    it = entry.descriptor(0)
    if it is None:
        return None
    mode = entry.whole(1)
    hole = f"fallocate with mode {mode:#x} changes bytes of it without writing them"
    return Reading(
        entry.call(it.file, flags=mode, length=None if mode else entry.signed(2) + entry.signed(3)),
        alone=it.file.kind == "file",
        obstacles=(obstacle(it.file, hole),) if mode not in (0, _KEEPS_SIZE) else (),
    )


DATA_CALLS: dict[str, Callable[[Entry], Reading | None]] = {
    "write": _write,
    "pwrite64": _write,
    "writev": _write,
    "pwritev": _write,
    "pwritev2": _write,
    "sendfile": _transfer,
    "splice": _transfer,
    "copy_file_range": _transfer,
    "fsync": _sync,
    "fdatasync": _sync,
    "sync_file_range": _sync,
    "syncfs": _sync_file_system,
    "sync": _sync_everything,
    "msync": _sync_mapping,
    "truncate": _truncate,
    "ftruncate": _truncate,
    "fallocate": _allocate,
}
