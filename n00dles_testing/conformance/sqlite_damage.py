"""Damage to a SQLite database, whoever's it is: its rows are found and changed through SQL, its pages in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..temporary_folder import TemporaryFolder
from .damage import FUTURE, VERSION, Damage, Kind, places_of

__all__ = ["database_damage", "database_versions", "empty_log", "is_database", "page_size"]

_MAGIC = b"SQLite format 3\0"
_PAGE_SIZE = slice(16, 18)
_LARGEST_PAGE = 65_536
"""Written as 1, since it has no room in two bytes."""
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class _Cell:
    """A value with its row, by which it is found again: not every table has a rowid."""

    table: str
    column: str
    row: dict[str, Any]

    @property
    def value(self) -> Any:
        return self.row[self.column]

    @property
    def place(self) -> str:
        return f"{self.table}.{self.column}"

    def update(self, value: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the statement that changes it, and its values."""
        where = " AND ".join(f"{_quoted(column)} IS ?" for column in self.row)
        return f"UPDATE {_quoted(self.table)} SET {_quoted(self.column)} = ? WHERE {where}", (value, *self.row.values())


def is_database(content: bytes) -> bool:
    """Whether a file is a SQLite database."""
    return content.startswith(_MAGIC)


def page_size(content: bytes) -> int:
    """Return the size of a page in bytes, as the header of a database says."""
    size = int.from_bytes(content[_PAGE_SIZE], "big")
    return _LARGEST_PAGE if size == 1 else size


def empty_log(path: Path) -> None:
    """Move a write-ahead log that was left behind into its database, so that one file holds all."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def database_damage(file: str, content: bytes, tokens: Sequence[str]) -> Iterator[Damage]:
    """Return the database with a cell of the run cut in half, or emptied, and with a page of it zeroed."""
    seen = set()
    for cell in _cells(content):
        value = cell.value
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        if not isinstance(text, str) or cell.place in seen or not any(token in text for token in tokens):
            continue
        seen.add(cell.place)
        for title, less in (("cut in half", value[: len(value) // 2]), ("emptied", value[:0])):
            yield from _changed(f"the text in {cell.place} {title}", "structure", file, content, cell.update(less))
    for token, what in ((tokens[0], "inputs"), (tokens[-1], "last output")):
        zeroed = _zeroed(content, [at for at, _ in places_of(content, token)])
        if zeroed != content:
            yield Damage(f"the page of the {what} is zeros", "structure", file, zeroed)


def database_versions(file: str, content: bytes) -> Iterator[Damage]:
    """Return the database as a later release would write it: where a number stands beside the name of a version."""
    for cell in _cells(content):
        names = [value for value in cell.row.values() if isinstance(value, str) and len(value) < _LONGEST_NAME]
        if any(VERSION.search(name) for name in names) and str(cell.value).isdigit():
            title = f"{cell.place} is {FUTURE}, as a later release may write it"
            yield from _changed(title, "version", file, content, cell.update(type(cell.value)(FUTURE)))
    with _opened(content) as (connection, _):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version:
        title = f"its user_version is {FUTURE}, as a later release may write it"
        yield from _changed(title, "version", file, content, (f"PRAGMA user_version = {FUTURE}", ()))


def _changed(
    title: str, kind: Kind, file: str, content: bytes, statement: tuple[str, tuple[Any, ...]]
) -> Iterator[Damage]:
    try:
        with _opened(content) as (connection, path):
            with connection:
                connection.execute(*statement)
            connection.close()  # which also empties a write-ahead log
            changed = path.read_bytes()
    except sqlite3.Error:
        return  # a constraint or a trigger of the store's keeps it from being changed
    if changed != content:
        yield Damage(title, kind, file, changed)


def _zeroed(content: bytes, places: list[int]) -> bytes:
    size = page_size(content)
    zeroed = bytearray(content)
    for at in places:
        start = at // size * size
        zeroed[start : start + size] = bytes(len(zeroed[start : start + size]))
    return bytes(zeroed)


def _cells(content: bytes) -> list[_Cell]:
    with _opened(content) as (connection, _):
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return [cell for (table,) in tables for cell in _cells_of(connection, table)]


def _cells_of(connection: sqlite3.Connection, table: str) -> list[_Cell]:
    try:
        cursor = connection.execute(f"SELECT * FROM {_quoted(table)}")
        names = [part[0] for part in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
    except sqlite3.Error:
        return []  # of an extension that is not here
    return [_Cell(table, column, row) for row in rows for column in row]


@contextmanager
def _opened(content: bytes) -> Iterator[tuple[sqlite3.Connection, Path]]:
    """Open a copy."""
    with TemporaryFolder("n00dles-damage-") as folder:
        path = folder.path / "copy.db"
        path.write_bytes(content)
        with closing(sqlite3.connect(path)) as connection:
            yield connection, path


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
