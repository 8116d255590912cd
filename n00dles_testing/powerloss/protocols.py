"""Ways of saving a numbered value in a folder, good and bad: what the explorer is calibrated on.

What each of them keeps after a power loss is known, from the manuals of file systems and of SQLite; so a fault that is
not found, or one that is found and cannot be, is a fault of the explorer.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from .examining import Opened

__all__ = ["PROTOCOLS", "Loaded", "SaveProtocol", "text_of", "value_in"]

Loaded = int | tuple[int, ...] | None
"""The number of the value that was found; the numbers of those that it is mixed of; None if nothing was ever saved."""

_LINES = 24
_LINE = 400
"""A value is longer than two pages, so that a part of it can be lost."""


@dataclass(frozen=True, slots=True)
class SaveProtocol:
    """One way of saving: `open` opens it on a folder, `title` is its row in the table of the calibration.

    `excused` has the names of files whose content does not matter after a crash, and `excuse` the reason; `needs` is
    the module that it imports, beside those of Python.
    """

    name: str
    title: str
    open: Callable[[str], Opened]
    excused: tuple[str, ...] = ()
    excuse: str = ""
    needs: str = ""

    def why_not(self) -> str | None:
        """Say why it cannot be tried here, if so."""
        if self.needs and find_spec(self.needs) is None:
            return f"{self.needs} is not installed"
        return None


def text_of(number: int) -> list[str]:
    """Return the lines of a value. Each names it, so that a mixture is seen."""
    return [f"{number} {line} ".ljust(_LINE, ".") for line in range(_LINES)]


def value_in(lines: list[str]) -> Loaded:
    """Say which value these lines are, or are mixed of. Raises `ValueError` if they are no lines of any value."""
    if not lines:
        return None
    numbers = [int(line.split(" ", 1)[0]) for line in lines]
    found = tuple(dict.fromkeys(numbers))
    whole = [text_of(number)[place] for place, number in enumerate(numbers) if place < _LINES]
    if lines != whole or len(lines) != _LINES:
        raise ValueError(f"{len(lines)} lines of the values {found}, not all of them as they were saved")
    return found[0] if len(found) == 1 else found


# --- one file of JSON ---


class _JsonFile:
    def __init__(self, replace: Callable[[str, str], None], folder: str) -> None:
        self._path = os.path.join(folder, "value.json")
        self._replace = replace

    def load(self) -> Loaded:
        try:
            text = Path(self._path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return value_in(json.loads(text)["lines"])

    def save(self, number: int) -> None:
        self._replace(self._path, json.dumps({"lines": text_of(number)}))

    def close(self) -> None:
        """Nothing stays open."""


def _overwrite(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _rename(path: str, text: str, *, sync: Literal["", "file", "file and folder"]) -> None:
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    os.replace(temporary, path)
    if sync == "file and folder":
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# --- SQLite ---


class _Sqlite:
    """Saves all lines in one transaction."""

    def __init__(self, journal: str, synchronous: str, folder: str) -> None:
        self._connection = sqlite3.connect(os.path.join(folder, "value.db"), isolation_level=None)
        try:
            self._connection.execute(f"PRAGMA synchronous = {synchronous}")
            self._connection.execute(f"PRAGMA journal_mode = {journal}")
            self._connection.execute("CREATE TABLE IF NOT EXISTS line (place INTEGER PRIMARY KEY, text TEXT NOT NULL)")
        except BaseException:
            self._connection.close()
            raise

    def load(self) -> Loaded:
        return value_in([text for (text,) in self._connection.execute("SELECT text FROM line ORDER BY place")])

    def save(self, number: int) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT OR REPLACE INTO line VALUES (?, ?)", enumerate(text_of(number)))
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


def _sqlite(name: str, title: str, journal: str, synchronous: str) -> SaveProtocol:
    return SaveProtocol(name, title, partial(_Sqlite, journal, synchronous))


# --- other databases ---


class _Lmdb:
    """LMDB as it opens by default: pages are written by `pwrite`, not through the map."""

    def __init__(self, folder: str) -> None:
        import lmdb

        self._environment: Any = lmdb.open(folder, map_size=1 << 20)

    def load(self) -> Loaded:
        with self._environment.begin() as transaction:
            text = transaction.get(b"value")
        return None if text is None else value_in(json.loads(text))

    def save(self, number: int) -> None:
        with self._environment.begin(write=True) as transaction:
            transaction.put(b"value", json.dumps(text_of(number)).encode())

    def close(self) -> None:
        self._environment.close()


class _DuckDb:
    """DuckDB as it opens by default, in one thread."""

    def __init__(self, folder: str) -> None:
        import duckdb

        self._connection: Any = duckdb.connect(os.path.join(folder, "value.duckdb"), config={"threads": 1})
        try:
            self._connection.execute("CREATE TABLE IF NOT EXISTS line (place INTEGER PRIMARY KEY, text VARCHAR)")
        except BaseException:
            self._connection.close()
            raise

    def load(self) -> Loaded:
        rows = self._connection.execute("SELECT text FROM line ORDER BY place").fetchall()
        return value_in([text for (text,) in rows])

    def save(self, number: int) -> None:
        with closing(self._connection.cursor()) as cursor:
            cursor.execute("BEGIN")
            cursor.execute(
                "INSERT OR REPLACE INTO line SELECT unnest(?), unnest(?)", [list(range(_LINES)), text_of(number)]
            )
            cursor.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        SaveProtocol("overwrite", "overwrite in place, no sync", partial(_JsonFile, _overwrite)),
        SaveProtocol("rename", "write temp, rename, no sync", partial(_JsonFile, partial(_rename, sync=""))),
        SaveProtocol("fsync-rename", "write temp, fsync, rename", partial(_JsonFile, partial(_rename, sync="file"))),
        SaveProtocol(
            "fsync-rename-fsync",
            "write temp, fsync, rename, fsync directory",
            partial(_JsonFile, partial(_rename, sync="file and folder")),
        ),
        _sqlite("sqlite-full", "SQLite rollback journal, synchronous FULL (Python default)", "DELETE", "FULL"),
        _sqlite("sqlite-extra", "SQLite rollback journal, synchronous EXTRA", "DELETE", "EXTRA"),
        _sqlite("sqlite-wal-full", "SQLite WAL, FULL", "WAL", "FULL"),
        _sqlite("sqlite-wal-normal", "SQLite WAL, NORMAL", "WAL", "NORMAL"),
        _sqlite("sqlite-off", "SQLite synchronous OFF", "DELETE", "OFF"),
        SaveProtocol(
            "lmdb",
            "LMDB",
            _Lmdb,
            excused=("lock.mdb",),
            excuse="it has the table of readers, and who opens the environment first makes it anew",
            needs="lmdb",
        ),
        SaveProtocol("duckdb", "DuckDB", _DuckDb, needs="duckdb"),
    )
}
"""The nine protocols of the calibration, and two databases beside them."""
