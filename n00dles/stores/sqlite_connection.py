"""How the SQLite store opens a file: the settings that make a commit durable, the schema, and errors that help.

Write-ahead log with synchronous=FULL: a commit is on disk when it returns. Python's default (rollback journal, FULL)
does not sync the removal of its journal, so a power cut may take the last commit back; WAL with NORMAL may take many.
See https://www.sqlite.org/pragma.html#pragma_synchronous.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from ..errors import CorruptCheckpointError, StateStoreError, StoreVersionError

__all__ = ["SCHEMA_VERSION", "check_path", "is_busy", "is_read_only", "open_database", "store_error"]

SCHEMA_VERSION = 1

_HEADER_BYTES = 100

# A run is found by two indexes, so that damage to one of them does not make it look new.
_SCHEMA = (
    """CREATE TABLE n00dles_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE n00dles_runs (
        run_key INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, inputs TEXT NOT NULL, signature TEXT NOT NULL,
        checksum INTEGER NOT NULL)""",
    "CREATE UNIQUE INDEX n00dles_run_ids ON n00dles_runs (run_id)",
    "CREATE UNIQUE INDEX n00dles_run_ids_again ON n00dles_runs (run_id, run_key)",
    """CREATE TABLE n00dles_records (
        id INTEGER PRIMARY KEY, node TEXT, content TEXT NOT NULL, attempts INTEGER, input_tokens INTEGER,
        output_tokens INTEGER, duration_ms REAL, error TEXT, checksum INTEGER NOT NULL)""",
)


def open_database(path: str, busy_timeout: float) -> sqlite3.Connection:
    """Open the database at `path`, create its tables if they are missing, and return the connection.

    `busy_timeout` is in seconds. Raises `StateStoreError` (or `StoreVersionError`, `CorruptCheckpointError`) saying
    what is wrong with the path or the file; nothing is then changed.
    """
    check_path(path)
    try:
        connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise store_error(error, path, busy_timeout) from error
    try:
        _set_up(connection, path, busy_timeout)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        connection.close()
        raise store_error(error, path, busy_timeout) from error
    except BaseException:
        connection.close()
        raise
    return connection


def store_error(
    error: sqlite3.Error | UnicodeDecodeError, path: str, busy_timeout: float, run_id: str | None = None
) -> StateStoreError:
    """Turn an error of SQLite into ours: which database, which run, and what to do."""
    code = getattr(error, "sqlite_errorname", "") or ""
    subject = f"the SQLite store {path!r}" + (f" (run {run_id!r})" if run_id is not None else "")
    damage = _damage(error, code)
    if damage is not None:
        return CorruptCheckpointError(
            f"{subject} is damaged: {damage}. It is left as it is; restore it from a backup, or name another file.",
            run_id=run_id,
        )
    advice = next((text for prefix, text in _ADVICE if code.startswith(prefix)), "see the cause above")
    return StateStoreError(
        f"{subject} failed: {error} ({code or type(error).__name__}); {advice.format(busy_timeout=busy_timeout)}. "
        "Nothing of this call was acknowledged; resume the run once it works again.",
        run_id=run_id,
    )


def _damage(error: sqlite3.Error | UnicodeDecodeError, code: str) -> str | None:
    """Say what is damaged, if that is what the error means."""
    if isinstance(error, UnicodeDecodeError) or "Could not decode to UTF-8" in str(error):
        # The message of SQLite would quote what is stored.
        return "a text in it is not UTF-8 any more"
    if code == "SQLITE_ERROR":
        # All statements are fixed, so it can only be the tables that are not as they were made.
        return f"its tables are not those of a store: {error}"
    return str(error) if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) else None


_ADVICE = (
    ("SQLITE_BUSY", "another process has held the write lock for more than {busy_timeout:g} s"),
    ("SQLITE_LOCKED", "another connection of this process holds the lock"),
    ("SQLITE_FULL", "the disk or the quota is full: make room"),
    ("SQLITE_READONLY", "the file or its folder cannot be written: check its owner and mode"),
    ("SQLITE_CANTOPEN", "the file or its folder cannot be opened: check that it exists, its owner and its mode"),
    ("SQLITE_PERM", "the file cannot be written: check its owner and mode"),
    ("SQLITE_IOERR", "the disk reported an error: check free space, quota and hardware"),
    ("SQLITE_TOOBIG", "a value is larger than SQLite's limit (1 GB by default)"),
)


def check_path(path: str) -> None:
    """Raise `StateStoreError`, or `CorruptCheckpointError`, saying what keeps a database from being at `path`."""
    target = Path(path)
    if target.is_dir():
        raise StateStoreError(
            f"the SQLite store {path!r} is a folder; name a file in it, as in {path + '/n00dles.db'!r}."
        )
    size = target.stat().st_size if target.exists() else 0
    if 0 < size < _HEADER_BYTES:
        # SQLite would take it for a new database, and write over what is left of the old one.
        raise CorruptCheckpointError(
            f"the SQLite store {path!r} is damaged: it has {size} byte{'s' if size > 1 else ''}, and a database begins "
            f"with {_HEADER_BYTES}. It is left as it is; restore it from a backup, or name another file."
        )
    if not size and (log := _log_without_database(target)):
        # SQLite would take it for a new database, and remove the log, which may hold all that is left.
        raise CorruptCheckpointError(
            f"the SQLite store {path!r} is damaged: it is empty, and its write-ahead log ({log} bytes) is not. Both "
            "are left as they are; restore them from a backup, or name another file."
        )
    if not target.parent.is_dir():
        raise StateStoreError(f"the folder of the SQLite store {path!r} does not exist; create {str(target.parent)!r}.")
    if target.exists() and not os.access(target, os.W_OK):
        raise StateStoreError(f"the SQLite store {path!r} cannot be written; check its owner and mode.")
    if not target.exists() and not os.access(target.parent, os.W_OK):
        raise StateStoreError(f"the folder {str(target.parent)!r} cannot be written, so {path!r} cannot be created.")


def _log_without_database(database: Path) -> int:
    """Return the size of the write-ahead log beside an empty database; 0 if there is none, or it is not empty."""
    log = database.with_name(f"{database.name}-wal")
    size = log.stat().st_size if log.exists() else 0
    # In this order: another process that creates the database at this moment writes to it before there is a log.
    return size if size and database.exists() and not database.stat().st_size else 0


def _set_up(connection: sqlite3.Connection, path: str, busy_timeout: float) -> None:
    _check_version(connection, path)
    _use_write_ahead_log(connection, path, busy_timeout)
    connection.execute("PRAGMA synchronous = FULL")
    # Only macOS has it: there, fsync alone does not empty the cache of the drive.
    connection.execute("PRAGMA fullfsync = ON")
    # A deleted run leaves no bytes behind in free pages.
    connection.execute("PRAGMA secure_delete = ON")
    if not _has_tables(connection):
        _create_tables(connection, path)


def _use_write_ahead_log(connection: sqlite3.Connection, path: str, busy_timeout: float) -> None:
    # SQLite does not call its busy handler while several openers switch a new file to WAL, so we wait ourselves.
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
    if mode != "wal":
        raise StateStoreError(
            f"the SQLite store {path!r} cannot use a write-ahead log (journal_mode is {mode!r}), as on some network "
            "file systems, and would not be durable; put it on a local disk."
        )


def _has_tables(connection: sqlite3.Connection) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'n00dles_meta'"
    return connection.execute(query).fetchone() is not None


def _check_version(connection: sqlite3.Connection, path: str) -> None:
    if not _has_tables(connection):
        return
    row = connection.execute("SELECT value FROM n00dles_meta WHERE key = 'schema_version'").fetchone()
    version = row[0] if row else "missing"
    if version != str(SCHEMA_VERSION):
        raise StoreVersionError(
            f"the SQLite store {path!r} has schema version {version}, and this release reads {SCHEMA_VERSION}. It is "
            "left as it is; upgrade n00dles-testing, or name another file."
        )


def _create_tables(connection: sqlite3.Connection, path: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _has_tables(connection):
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute("INSERT INTO n00dles_meta VALUES ('schema_version', ?)", (str(SCHEMA_VERSION),))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    _check_version(connection, path)
    _sync_folder(path)


def _sync_folder(path: str) -> None:
    """Make the name of a new database durable: without this a power cut may leave no file at all."""
    if os.name != "posix":
        return
    folder = os.open(Path(path).resolve().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def is_busy(error: Exception) -> bool:
    """Whether another connection holds a lock, so that nothing was done."""
    return (getattr(error, "sqlite_errorname", "") or "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def is_read_only(error: Exception) -> bool:
    """Whether the connection cannot write, so that nothing was done; not, that the file is another one or is gone."""
    return getattr(error, "sqlite_errorname", "") == "SQLITE_READONLY"
