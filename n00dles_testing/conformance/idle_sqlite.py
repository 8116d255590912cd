"""Whether anybody has a transaction open on a SQLite file, found out from the outside, with nothing of the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from .plain_files import plain_files

__all__ = ["open_transactions"]

_MAGIC = b"SQLite format 3\0"
_SECONDS = 2.0
"""A checkpoint in the background may hold a lock for a moment."""


def open_transactions(location: str | None) -> list[str]:
    """Say which SQLite files below `location` are locked or read by an open transaction; none may be, between calls."""
    if location is None:
        return []
    return [text for path in plain_files(location) if _is_database(path) for text in _open_in(path)]


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _open_in(path: Path) -> Iterator[str]:
    with closing(sqlite3.connect(path, timeout=_SECONDS, isolation_level=None)) as connection:
        try:
            # In a rollback journal's mode this waits for readers as well.
            connection.execute("BEGIN EXCLUSIVE")
            connection.rollback()
        except sqlite3.OperationalError as error:
            yield f"one that holds a lock on {path.name} ({error})"
            return
        except sqlite3.DatabaseError:
            return  # encrypted, or damaged: not ours to say
        is_busy, pages, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy and pages >= 0:
            yield f"one that reads {path.name}, so that its write-ahead log cannot be emptied and grows"
