"""The SQLite store: from where it may be used, and what it leaves open."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from n00dles import SQLiteStateStore, StateStoreError, agent, run
from n00dles.context import PipelineContext
from n00dles.stores import sqlite_session
from n00dles.stores.sqlite_connection import open_database
from tests.n00dles.stores.opened import query, save_outputs, with_store

# From where it may be used.


def test_two_event_loops_one_after_another_and_two_at_once(tmp_path: Path) -> None:
    store = SQLiteStateStore(tmp_path / "runs.db")
    barrier = threading.Barrier(2)

    def loop_in_thread(run_id: str) -> None:
        async def main() -> None:
            ctx = await store.load_or_create(run_id, {})
            barrier.wait(20)
            for number in range(30):
                ctx.checkpoint(f"n{number}", number)
                await store.save(run_id, ctx)

        asyncio.run(main())

    asyncio.run(save_outputs(store, "first", a=1))
    threads = [threading.Thread(target=loop_in_thread, args=(run_id,)) for run_id in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    found = {run.run_id: run.completed for run in asyncio.run(store.list_runs())}
    asyncio.run(store.aclose())
    assert found == {"first": 1, "one": 30, "two": 30}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # since 3.12: fork in a process that has threads
def test_after_a_fork_parent_and_child_both_go_on(tmp_path: Path) -> None:
    store = SQLiteStateStore(tmp_path / "runs.db")
    asyncio.run(save_outputs(store, "before", a=1))

    child = os.fork()
    if child == 0:
        code = 1
        signal.alarm(30)  # a child that hangs dies of it
        try:
            asyncio.run(save_outputs(store, "child", a=1, b=2))
            code = 0
        finally:
            os._exit(code)
    asyncio.run(save_outputs(store, "parent", a=1, b=2, c=3))
    _, status = os.waitpid(child, 0)

    async def found() -> dict[str, int]:
        return {run.run_id: run.completed for run in await store.list_runs()}

    mine = asyncio.run(found())
    asyncio.run(store.aclose())
    assert status == 0
    assert mine == {"before": 1, "parent": 3, "child": 2}
    assert query(tmp_path / "runs.db", "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("closes", [True, False])
def test_what_a_child_saves_stays_when_the_parent_has_closed_the_file(tmp_path: Path, closes: bool) -> None:
    """An open connection that crosses a fork has locks that the kernel knows nothing of: its log would be removed."""
    store = SQLiteStateStore(tmp_path / "runs.db")
    asyncio.run(save_outputs(store, "before", a=1))
    waits, goes = os.pipe()

    child = os.fork()
    if child == 0:
        code = 1
        signal.alarm(30)  # a child that hangs dies of it
        try:
            asyncio.run(save_outputs(store, "child", a=1))
            os.read(waits, 1)
            asyncio.run(save_outputs(store, "late", a=1, b=2))
            if closes:
                asyncio.run(store.aclose())
            code = 0
        finally:
            os._exit(code)
    asyncio.run(save_outputs(store, "parent", a=1))
    asyncio.run(store.aclose())
    os.write(goes, b"g")
    _, status = os.waitpid(child, 0)

    async def found() -> dict[str, int]:
        return {run.run_id: run.completed for run in await SQLiteStateStore(tmp_path / "runs.db").list_runs()}

    assert status == 0
    assert asyncio.run(found()) == {"before": 1, "child": 1, "late": 2, "parent": 1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_while_another_thread_is_saving_ends_in_an_error_in_the_child_not_in_a_hang(tmp_path: Path) -> None:
    store = SQLiteStateStore(tmp_path / "runs.db", busy_timeout=0.2)
    asyncio.run(save_outputs(store, "before", a=1))
    holds, release = threading.Event(), threading.Event()

    def hold(connection: Any) -> None:
        holds.set()
        release.wait(20)

    thread = threading.Thread(target=lambda: store._session.transaction("BEGIN IMMEDIATE", hold))
    thread.start()
    holds.wait(20)
    child = os.fork()
    if child == 0:
        code = 1
        signal.alarm(30)  # a child that hangs dies of it
        try:
            for one in (store, SQLiteStateStore(tmp_path / ".." / tmp_path.name / "runs.db")):
                with pytest.raises(StateStoreError, match="another thread while this process was forked"):
                    asyncio.run(one.load("before"))
            asyncio.run(save_outputs(SQLiteStateStore(tmp_path / "another.db"), "child", a=1))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    release.set()
    thread.join(20)
    asyncio.run(store.aclose())

    assert status == 0


# What it leaves open.


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("closes", [True, False], ids=["closed", "dropped"])
def test_files_and_threads_do_not_add_up(tmp_path: Path, closes: bool) -> None:
    def cycle() -> None:
        async def main() -> None:
            store = SQLiteStateStore(tmp_path / "runs.db")
            await save_outputs(store, "r", a=1)
            if closes:
                await store.aclose()

        asyncio.run(main())

    cycle()
    gc.collect()
    files, threads = open_files(), set(threading.enumerate())
    for _ in range(50):
        cycle()
    gc.collect()

    assert started_since(threads) == []
    assert open_files() <= files


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_runs_with_a_url_do_not_add_up_either(tmp_path: Path) -> None:
    @agent
    def a(value: str) -> str:
        return value

    def cycle(number: int) -> None:
        run(a, run_id=f"r{number}", store=f"sqlite:///{tmp_path}/runs.db", value="x")

    cycle(0)
    gc.collect()
    files, threads = open_files(), set(threading.enumerate())
    for number in range(1, 30):
        cycle(number)

    assert started_since(threads) == []
    assert open_files() <= files


def started_since(before: set[threading.Thread]) -> list[threading.Thread]:
    """Return the threads of stores that are still there; one whose store has gone ends by itself, a moment later."""
    started = set(threading.enumerate()) - before
    for thread in started:
        thread.join(10)
    return [thread for thread in started if thread.is_alive()]


def test_a_dropped_store_warns_of_nothing(tmp_path: Path) -> None:
    from tests.n00dles.processes import python

    script = """
