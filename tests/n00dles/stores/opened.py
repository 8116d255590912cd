"""A SQLite store for the length of one call, and what its file then holds."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from n00dles import (
    PipelineContext,
    SQLiteStateStore,
)

T = TypeVar("T")


def with_store(path: Path, work: Callable[[SQLiteStateStore], Coroutine[Any, Any, T]], **options: Any) -> T:
    async def main() -> T:
        store = SQLiteStateStore(path, **options)
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(main())


def query(path: Path, sql: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


async def save_outputs(store: SQLiteStateStore, run_id: str, **outputs: Any) -> PipelineContext:
    ctx = await store.load_or_create(run_id, {"topic": "x"})
    for node, output in outputs.items():
        ctx.checkpoint(node, output)
        await store.save(run_id, ctx)
    return ctx
