"""The SQLite store: its file, its settings, and who may use it from where."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from n00dles import (
    ConfigurationError,
    CorruptCheckpointError,
    PipelineContext,
    SQLiteStateStore,
    StateStoreError,
    StoreVersionError,
    agent,
    run,
)
from n00dles.stores import sqlite_records

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
    assert query(path, "SELECT count(*) FROM n00dles_outputs") == [(51,)]


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
def test_a_fork_while_another_thread_is_saving_does_not_hang_the_child(tmp_path: Path) -> None:
    store = SQLiteStateStore(tmp_path / "runs.db")
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
            asyncio.run(store.load("before"))
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


# Paths and files that cannot be one.


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateStoreError, match=r"is a folder; name a file in it"):
        with_store(tmp_path, lambda store: store.load("r"))


def test_a_missing_parent_folder_is_refused_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "runs.db"

    with pytest.raises(StateStoreError, match=r"does not exist; create '.*missing'"):
        with_store(path, lambda store: store.load("r"))

    assert not path.parent.exists()


def test_the_empty_path_and_memory_are_refused() -> None:
    with pytest.raises(StateStoreError, match="is a folder"):
        asyncio.run(SQLiteStateStore("").load("r"))
    with pytest.raises(ConfigurationError, match="use InMemoryStateStore"):
        SQLiteStateStore(":memory:")

    assert not os.path.exists(":memory:")


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs users")
@pytest.mark.parametrize("what", ["file", "folder", "missing file"])
def test_what_cannot_be_written_is_refused(tmp_path: Path, what: str) -> None:
    from tests.n00dles.processes import python

    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "runs.db"
    if what != "missing file":
        with_store(path, lambda store: save_outputs(store, "r", a=1))
    if what == "file":
        path.chmod(0o444)
        folder.chmod(0o777)
    else:
        path.chmod(0o666) if path.exists() else None
        folder.chmod(0o555)
    before = path.read_bytes() if path.exists() else None
    script = """
import asyncio, os, sys
from n00dles import PipelineContext, SQLiteStateStore, StateStoreError
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    asyncio.run(SQLiteStateStore(sys.argv[1]).load_or_create("new", {}))
except StateStoreError as error:
    print(error)
"""
    for each in (tmp_path, *tmp_path.parents):
        if each.stat().st_uid == os.getuid() and each != Path("/"):
            each.chmod(each.stat().st_mode | 0o111)

    said = python(script, path, cwd=tmp_path)

    assert "cannot be written" in said
    assert (path.read_bytes() if path.exists() else None) == before
    folder.chmod(0o777)


def test_a_database_of_a_newer_schema_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with_store(path, lambda store: save_outputs(store, "r", a=1))
    connection = sqlite3.connect(path)
    connection.execute("UPDATE n00dles_meta SET value = '2'")
    connection.commit()
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StoreVersionError, match=r"has schema version 2, and this release reads 1.*upgrade"):
        with_store(path, lambda store: store.load_or_create("r", {}))

    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"no database at all, only text\n" * 200, b"\x00" * 5000, b"SQLite format 3\x00"])
def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(content)

    for call in (lambda s: s.load("r"), lambda s: s.load_or_create("r", {}), lambda s: s.delete("r")):
        with pytest.raises(CorruptCheckpointError, match="is left as it is"):
            with_store(path, call)

    assert path.read_bytes() == content


def test_a_database_of_another_program_keeps_its_tables(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE users (name TEXT)")
    connection.execute("INSERT INTO users VALUES ('ada')")
    connection.commit()
    connection.close()

    with_store(path, lambda store: save_outputs(store, "r", a=1))

    assert query(path, "SELECT name FROM users") == [("ada",)]


def test_a_full_disk_is_an_error_and_the_store_works_again_afterwards(tmp_path: Path) -> None:
    async def work(store: SQLiteStateStore) -> Any:
        ctx = await save_outputs(store, "r", a=1)
        connection = store._session._connection
        assert connection is not None
        connection.execute("PRAGMA max_page_count = 1")
        ctx.checkpoint("b", "x" * 500_000)
        with pytest.raises(StateStoreError, match=r"SQLITE_FULL.*make room"):
            await store.save("r", ctx)
        previous = await SQLiteStateStore(tmp_path / "runs.db").load("r")
        await store.save("r", ctx)
        return previous, await store.load("r")

    previous, last = with_store(tmp_path / "runs.db", work)

    assert previous.completed == {"a": 1}
    assert list(last.completed) == ["a", "b"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource")
def test_a_write_that_is_cut_short_leaves_the_previous_record(tmp_path: Path) -> None:
    from tests.n00dles.processes import python

    script = """
import asyncio, resource
from n00dles import SQLiteStateStore, StateStoreError

async def main():
    store = SQLiteStateStore("runs.db")
    ctx = await store.load_or_create("r", {})
    ctx.checkpoint("a", 1)
    await store.save("r", ctx)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
    ctx.checkpoint("b", "x" * 500_000)
    try:
        await store.save("r", ctx)
    except StateStoreError as error:
        print("SQLITE_IOERR" in str(error))
    print((await store.load("r")).order)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await store.save("r", ctx)
    print((await store.load("r")).order)
    await store.aclose()

asyncio.run(main())
"""

    assert python(script, cwd=tmp_path).splitlines() == ["True", "['a']", "['a', 'b']"]
