"""Seeing the moments at which a program changes files in a folder: one is emptied, or put in the place of another.

A checkpoint that is written in place is lost between the two moments at which its file is emptied and filled again. A
kill there is exact, and costs no more than a look at what Python reports of itself (audit events). Of a SQLite database
in the folder, the moments are those at which a transaction is about to be committed: what was committed before is
there, and the rest is not. What other C libraries do, as gdbm, is not seen.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Any

__all__ = ["pass_moment", "unseen", "watching_writes"]

_COMMITS = ("COMMIT", "END")
_CHANGES = ("INSERT", "UPDATE", "DELETE", "REPLACE")
"""What SQLite commits by itself, outside of a transaction."""


class _Watch:
    """Tells `moment` of each change in `folder`. What that raises goes on to the program."""

    def __init__(self, folder: Path, moment: Callable[[], None]) -> None:
        self._folders = tuple({f"{folder.absolute()}{os.sep}", f"{folder.resolve()}{os.sep}"})
        self.moment = moment

    def opens(self, path: Any, mode: Any, flags: Any) -> None:
        """A file is about to be opened. If that empties it, it is emptied here, so that a death finds it so."""
        if isinstance(flags, int) and flags & os.O_TRUNC and not flags & os.O_EXCL and self._is_inside(path):
            try:
                os.close(os.open(path, flags & ~os.O_APPEND, 0o666))
            except OSError:
                return  # the program is going to see the same error
            self.moment()

    def renames(self, path: Any, target: Any, *folders: Any) -> None:
        """A file is about to be put in the place of another."""
        if self._is_inside(target):
            self.moment()

    def connected(self, connection: sqlite3.Connection, database: Any) -> None:
        """A SQLite database was opened. From now on it tells of each statement as it begins."""
        if self._is_inside(os.fsdecode(database).removeprefix("file:").partition("?")[0]):
            connection.set_trace_callback(partial(self._begins, connection))

    def _begins(self, connection: sqlite3.Connection, statement: str) -> None:
        word = statement.lstrip().partition(" ")[0].rstrip(";").upper()
        if word in _COMMITS or (word in _CHANGES and not connection.in_transaction):
            pass_moment()

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

    Also before a transaction of a SQLite database in it is committed. One folder at a time. A hook like this cannot be
    taken out again; outside it looks at nothing.
    """
    global _watch, _is_installed  # noqa: PLW0603 - the hook is the process's own
    if not _is_installed:
        sys.addaudithook(_hook)
        _is_installed = True
    _watch = _Watch(folder, moment)
    modules: tuple[Any, ...] = (sqlite3, sqlite3.dbapi2)
    connect = sqlite3.connect
    try:
        for module in modules:
            module.connect = _connecting(connect)
        yield
    finally:
        for module in modules:
            module.connect = connect
        _watch = None


def _connecting(connect: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
    # That a connection is made is an audit event as well, but one at which nothing can be asked of it yet.
    @wraps(connect)
    def connecting(database: Any, *args: Any, **named: Any) -> sqlite3.Connection:
        connection = connect(database, *args, **named)
        if _watch is not None and not getattr(_thread, "is_unseen", False):
            _watch.connected(connection, database)
        return connection

    return connecting


def pass_moment() -> None:
    """Have it be such a moment, in this thread: whoever is watched has told so by another way."""
    if _watch is not None and not getattr(_thread, "is_unseen", False):
        with unseen():
            _watch.moment()


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
