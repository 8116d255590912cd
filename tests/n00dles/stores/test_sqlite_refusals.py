"""The SQLite store: paths, files and disks that cannot hold it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from n00dles import (
    ConfigurationError,
    CorruptCheckpointError,
    SQLiteStateStore,
    StateStoreError,
    StoreVersionError,
)
from tests.n00dles.stores.opened import query, save_outputs, with_store


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
    # Another pytest that starts meanwhile closes the folder of all temporary folders to other users again.
    with tempfile.TemporaryDirectory() as outside:
        os.chmod(outside, 0o755)
        folder = folder.rename(Path(outside) / "folder")
        path = folder / "runs.db"
        said = python(script, path, cwd=tmp_path)
        after = path.read_bytes() if path.exists() else None
        folder.chmod(0o777)

    assert "cannot be written" in said
    assert after == before


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
