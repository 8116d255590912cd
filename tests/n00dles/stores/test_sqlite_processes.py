"""Many processes on one file: the first opening, the write lock, and a kill in the middle of a transaction."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from n00dles import SQLiteStateStore, StateStoreError
from tests.n00dles.processes import finish, python, start

OPENER = """
import asyncio, sys
from n00dles import SQLiteStateStore

async def main():
    store = SQLiteStateStore("runs.db")
    ctx = await store.load_or_create("shared", {"by": sys.argv[1]})
    own = await store.load_or_create("r" + sys.argv[1], {})
    for number in range(5):
        own.checkpoint(f"n{number}", number)
        await store.save(own.run_id, own)
    print(ctx.inputs["by"], ctx.is_new)
    await store.aclose()

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""


def released_together(children: list[subprocess.Popen[str]]) -> list[str]:
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    return [finish(child) for child in children]


def test_eight_processes_that_open_a_fresh_file_at_once_all_succeed(tmp_path: Path) -> None:
    said = released_together([start(OPENER, number, cwd=tmp_path) for number in range(8)])

    async def found() -> dict[str, int]:
        store = SQLiteStateStore(tmp_path / "runs.db")
        try:
            return {run.run_id: run.completed for run in await store.list_runs()}
        finally:
            await store.aclose()

    creators = {line.split()[0] for line in said}
    assert len(creators) == 1
    assert sorted(line.split()[1] for line in said) == ["False"] * 7 + ["True"]
    assert asyncio.run(found()) == {"shared": 0, **{f"r{number}": 5 for number in range(8)}}


def test_a_first_opening_can_be_raced_many_times_in_forks(tmp_path: Path) -> None:
    script = """
import asyncio, os, sys
from n00dles import SQLiteStateStore

def child(path, gate):
    os.read(gate, 1)
    try:
        asyncio.run(SQLiteStateStore(path).load_or_create("r", {}))
    except BaseException as error:
        print(type(error).__name__, error, flush=True)
        os._exit(1)
    os._exit(0)

failed = 0
for round in range(25):
    gate, opener = os.pipe()
    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            os.close(opener)
            child(f"{round}.db", gate)
        children.append(pid)
    os.close(gate)
    os.write(opener, b"go!!")
    os.close(opener)
    failed += sum(os.waitpid(pid, 0)[1] != 0 for pid in children)
print("failed", failed)
"""
    if sys.platform == "win32":
        pytest.skip("needs fork")

    assert python(script, cwd=tmp_path) == "failed 0\n"


def locked(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    return connection


def test_a_save_waits_for_another_process_that_is_writing(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    async def main() -> Any:
        store = SQLiteStateStore(path, busy_timeout=30)
        ctx = await store.load_or_create("r", {})
        ctx.checkpoint("a", 1)
        other = locked(path)
        save = asyncio.create_task(store.save("r", ctx))
        for _ in range(50):
            await asyncio.sleep(0.001)
        waiting = not save.done()
        readable = await SQLiteStateStore(path).load("r")
        other.execute("COMMIT")
        other.close()
        await save
        loaded = await store.load("r")
        await store.aclose()
        return waiting, readable, loaded

    waiting, readable, loaded = asyncio.run(main())

    assert waiting
    assert readable.completed == {}
    assert loaded.completed == {"a": 1}


def test_an_opening_waits_for_another_process_that_is_writing_to_the_new_file(tmp_path: Path) -> None:
    """SQLite itself does not wait here, whatever its busy timeout."""
    path = tmp_path / "runs.db"

    async def main() -> Any:
        other = locked(path)
        store = SQLiteStateStore(path, busy_timeout=30)
        opening = asyncio.create_task(store.load_or_create("r", {"x": 1}))
        for _ in range(50):
            await asyncio.sleep(0.001)
        waiting = not opening.done()
        other.execute("COMMIT")
        other.close()
        ctx = await opening
        await store.aclose()
        return waiting, ctx

    waiting, ctx = asyncio.run(main())

    assert waiting
    assert ctx.inputs == {"x": 1}


def test_a_save_gives_up_after_the_stated_wait_with_a_typed_error_and_works_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    async def main() -> Any:
        store = SQLiteStateStore(path, busy_timeout=0.2)
        ctx = await store.load_or_create("r", {})
        ctx.checkpoint("a", 1)
        other = locked(path)
        started = time.monotonic()
        with pytest.raises(StateStoreError, match=r"SQLITE_BUSY.*held the write lock for more than 0\.2 s") as caught:
            await store.save("r", ctx)
        waited = time.monotonic() - started
        other.execute("ROLLBACK")
        other.close()
        await store.save("r", ctx)
        loaded = await store.load("r")
        await store.aclose()
        return waited, caught.value, loaded

    waited, error, loaded = asyncio.run(main())

    assert 0.15 < waited < 10
    assert error.run_id == "r"
    assert loaded.completed == {"a": 1}


def test_a_wait_for_the_lock_does_not_stop_the_event_loop(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    async def main() -> int:
        store = SQLiteStateStore(path, busy_timeout=0.3)
        ctx = await store.load_or_create("r", {})
        for number in range(20):
            ctx.checkpoint(f"n{number}", number)
            await store.save("r", ctx)
        ctx.checkpoint("last", 1)
        other = locked(path)
        save = asyncio.create_task(store.save("r", ctx))
        turns = 0
        while not save.done():
            await asyncio.sleep(0.005)
            turns += 1
        with pytest.raises(StateStoreError):
            await save
        other.close()
        await store.aclose()
        return turns

    assert asyncio.run(main()) > 10


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_kill_in_the_middle_of_a_transaction_leaves_the_old_record_and_no_lock(tmp_path: Path) -> None:
    script = """
import asyncio, os, signal
from n00dles import SQLiteStateStore
from n00dles.stores import sqlite_records

async def main():
    store = SQLiteStateStore("runs.db")
    ctx = await store.load_or_create("r", {})
    ctx.checkpoint("a", 1)
    await store.save("r", ctx)
    insert = sqlite_records._insert_outputs

    def die_after(*arguments):
        insert(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    sqlite_records._insert_outputs = die_after
    ctx.checkpoint("b", "x" * 200_000)
    await store.save("r", ctx)

asyncio.run(main())
"""
    python(script, cwd=tmp_path, code=-signal.SIGKILL)

    async def main() -> Any:
        store = SQLiteStateStore(tmp_path / "runs.db", busy_timeout=1)
        ctx = await store.load("r")
        assert ctx is not None
        before = ctx.order
        ctx.checkpoint("b", 2)
        await store.save("r", ctx)
        after = await store.load("r")
        await store.aclose()
        return before, after

    before, after = asyncio.run(main())

    assert before == ["a"]
    assert after.completed == {"a": 1, "b": 2}


def test_processes_with_runs_of_their_own_wait_for_each_other_and_lose_nothing(tmp_path: Path) -> None:
    script = """
import asyncio, sys
from n00dles import SQLiteStateStore

async def main():
    store = SQLiteStateStore("runs.db")
    ctx = await store.load_or_create("r" + sys.argv[1], {})
    for number in range(50):
        ctx.checkpoint(f"n{number}", "x" * 1000)
        await store.save(ctx.run_id, ctx)
    await store.aclose()

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""
    released_together([start(script, number, cwd=tmp_path) for number in range(4)])

    runs = asyncio.run(SQLiteStateStore(tmp_path / "runs.db").list_runs())
    found = {run.run_id: run.completed for run in runs}
    assert found == {f"r{number}": 50 for number in range(4)}
