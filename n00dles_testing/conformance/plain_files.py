"""The plain files of a location, and a copy of them: whoever opens a pipe waits for its other end, maybe for ever.

A store may also keep a Unix socket, a named pipe, or the number of a process as a link that leads nowhere. These hold
no data, cannot be copied, and are left out wherever a location is read.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["copy_plain_files", "kind_of_special", "plain_files"]

_KINDS = (
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISFIFO, "named pipe"),
    (stat.S_ISLNK, "link"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)


def plain_files(folder: str | Path) -> Iterator[Path]:
    """Yield each file below `folder` that can be read, in the order of the names; a link to one is one."""
    for path in sorted(Path(folder).rglob("*")):
        with suppress(OSError):  # it has just gone
            if path.is_file():
                yield path


def copy_plain_files(source: str, target: str) -> None:
    """Copy the folders and plain files of `source` into the folder `target`, which is made if need be."""
    for folder, _, _ in os.walk(source):
        os.makedirs(os.path.join(target, os.path.relpath(folder, source)), exist_ok=True)
    for path in plain_files(source):
        with suppress(FileNotFoundError):  # a process of the store's own has just removed it
            shutil.copy2(path, Path(target, path.relative_to(source)))


def kind_of_special(mode: int) -> str | None:
    """Say what a file of this mode is; None for a plain file."""
    return next((kind for is_kind, kind in _KINDS if is_kind(mode)), None)
