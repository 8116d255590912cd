"""A damaged record is refused, never taken for a first run, and its bytes stay as they are."""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from n00dles import (
    CorruptCheckpointError,
    PipelineContext,
    SQLiteStateStore,
    StateStoreError,
    agent,
    pipeline,
    resume,
    run,
)

T = TypeVar("T")

calls: list[str] = []


@agent
def a(topic: str) -> str:
    calls.append("a")
    return topic


@agent
def b(text: str) -> dict[str, Any]:
    calls.append("b")
    return {"facts": [text] * 20, "count": 3}


FLOW = pipeline(a >> b, name="flow")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"

    async def fill(store: SQLiteStateStore) -> None:
        for run_id in ("r", "other"):
            ctx = await store.load_or_create(run_id, {"topic": "x" * 30})
            ctx.pipeline, ctx.signature = "flow", FLOW.signature()
            ctx.checkpoint("a", "x" * 30)
            ctx.record("b").spent = 1
            await store.save(run_id, ctx)
        ctx.checkpoint("b", {"facts": [], "count": 0})
        await store.save("other", ctx)

    with_store(path, fill)
    calls.clear()
    return path


def with_store(path: Path, work: Callable[[SQLiteStateStore], Coroutine[Any, Any, T]]) -> T:
    async def main() -> T:
        store = SQLiteStateStore(path)
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(main())


def execute(path: Path, sql: str, *arguments: Any) -> int:
    connection = sqlite3.connect(path)
    try:
        with connection:
            return connection.execute(sql, arguments).rowcount
    finally:
        connection.close()


def contents(path: Path) -> list[Any]:
    """Return every row of every table."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    try:
        tables = [
            name.decode() for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        return [(table, connection.execute(f"SELECT * FROM {table}").fetchall()) for table in sorted(tables)]
    finally:
        connection.close()


COLUMNS = {
    "n00dles_runs": ("run_key", "run_id", "inputs", "signature", "checksum"),
    "n00dles_records": (
        *("id", "node", "content", "attempts", "input_tokens", "output_tokens", "duration_ms", "error", "checksum"),
    ),
}


def flipped(value: Any, rng: random.Random) -> Any:
    """Return a value of the same type in which one bit differs."""
    if value is None:
        return "x"
    if isinstance(value, int):
        return value ^ (1 << rng.randrange(8))
    if isinstance(value, float):
        return value + 1
    data = bytearray(value, "utf-8") or bytearray(b"x")
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(7)
    return data.decode("utf-8", "replace")


def all_columns() -> list[tuple[str, str]]:
    """Return every column but the run's id, which SQL cannot change in the row alone; see the test of its bytes."""
    return [(table, column) for table, columns in COLUMNS.items() for column in columns if column != "run_id"]


def test_the_columns_tried_here_are_those_of_the_schema(path: Path) -> None:
    connection = sqlite3.connect(path)
    found = {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in COLUMNS}
    connection.close()

    assert found == {table: list(columns) for table, columns in COLUMNS.items()}


@pytest.mark.parametrize(("table", "column"), all_columns())
@pytest.mark.parametrize("row", [0, 1])
def test_a_flipped_bit_in_any_column_is_found_and_left_as_it_is(path: Path, table: str, column: str, row: int) -> None:
    """The first record is an output, the second one the head."""
    rng = random.Random(f"{table}.{column}")
    row = row if table == "n00dles_records" else 0
    connection = sqlite3.connect(path)
    query = f"SELECT rowid, {column} FROM {table} ORDER BY rowid LIMIT 1 OFFSET ?"
    rowid, value = connection.execute(query, (row,)).fetchone()
    connection.close()
    assert execute(path, f"UPDATE {table} SET {column} = ? WHERE rowid = ?", flipped(value, rng), rowid) == 1
    before = contents(path)

    with pytest.raises(CorruptCheckpointError) as caught:
        with_store(path, lambda store: store.load("r"))
    with pytest.raises(CorruptCheckpointError):
        with_store(path, lambda store: store.load_or_create("r", {"topic": "x" * 30}))
    with pytest.raises(CorruptCheckpointError):
        resume(FLOW, "r", store=SQLiteStateStore(path))
    with pytest.raises(CorruptCheckpointError):
        run(FLOW, run_id="r", store=SQLiteStateStore(path), topic="x" * 30)

    assert caught.value.run_id == "r"
    assert contents(path) == before
    assert calls == []


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM n00dles_records WHERE node = 'a'",
        "DELETE FROM n00dles_records WHERE node IS NULL",
        "DELETE FROM n00dles_records",
        "DELETE FROM n00dles_records WHERE id < 2 * 4294967296",
        "UPDATE n00dles_records SET content = x'ff00' WHERE node = 'a'",
        "UPDATE n00dles_records SET content = CAST(x'ff22' AS TEXT) WHERE node = 'a'",
        "UPDATE n00dles_records SET content = '' WHERE node = 'a'",
        "UPDATE n00dles_records SET content = substr(content, 1, 10)",
        "UPDATE n00dles_records SET content = '[]' WHERE node IS NULL",
        "UPDATE n00dles_records SET node = NULL",
        "UPDATE n00dles_records SET id = id + 1 WHERE node IS NULL",
        "UPDATE n00dles_runs SET inputs = x'7b7d'",
        "UPDATE n00dles_runs SET run_key = 77 WHERE run_id = 'r'",
        "DROP TABLE n00dles_records",
        "DROP TABLE n00dles_runs",
        "ALTER TABLE n00dles_records DROP COLUMN error",
        "INSERT INTO n00dles_records SELECT id + 1, node, content, 0, 0, 0, 0.0, NULL, 0 FROM n00dles_records "
        "WHERE node IS NULL",
    ],
)
def test_rows_that_are_lost_cut_or_of_another_kind_are_found(path: Path, sql: str) -> None:
    execute(path, sql)
    before = contents(path)

    with pytest.raises(CorruptCheckpointError):
        with_store(path, lambda store: store.load("r"))
    with pytest.raises(CorruptCheckpointError):
        run(FLOW, run_id="r", store=SQLiteStateStore(path), topic="x" * 30)

    assert contents(path) == before
    assert calls == []


