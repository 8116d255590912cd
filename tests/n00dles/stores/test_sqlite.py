"""The SQLite store: its file and its settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from n00dles import (
    SQLiteStateStore,
    StateStoreError,
)
from n00dles.stores import sqlite_records
from tests.n00dles.stores.opened import query, save_outputs, with_store


def test_commits_are_durable(tmp_path: Path) -> None:
    async def work(store: SQLiteStateStore) -> list[Any]:
        await save_outputs(store, "r", a=1)
        connection = store._session._connection
        assert connection is not None
        settings = ("journal_mode", "synchronous", "secure_delete")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in settings]

    assert with_store(tmp_path / "runs.db", work) == ["wal", 2, 1]


def test_no_transaction_is_open_between_calls(tmp_path: Path) -> None:
    async def work(store: SQLiteStateStore) -> list[bool]:
        found = []
        ctx = await save_outputs(store, "r", a=1)
        for call in (
            store.load("r"),
            store.save("r", ctx),
            store.list_runs(),
            store.load("nope"),
            store.delete("nope"),
        ):
            await call
            assert store._session._connection is not None
            found.append(store._session._connection.in_transaction)
        return found

    assert with_store(tmp_path / "runs.db", work) == [False] * 5


def test_a_save_writes_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    written: list[int] = []

    async def work(store: SQLiteStateStore) -> None:
        ctx = await save_outputs(store, "r", a=1)
        connection = store._session._connection
        assert connection is not None
        for number in range(50):
            before = connection.total_changes
            ctx.checkpoint(f"n{number}", "x" * 1000)
            await store.save("r", ctx)
            written.append(connection.total_changes - before)

    with_store(path, work)

    assert set(written) == {2}
    assert query(path, "SELECT count(*) FROM n00dles_records WHERE node IS NOT NULL") == [(51,)]


def test_what_was_acknowledged_is_there_after_close_and_reopen(tmp_path: Path) -> None:
    async def work(store: SQLiteStateStore) -> Any:
        await save_outputs(store, "r", a=1)
        await store.aclose()
        await store.aclose()
        reopened = await store.load("r")
        assert reopened is not None
        reopened.checkpoint("b", 2)
        await store.save("r", reopened)
        return await SQLiteStateStore(tmp_path / "runs.db").load("r")

    assert with_store(tmp_path / "runs.db", work).completed == {"a": 1, "b": 2}


def test_a_path_may_be_relative_and_hold_any_character(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    for name in ("runs.db", "with space?&#%.db", "é.db", "file:x"):
        with_store(Path(name), lambda store: save_outputs(store, "r", a=1))

    assert {"runs.db", "with space?&#%.db", "é.db", "file:x"} <= set(os.listdir(tmp_path))


def test_a_store_stays_where_it_is_when_the_process_changes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    async def work(store: SQLiteStateStore) -> Any:
        await save_outputs(store, "r", a=1)
        await store.aclose()
        os.chdir("elsewhere")
        return await store.load("r"), store.place == SQLiteStateStore(tmp_path / "runs.db").place

    found, same_place = with_store(Path("runs.db"), work)

    assert (found.completed, same_place) == ({"a": 1}, True)
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_deleted_run_leaves_no_byte_behind(tmp_path: Path) -> None:
    path, secret = tmp_path / "runs.db", "unmistakable-7f3a"

    async def work(store: SQLiteStateStore) -> bytes:
        ctx = await store.load_or_create(f"id-{secret}", {"topic": secret})
        for number in range(30):
            ctx.checkpoint(f"n{number}", [secret] * 200)
            ctx.error = secret
            await store.save(ctx.run_id, ctx)
        await save_outputs(store, "other", a=1)
        assert secret.encode() in _all_bytes(tmp_path)
        await store.delete(f"id-{secret}")
        return _all_bytes(tmp_path)

    left = with_store(path, work)

    assert secret.encode() not in left
    assert with_store(path, lambda store: store.load("other")).completed == {"a": 1}  # type: ignore[union-attr]


def _all_bytes(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def test_the_key_of_a_deleted_run_does_not_lead_to_the_next_one(tmp_path: Path) -> None:
    async def work(store: SQLiteStateStore) -> Any:
        old = await save_outputs(store, "old", a="old")
        await store.delete("old")
        await save_outputs(store, "new", a="new")
        old.checkpoint("b", "late")
        with pytest.raises(StateStoreError):
            await store.save("old", old)
        return await store.load("new"), await store.load("old")

    new, old = with_store(tmp_path / "runs.db", work)

    assert (new.completed, old) == ({"a": "new"}, None)


def test_the_count_of_outputs_is_that_of_the_save_not_of_the_moment(tmp_path: Path) -> None:
    """A node may complete in the event loop while a thread is writing what was there before."""

    async def work(store: SQLiteStateStore) -> Any:
        ctx: Any = await store.load_or_create("r", {})
        ctx.checkpoint("a", 1)
        begin_save = ctx.begin_save

        def begin_and_complete(*arguments: Any) -> Any:
            batch = begin_save(*arguments)
            ctx.checkpoint("late", 2)
            return batch

        ctx.begin_save = begin_and_complete
        await store.save("r", ctx)
        return await store.load("r"), ctx

    stored, ctx = with_store(tmp_path / "runs.db", work)

    assert (stored.order, ctx.unsaved) == (["a"], ("late",))


def test_a_save_that_was_overtaken_by_a_later_one_writes_nothing(tmp_path: Path) -> None:
    """The first one may still wait for a thread when the second one finds the disk quick enough to need none."""

    async def work(store: SQLiteStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        ctx.checkpoint("a", 1)
        earlier = ctx.snapshot()
        ctx.checkpoint("b", 2)
        ctx.status = "finished"
        await store.save("r", ctx)
        late = store._session.transaction("BEGIN IMMEDIATE", lambda c: sqlite_records.save(c, ctx, earlier))
        return late, ctx, await store.load("r")

    late, ctx, stored = with_store(tmp_path / "runs.db", work)

    assert late is None
    assert (stored.order, stored.status, stored.revision) == (["a", "b"], "finished", ctx.revision)
