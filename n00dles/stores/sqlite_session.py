"""One SQLite connection that is used by one caller at a time, opened when needed, and closed before a fork."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, TypeVar
from weakref import WeakSet

from ..errors import N00dlesError, StateStoreError
from .sqlite_connection import is_busy, is_read_only, open_database, store_error
from .sqlite_log import WriteAheadLog

__all__ = ["SQLiteSession", "WouldWaitError"]

T = TypeVar("T")

_FAST_SECONDS = 0.001

# SQLite keeps note of a file's locks in the memory of the process. After a fork with an open connection the child has
# the note and not the locks: also of a connection that it opens itself, the kernel then knows nothing, the parent
# removes the log when it closes, and what the child commits is gone. So a fork closes every connection before, and the
# next call opens one. Where a fork could not wait for that, the connection is kept here: closing it would drop locks
# and delete files that the parent relies on, and its file cannot be used in this process any more. See
# https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_
_inherited: dict[str, sqlite3.Connection | None] = {}
_sessions: WeakSet[SQLiteSession] = WeakSet()  # every one of this process


class WouldWaitError(Exception):
    """The call would have to wait for another caller, another process, or the file to be opened; nothing was done."""


class SQLiteSession:
    """Runs transactions on the database at `path`, one at a time. `busy_timeout` is in seconds.

    `is_fast` says that the last one took less than a millisecond, so that an event loop may wait for the next.
    """

    def __init__(self, path: str, busy_timeout: float) -> None:
        self.path = path
        self.busy_timeout = busy_timeout
        self._connection: sqlite3.Connection | None = None
        self._log = WriteAheadLog(path)
        self._waits = True
        self.is_fast = False
        # Reentrant: while a fork holds it, the collector may close the session of a store that nobody has any more.
        self._lock = threading.RLock()
        self._is_held_by_a_fork: bool | None = None  # False: a fork could not wait for the lock
        _sessions.add(self)

    def transaction(
        self,
        kind: Literal["BEGIN", "BEGIN IMMEDIATE"],
        work: Callable[[sqlite3.Connection], T],
        *,
        run_id: str | None = None,
        wait: bool = True,
        committed: Callable[[Any], None] | None = None,
    ) -> T:
        """Run `work` in one transaction and return what it returns.

        `committed` gets that before anybody else's turn, unless it is None.

        With `wait=False`, raises `WouldWaitError` instead of waiting. Raises `StateStoreError` when SQLite fails; the
        transaction is then rolled back, and the connection is opened anew for the next call.
        """
        if not self._lock.acquire(blocking=wait):
            raise WouldWaitError
        started = time.perf_counter()
        try:
            result = self._run(kind, work, wait)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if is_busy(error) and not wait:
                raise WouldWaitError from None
            if not is_busy(error):
                self._close()
            raise store_error(error, self.path, self.busy_timeout, run_id) from error
        else:
            if committed is not None and result is not None:
                committed(result)
            return result
        finally:
            self.is_fast = time.perf_counter() - started < _FAST_SECONDS
            self._lock.release()

    def _run(self, kind: Literal["BEGIN", "BEGIN IMMEDIATE"], work: Callable[[sqlite3.Connection], T], wait: bool) -> T:
        try:
            return self._transaction(self._open(wait), kind, work)
        except sqlite3.OperationalError as error:
            if not is_read_only(error):
                raise
            # SQLite opens a file for reading if it cannot be opened for writing, be it for want of a descriptor at
            # that moment, and then never writes.
            self._close()
            return self._transaction(self._open(wait), kind, work)

    def _transaction(self, connection: sqlite3.Connection, kind: str, work: Callable[[sqlite3.Connection], T]) -> T:
        connection.execute(kind)
        try:
            if kind == "BEGIN IMMEDIATE":
                self._log.grow_ahead()
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                _roll_back(connection, error)
            raise
        return result

    def empty_log(self) -> None:
        """Move the write-ahead log into the database and cut it to nothing, unless another process reads or writes."""
        with self._lock:
            try:
                self._open(wait=False).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                self._log.begin_anew()
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
            if os.path.realpath(self.path) in _inherited:
                raise StateStoreError(
                    f"the SQLite store {self.path!r} was at work in another thread while this process was forked, and "
                    "SQLite cannot use a file safely after that. Nothing was read or written; fork while no call is "
                    "under way, or open the store in a fresh process."
                )
            self._connection = open_database(self.path, self.busy_timeout)
            self._log = WriteAheadLog(self.path)
            self._waits = True
        if self._waits is not wait:
            self._connection.execute(f"PRAGMA busy_timeout = {int(self.busy_timeout * 1000) if wait else 0}")
            self._waits = wait
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close_for_a_fork(self) -> None:
        """Close the connection and let nobody open it until the fork is done.

        A call that is under way in another thread is waited for, `busy_timeout` at most.
        """
        self._is_held_by_a_fork = self._lock.acquire(timeout=self.busy_timeout)
        if self._is_held_by_a_fork:
            with suppress(sqlite3.Error):
                self._close()

    def go_on_in_the_parent(self) -> None:
        """Let others use the session again."""
        is_held, self._is_held_by_a_fork = self._is_held_by_a_fork, None
        if is_held:
            self._lock.release()

    def begin_in_the_child(self) -> None:
        """Start anew: the lock may be held by a thread that is not there, and a connection is the parent's."""
        if self._connection is not None or self._is_held_by_a_fork is False:
            _inherited[os.path.realpath(self.path)] = self._connection
        self._connection = None
        self._lock = threading.RLock()
        self._is_held_by_a_fork = None


def _for_all(act: Callable[[SQLiteSession], None]) -> Callable[[], None]:
    def act_on_all() -> None:
        for session in list(_sessions):
            act(session)

    return act_on_all


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_for_all(SQLiteSession.close_for_a_fork),
        after_in_parent=_for_all(SQLiteSession.go_on_in_the_parent),
        after_in_child=_for_all(SQLiteSession.begin_in_the_child),
    )


def _roll_back(connection: sqlite3.Connection, cause: BaseException) -> None:
    try:
        connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        if isinstance(cause, N00dlesError):
            raise
        cause.add_note(f"and the rollback failed: {error}")