def test_the_rows_of_another_run_are_not_taken(path: Path) -> None:
    execute(path, "DELETE FROM n00dles_records WHERE id < 2 * 4294967296")
    execute(path, "UPDATE n00dles_records SET id = id - 4294967296")

    with pytest.raises(CorruptCheckpointError, match="does not match its checksum"):
        with_store(path, lambda store: store.load("r"))


def test_the_other_runs_of_a_damaged_file_can_be_used(path: Path) -> None:
    execute(path, "UPDATE n00dles_records SET content = '1' WHERE id < 2 * 4294967296")

    async def work(store: SQLiteStateStore) -> Any:
        other = await store.load("other")
        return other, [run.run_id for run in await store.list_runs()]

    other, listed = with_store(path, work)

    assert other.completed == {"a": "x" * 30, "b": {"facts": [], "count": 0}}
    assert sorted(listed) == ["other", "r"]


def test_a_damaged_run_can_be_deleted_and_started_anew(path: Path) -> None:
    execute(path, "UPDATE n00dles_records SET content = '1'")

    with_store(path, lambda store: store.delete("r"))
    result = run(FLOW, run_id="r", store=SQLiteStateStore(path), topic="x")

    assert result.output["count"] == 3
    assert calls == ["a", "b"]


def test_a_save_over_a_damaged_head_is_refused(path: Path) -> None:
    async def work(store: SQLiteStateStore) -> None:
        ctx = await store.load("r")
        assert ctx is not None
        execute(path, "UPDATE n00dles_records SET content = replace(content, 'running', 'failed') WHERE node IS NULL")
        before = contents(path)
        ctx.checkpoint("b", 1)
        with pytest.raises(StateStoreError):
            await store.save("r", ctx)
        assert contents(path) == before

    with_store(path, work)


@pytest.mark.parametrize("keep", [10, 100, 2_000, 4_096, 8_192, 12_288, 16_384, 20_480])
def test_a_truncated_file_is_refused_and_left_as_it_is(path: Path, keep: int) -> None:
    data = path.read_bytes()
    assert keep < len(data)
    path.write_bytes(data[:keep])

    for work in (lambda store: store.load("r"), lambda store: store.load_or_create("r", {"topic": "x" * 30})):
        with pytest.raises(StateStoreError):
            with_store(path, work)

    assert path.read_bytes() == data[:keep]


