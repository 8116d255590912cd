"""One SQLite connection that is used by one caller at a time, opened when needed, and again after a fork."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from typing import Literal, TypeVar
from weakref import WeakSet

from ..errors import N00dlesError
from .sqlite_connection import is_busy, open_database, store_error

__all__ = ["SQLiteSession", "WouldWaitError"]

T = TypeVar("T")

# Closing an inherited connection in a forked child would also drop locks and delete files that the parent relies on
# (https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_), so it is kept open.
_inherited: list[sqlite3.Connection] = []
_sessions: WeakSet[SQLiteSession] = WeakSet()  # every one of this process


class WouldWaitError(Exception):
    """The call would have to wait for another caller, another process, or the file to be opened; nothing was done."""


class SQLiteSession:
    """Runs transactions on the database at `path`, one at a time. `busy_timeout` is in seconds."""

    def __init__(self, path: str, busy_timeout: float) -> None:
        self.path = path
        self.busy_timeout = busy_timeout
        self._connection: sqlite3.Connection | None = None
        self._waits = True
        self._lock = threading.Lock()
        _sessions.add(self)

    def transaction(
        self,
        kind: Literal["BEGIN", "BEGIN IMMEDIATE"],
        work: Callable[[sqlite3.Connection], T],
        *,
        run_id: str | None = None,
        wait: bool = True,
        committed: Callable[[T], None] | None = None,
    ) -> T:
        """Run `work` in one transaction and return what it returns; `committed` gets it before anybody else's turn.

        With `wait=False`, raises `WouldWaitError` instead of waiting. Raises `StateStoreError` when SQLite fails; the
        transaction is then rolled back, and the connection is opened anew for the next call.
        """
        if not self._lock.acquire(blocking=wait):
            raise WouldWaitError
        try:
            connection = self._open(wait)
            result = _run(connection, kind, work)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if is_busy(error) and not wait:
                raise WouldWaitError from None
            if not is_busy(error):
                self._close()
            raise store_error(error, self.path, self.busy_timeout, run_id) from error
        else:
            if committed is not None:
                committed(result)
            return result
        finally:
            self._lock.release()

    def empty_log(self) -> None:
        """Move the write-ahead log into the database and cut it to nothing, unless another process is reading."""
        with self._lock:
            try:
                self._open(wait=False).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except (sqlite3.Error, WouldWaitError):
                return

    def close(self) -> None:
        """Close the connection, if this process has opened it."""
        with self._lock:
            self._close()

    def _open(self, wait: bool) -> sqlite3.Connection:
        if self._connection is None:
            if not wait:
                raise WouldWaitError
            self._connection = open_database(self.path, self.busy_timeout)
            self._waits = True
        if self._waits is not wait:
            self._connection.execute(f"PRAGMA busy_timeout = {int(self.busy_timeout * 1000) if wait else 0}")
            self._waits = wait
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def forget(self) -> None:
        """Start anew in a forked child, where the connection is the parent's, and the lock may be held by nobody."""
        if self._connection is not None:
            _inherited.append(self._connection)
        self._connection = None
        self._lock = threading.Lock()


def _forget_all() -> None:
    for session in list(_sessions):
        session.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def _run(connection: sqlite3.Connection, kind: str, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute(kind)
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            _roll_back(connection, error)
        raise
    return result


def _roll_back(connection: sqlite3.Connection, cause: BaseException) -> None:
    try:
        connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        if isinstance(cause, N00dlesError):
            raise
        cause.add_note(f"and the rollback failed: {error}")
