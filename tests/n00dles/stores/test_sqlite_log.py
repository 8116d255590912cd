"""The write-ahead log grows ahead of what is written, and nothing of it can be taken for a commit."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from n00dles import SQLiteStateStore
from n00dles.stores import sqlite_log
from n00dles.stores.sqlite_log import WriteAheadLog

FRAME, HEADER = 4096 + 24, 32


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def is_all_frames(log: Path) -> bool:
    """Whether a log ends where SQLite has ended it."""
    return (log.stat().st_size - HEADER) % FRAME == 0


async def lengths(store: SQLiteStateStore, path: Path, saves: int) -> list[int]:
    """Return the length of the log after each save of a run."""
    found = []
    context = await store.load_or_create("r", {})
    for number in range(saves):
        context.checkpoint(f"n{number}", "x" * 1000)
        await store.save("r", context)
        found.append(log_of(path).stat().st_size)
    return found


def test_few_saves_meet_a_log_that_has_to_grow_and_what_is_behind_them_is_no_commit(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SQLiteStateStore(path)

    found = asyncio.run(lengths(store, path, 200))
    (tmp_path / "left").mkdir()
    for file in (path, log_of(path)):  # as a kill would leave them
        shutil.copy(file, tmp_path / "left")
    asyncio.run(store.aclose())

    assert 3 <= len(set(found)) <= 12
    assert not log_of(path).exists()
    context = asyncio.run(SQLiteStateStore(tmp_path / "left" / "runs.db").load("r"))
    assert context is not None
    assert len(context.completed) == 200
    with closing(sqlite3.connect(tmp_path / "left" / "runs.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_who_saves_once_writes_no_byte_in_vain(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    async def use() -> list[bool]:
        found = []
        for _ in range(3):
            store = SQLiteStateStore(path)
            context = await store.load_or_create("r", {})
            context.checkpoint("a", context.revision)
            await store.save("r", context)
            found.append(is_all_frames(log_of(path)))
            await store.aclose()
        return found

    # The first one also makes the run.
    assert asyncio.run(use()) == [False, True, True]


def test_two_processes_do_not_make_the_log_longer_for_each_other_without_end(tmp_path: Path) -> None:
    log = tmp_path / "runs.db-wal"
    log.write_bytes(bytes(100))
    ours, theirs = WriteAheadLog(str(tmp_path / "runs.db")), WriteAheadLog(str(tmp_path / "runs.db"))

    for _ in range(100):
        ours.grow_ahead()
        theirs.grow_ahead()
        with log.open("ab") as file:
            file.write(b"x")

    assert log.stat().st_size < sqlite_log.LONGEST + sqlite_log.LARGEST_STEP + 1000


def test_a_log_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    log = WriteAheadLog(str(tmp_path / "runs.db"))

    for _ in range(3):
        log.grow_ahead()

    assert list(tmp_path.iterdir()) == []


def test_where_the_log_cannot_be_made_longer_saves_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sqlite_log, "open", full, raising=False)
    path = tmp_path / "runs.db"
    store = SQLiteStateStore(path)

    asyncio.run(lengths(store, path, 20))

    assert is_all_frames(log_of(path))
    assert len((asyncio.run(store.load("r")) or pytest.fail("it is gone")).completed) == 20
    asyncio.run(store.aclose())


def test_a_database_behind_a_symbolic_link_has_its_log_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "runs.db")
    store = SQLiteStateStore(tmp_path / "link.db")

    found = asyncio.run(lengths(store, tmp_path / "real" / "runs.db", 10))

    assert len(set(found)) <= 4
    asyncio.run(store.aclose())


@pytest.mark.parametrize("is_moved", [True, False], ids=["moved away", "behind a link that leads elsewhere by now"])
def test_the_log_of_another_database_that_is_at_the_path_by_now_is_left_alone(tmp_path: Path, is_moved: bool) -> None:
    path = tmp_path / "runs.db"
    if not is_moved:
        path.symlink_to(tmp_path / "runs-1.db")

    async def use() -> bool:
        store = SQLiteStateStore(path)
        context = await store.load_or_create("r", {})
        if is_moved:
            for file in list(tmp_path.glob("runs.db*")):
                file.rename(tmp_path / f"old-{file.name}")
        else:
            path.unlink()
            path.symlink_to(tmp_path / "runs-2.db")
        await store.load_or_create("s", {})
        await store.delete("s")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("PRAGMA journal_mode = WAL")
            other.execute("CREATE TABLE t (a)")
            for number in range(12):
                context.checkpoint(f"n{number}", "x" * 1000)
                await store.save("r", context)
                other.execute("INSERT INTO t VALUES (1)")
            is_as_written = is_all_frames(log_of(path.resolve()))
        await store.aclose()
        return is_as_written

    assert asyncio.run(use())
