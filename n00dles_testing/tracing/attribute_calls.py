"""Calls that change what is known about a file beside its names and bytes: permissions, owner, extended attributes."""

from __future__ import annotations

from collections.abc import Callable

from .entries import Entry, Reading, obstacle
from .watching import Found

__all__ = ["ATTRIBUTE_CALLS"]

_NO_FOLLOW, _EMPTY_PATH = 0x100, 0x1000
_NOBODY = -1


def _change_mode(entry: Entry) -> Reading | None:
    """Source: chmod(2), fchmodat(2)."""
    place = 2 if entry.name.startswith("fchmodat") else 1
    it = _changed(entry, 3 if entry.name == "fchmodat2" else None)
    if it is None:
        return None
    return Reading(entry.call(it.file, mode=entry.whole(place) & 0o7777), alone=True)


def _change_owner(entry: Entry) -> Reading | None:
    """Most often nothing changes: SQLite gives its log the owner of the database. Source: chown(2)."""
    it = _changed(entry, 4 if entry.name == "fchownat" else None)
    if it is None:
        return None
    place = 2 if entry.name == "fchownat" else 1
    wanted = entry.whole(place), entry.whole(place + 1)
    if all(new in (_NOBODY, old) for new, old in zip(wanted, it.owner, strict=True)):
        return None
    return _obstructed(entry, it, "it gets another owner, and no state has that")


def _change_attributes(entry: Entry) -> Reading | None:
    """Source: setxattr(2), removexattr(2); `setxattrat` in fs/xattr.c."""
    it = _changed(entry, 2 if entry.name.endswith("at") else None)
    return None if it is None else _obstructed(entry, it, f"its extended attributes change ({entry.name})")


def _changed(entry: Entry, flags: int | None) -> Found | None:
    """Return the watched file that a call is about. `flags` is which argument has them, if there are any."""
    if entry.name.endswith(("at", "at2")):
        wanted = 0 if flags is None else entry.whole(flags)
        if wanted & _EMPTY_PATH and not entry.thread.memory.text(entry.arguments[1]):
            return entry.descriptor(0)
        it = entry.named(0, 1, follow=not wanted & _NO_FOLLOW)
    elif entry.name.startswith("f"):
        return entry.descriptor(0)
    else:
        it = entry.named(None, 0, follow=not entry.name.startswith("l"))
    return it if it is not None and entry.watch.sees(it) and it.file.kind != "none" else None


def _obstructed(entry: Entry, it: Found, what: str) -> Reading:
    return Reading(entry.call(it.file), obstacles=(obstacle(it.file, what),), is_asked=False)


ATTRIBUTE_CALLS: dict[str, Callable[[Entry], Reading | None]] = {
    **dict.fromkeys(("chmod", "fchmod", "fchmodat", "fchmodat2"), _change_mode),
    **dict.fromkeys(("chown", "fchown", "lchown", "fchownat"), _change_owner),
    **dict.fromkeys(("setxattr", "lsetxattr", "fsetxattr", "setxattrat"), _change_attributes),
    **dict.fromkeys(("removexattr", "lremovexattr", "fremovexattr", "removexattrat"), _change_attributes),
}
