"""A correct store as a stranger writes it: SQLite in rollback mode, nothing of n00dles, in several shapes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class PlainStore:
    """One row a run; each call opens and closes a connection. Replies are objects of its own kind."""

    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / "plain.db"
        self.execute("CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, inputs TEXT, outputs TEXT)")

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        self.execute("INSERT OR IGNORE INTO runs VALUES (?, ?, '[]')", run_id, json.dumps(inputs))
        [(stored_inputs, stored_outputs)] = self.execute("SELECT inputs, outputs FROM runs WHERE id = ?", run_id)
        outputs = json.loads(stored_outputs)
        return SimpleNamespace(
            run_id=run_id,
            inputs=json.loads(stored_inputs),
            completed=dict(outputs),
            order=[node for node, _ in outputs],
        )

    def save(self, run_id: str, ctx: Any) -> None:
        """Merge: it keeps no revision, so it cannot refuse a worker that has not seen what another one completed."""
        outputs = {node: ctx.completed[node] for node in ctx.order}
        connection = self.connect()
        try:
            connection.execute("BEGIN IMMEDIATE")
            row = connection.execute("SELECT outputs FROM runs WHERE id = ?", (run_id,)).fetchone()
            stored = [] if row is None else json.loads(row[0])
            merged = json.dumps(list({**dict(stored), **outputs}.items()))
            connection.execute("UPDATE runs SET outputs = ? WHERE id = ?", (merged, run_id))
            connection.commit()
        finally:
            connection.close()

    def delete(self, run_id: str) -> None:
        self.execute("DELETE FROM runs WHERE id = ?", run_id)

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=30)
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA secure_delete = ON")
        return connection

    def execute(self, statement: str, *values: str) -> list[Any]:
        connection = self.connect()
        try:
            with connection:
                return connection.execute(statement, values).fetchall()
        finally:
            connection.close()


class AsyncStore:
    """The same with async methods, usable only between entering and leaving."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.inner: PlainStore | None = None

    async def __aenter__(self) -> AsyncStore:
        self.inner = PlainStore(self.folder)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.inner = None

    async def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        assert self.inner is not None
        return self.inner.load_or_create(run_id, inputs)

    async def save(self, run_id: str, ctx: Any) -> None:
        assert self.inner is not None
        self.inner.save(run_id, ctx)

    async def delete(self, run_id: str) -> None:
        assert self.inner is not None
        self.inner.delete(run_id)


def open_store(location: str) -> PlainStore:
    return PlainStore(location)


async def open_async(location: str) -> PlainStore:
    return PlainStore(location)


@contextmanager
def open_in_with(location: str) -> Iterator[PlainStore]:
    yield PlainStore(location)


@asynccontextmanager
async def open_in_async_with(location: str) -> AsyncIterator[PlainStore]:
    yield PlainStore(location)


def open_without_location() -> PlainStore:
    """Every call opens the same place, as a store configured by the environment does."""
    import os

    return PlainStore(os.environ["PLAIN_STORE_FOLDER"])


def open_somewhere_else_each_time() -> PlainStore:
    import tempfile

    return PlainStore(tempfile.mkdtemp())
