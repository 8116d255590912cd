"""Seeing the moments at which a program changes files in a folder: one is emptied, or put in the place of another.

A checkpoint that is written in place is lost between the two moments at which its file is emptied and filled again. A
kill there is exact, and costs no more than a look at what Python reports of itself (audit events). What C libraries
do, as SQLite and gdbm, is not seen.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["unseen", "watching_writes"]


class _Watch:
    """Tells `moment` of each change in `folder`. What that raises goes on to the program."""

    def __init__(self, folder: Path, moment: Callable[[], None]) -> None:
        self._folders = tuple({f"{folder.absolute()}{os.sep}", f"{folder.resolve()}{os.sep}"})
        self._moment = moment

    def opens(self, path: Any, mode: Any, flags: Any) -> None:
        """A file is about to be opened. If that empties it, it is emptied here, so that a death finds it so."""
        if isinstance(flags, int) and flags & os.O_TRUNC and not flags & os.O_EXCL and self._is_inside(path):
            try:
                os.close(os.open(path, flags & ~os.O_APPEND, 0o666))
            except OSError:
                return  # the program is going to see the same error
            self._moment()

    def renames(self, path: Any, target: Any, *folders: Any) -> None:
        """A file is about to be put in the place of another."""
        if self._is_inside(target):
            self._moment()

    def _is_inside(self, path: Any) -> bool:
        if isinstance(path, int):
            return False
        return os.path.abspath(os.fsdecode(path)).startswith(self._folders)


_watch: _Watch | None = None
_is_installed = False
_thread = threading.local()


@contextmanager
def watching_writes(folder: Path, moment: Callable[[], None]) -> Iterator[None]:
    """Call `moment` whenever a file in `folder` has been emptied to be written, and before one is renamed.

    One folder at a time. A hook like this cannot be taken out again; outside it looks at nothing.
    """
    global _watch, _is_installed  # noqa: PLW0603 - the hook is the process's own
    if not _is_installed:
        sys.addaudithook(_hook)
        _is_installed = True
    _watch = _Watch(folder, moment)
    try:
        yield
    finally:
        _watch = None


@contextmanager
def unseen() -> Iterator[None]:
    """Do something in this thread that is not the program's own doing."""
    before = getattr(_thread, "is_unseen", False)
    _thread.is_unseen = True
    try:
        yield
    finally:
        _thread.is_unseen = before


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watch is None or event not in ("open", "os.rename") or getattr(_thread, "is_unseen", False):
        return
    watch = _watch
    with unseen():
        if event == "open":
            watch.opens(*arguments)
        else:
            watch.renames(*arguments)
