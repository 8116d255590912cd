"""What lies in a location, in words: the names and sizes of its files, for a story."""

from __future__ import annotations

import os
from pathlib import Path

from .plain_files import kind_of_special

__all__ = ["files_in"]

_SHOWN = 8
_LOOKED_AT = 2000
_LONGEST = 60


def files_in(folder: str | Path | None) -> str | None:
    """Return the files below `folder` with their sizes, at most eight by name; None if there is no folder."""
    if folder is None or not os.path.isdir(folder):
        return None
    found: list[str] = []
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            found.append(_told(os.path.join(place, name), folder))
            if len(found) == _LOOKED_AT:
                return f"{', '.join(found[:_SHOWN])} and at least {_LOOKED_AT - _SHOWN} more files"
    if not found:
        return "no file"
    rest = len(found) - _SHOWN
    more = "" if rest <= 0 else f" and {rest} more file{'s' if rest > 1 else ''}"
    return f"{', '.join(found[:_SHOWN])}{more}"


def _told(path: str, folder: str | Path) -> str:
    name = repr(os.path.relpath(path, folder))[1:-1]
    if len(name) > _LONGEST:
        name = f"{name[: _LONGEST // 2]}…{name[-_LONGEST // 2 :]}"
    try:
        status = os.lstat(path)
        return f"{name} ({kind_of_special(status.st_mode) or _size(status.st_size)})"
    except OSError:
        return f"{name} (gone)"


def _size(count: int) -> str:
    for unit, factor in (("MB", 1_000_000), ("KB", 1_000)):
        if count >= 10 * factor:
            return f"{count // factor} {unit}"
    return f"{count} B"