def test_an_emptied_file_with_a_log_beside_it_is_refused_and_both_are_left_as_they_are(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE more (a)")
    log = path.with_name(f"{path.name}-wal").read_bytes()
    connection.close()
    path.write_bytes(b"")
    path.with_name(f"{path.name}-wal").write_bytes(log)

    for work in (lambda store: store.load("r"), lambda store: store.load_or_create("r", {"topic": "x" * 30})):
        with pytest.raises(CorruptCheckpointError, match="it is empty, and its write-ahead log"):
            with_store(path, work)

    assert log
    assert (path.read_bytes(), path.with_name(f"{path.name}-wal").read_bytes()) == (b"", log)


def outcome(path: Path, wanted: dict[str, Any]) -> str:
    async def work(store: SQLiteStateStore) -> PipelineContext | None:
        return await store.load("r")

    try:
        ctx = with_store(path, work)
    except StateStoreError:
        return "refused"
    if ctx is None:
        return "first run"
    return "the same" if ctx.to_dict() == wanted else "something else"


def refused_or_the_same(data: bytes, folder: Path, wanted: dict[str, Any], flips: Iterable[int]) -> dict[str, int]:
    """Load the run from copies of a database in which one bit is flipped; count what came."""
    found: dict[str, int] = {}
    for number, bit in enumerate(flips):
        copy = folder / f"copy{number}.db"
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        copy.write_bytes(damaged)
        result = outcome(copy, wanted)
        found[result] = found.get(result, 0) + 1
        for left in folder.glob(f"copy{number}.db*"):
            left.unlink()
    return found


def test_a_flipped_bit_anywhere_in_the_file_never_gives_something_else(path: Path, tmp_path: Path) -> None:
    wanted = with_store(path, lambda store: store.load("r"))
    assert wanted is not None
    data = path.read_bytes()
    rng = random.Random(7)
    places = [place for place, byte in enumerate(data) if byte]
    flips = [rng.choice(places) * 8 + rng.randrange(8) for _ in range(400)]

    found = refused_or_the_same(data, tmp_path, wanted.to_dict(), flips)

    assert found.keys() == {"refused", "the same"}
    assert found["refused"] > 100


def test_a_flipped_bit_in_the_header_of_a_page_never_hides_the_last_save(path: Path, tmp_path: Path) -> None:
    """A page that seems to have fewer rows loses its last ones, and the head is the last of them."""
    wanted = with_store(path, lambda store: store.load("r"))
    assert wanted is not None
    data = path.read_bytes()
    connection = sqlite3.connect(path)
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    pages = [page for (page,) in connection.execute("SELECT rootpage FROM sqlite_master WHERE rootpage > 1")]
    connection.close()
    starts = [(page - 1) * page_size for page in pages]
    flips = [start * 8 + bit for start in starts for bit in range(12 * 8)]

    found = refused_or_the_same(data, tmp_path, wanted.to_dict(), flips)

    assert found.keys() == {"refused", "the same"}
    assert found["refused"] > 50


def test_a_flipped_bit_in_a_run_id_is_no_first_run_wherever_it_stands(tmp_path: Path) -> None:
    """It stands in the row of the run, and in two indexes; the first index is the one that is asked."""
    path, run_id = tmp_path / "one.db", "a-run-id-that-is-found-again"
    with_store(path, lambda store: store.load_or_create(run_id, {}))
    data = path.read_bytes()
    places = [match.start() for match in re.finditer(run_id.encode(), data)]

    found = []
    for place in places:
        damaged = bytearray(data)
        damaged[place + 3] ^= 1
        path.write_bytes(damaged)
        try:
            ctx = with_store(path, lambda store: store.load_or_create(run_id, {"topic": "new"}))
        except CorruptCheckpointError:
            found.append("refused")
        else:
            found.append("the same" if ctx.inputs == {} else "first run")

    assert sorted(found) == ["refused", "the same", "the same"]


def test_a_damaged_write_ahead_log_gives_the_last_whole_record(path: Path, tmp_path: Path) -> None:
    async def work(store: SQLiteStateStore) -> None:
        ctx = await store.load("r")
        assert ctx is not None
        for number in range(5):
            ctx.checkpoint(f"n{number}", number)
            await store.save("r", ctx)
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", tmp_path / f"copy.db{suffix}")

    with_store(path, work)
    log = tmp_path / "copy.db-wal"
    data = bytearray(log.read_bytes())
    data[len(data) - 2000] ^= 0xFF
    log.write_bytes(data)

    ctx = with_store(tmp_path / "copy.db", lambda store: store.load("r"))

    assert ctx is not None
    assert ctx.order == ["a", *(f"n{number}" for number in range(len(ctx.order) - 1))]
    assert os.path.getsize(tmp_path / "copy.db") > 0


def test_beside_a_run_that_lost_its_records_others_are_created_and_it_can_be_deleted(path: Path) -> None:
    execute(path, "DELETE FROM n00dles_records")

    other = with_store(path, lambda store: store.load_or_create("third", {"topic": "y"}))
    with_store(path, lambda store: store.delete("r"))
    again = with_store(path, lambda store: store.load_or_create("r", {"topic": "z"}))

    assert (other.inputs, again.inputs, dict(again.completed)) == ({"topic": "y"}, {"topic": "z"}, {})


def test_a_file_that_is_cut_to_less_than_a_header_is_no_first_run(tmp_path: Path) -> None:
    stump = tmp_path / "stump.db"
    stump.write_bytes(b"S")

    with pytest.raises(CorruptCheckpointError, match="1 byte"):
        with_store(stump, lambda store: store.load_or_create("r", {}))

    assert stump.read_bytes() == b"S"
