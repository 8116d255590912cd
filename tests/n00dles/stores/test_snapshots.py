"""A save is a snapshot of the moment when it was called, however much later it is written."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from n00dles import SQLiteStateStore
from n00dles.stores import sqlite_records
from n00dles.stores.sqlite_connection import open_database


@pytest.mark.asyncio
async def test_what_completes_while_a_save_waits_is_left_to_the_next_save(tmp_path: Path) -> None:
    store = SQLiteStateStore(tmp_path / "runs.db")
    ctx = await store.load_or_create("r", {})
    ctx.checkpoint("a", 1)
    rival = open_database(store.path, 1.0)
    rival.execute("BEGIN IMMEDIATE")

    waiting = asyncio.create_task(store.save("r", ctx))
    await asyncio.sleep(0)  # the save is called, finds the file locked, and waits in its thread
    ctx.checkpoint("b", 2)
    rival.execute("COMMIT")
    rival.close()
    await waiting

    stored = await store.load("r")
    assert stored is not None
    assert dict(stored.completed) == {"a": 1}
    assert ctx.unsaved == ("b",)
    await store.save("r", ctx)
    stored = await store.load("r")
    assert stored is not None
    assert dict(stored.completed) == {"a": 1, "b": 2}
    await store.aclose()


def test_a_save_that_was_overtaken_by_a_later_one_writes_nothing(tmp_path: Path) -> None:
    connection = open_database(str(tmp_path / "runs.db"), 1.0)
    ctx = sqlite_records.read_or_create(connection, "r", {})
    ctx.checkpoint("a", 1)
    early = ctx.snapshot()
    ctx.checkpoint("b", 2)
    late = sqlite_records.save(connection, ctx, ctx.snapshot())
    assert late is not None
    ctx.acknowledge(late)

    overtaken = sqlite_records.save(connection, ctx, early)

    stored = sqlite_records.read(connection, "r")
    connection.close()
    assert overtaken is None
    assert stored is not None
    assert dict(stored.completed) == {"a": 1, "b": 2}
    assert stored.revision == ctx.revision