import asyncio, gc, sys
from n00dles import SQLiteStateStore

async def main():
    store = SQLiteStateStore("runs.db")
    ctx = await store.load_or_create("r", {})
    ctx.checkpoint("a", 1)
    await store.save("r", ctx)

unraisable = []
sys.unraisablehook = unraisable.append
asyncio.run(main())
gc.collect()
kept = SQLiteStateStore("runs.db")
asyncio.run(kept.load("r"))
print(unraisable)
"""

    assert python(script, cwd=tmp_path, options=("-X", "dev")) == "[]\n"


def test_no_file_is_left_beside_the_database(tmp_path: Path) -> None:
    with_store(tmp_path / "runs.db", lambda store: save_outputs(store, "r", a=1))

    assert os.listdir(tmp_path) == ["runs.db"]


def test_a_file_that_could_once_only_be_opened_for_reading_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What SQLite does by itself when opening for writing fails, be it that too many files are open at that moment.
    opened = []

    def for_reading_at_first(path: str, busy_timeout: float) -> sqlite3.Connection:
        opened.append(path)
        if len(opened) > 1:
            return open_database(path, busy_timeout)
        return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None, check_same_thread=False)

    async def load_and_save() -> PipelineContext | None:
        store = SQLiteStateStore(tmp_path / "runs.db")
        await store.load_or_create("run", {})
        await store.aclose()
        monkeypatch.setattr(sqlite_session, "open_database", for_reading_at_first)
        context = await store.load_or_create("run", {})
        context.checkpoint("a", 1)
        await store.save("run", context)
        return await store.load("run")

    saved = asyncio.run(load_and_save())

    assert saved is not None
    assert saved.completed == {"a": 1}
    assert len(opened) == 2
