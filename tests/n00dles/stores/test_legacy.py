"""Databases of the published n00dles 0.3 are read, resumed, listed and deleted."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from n00dles import (
    CorruptCheckpointError,
    SQLiteStateStore,
    StaleContextError,
    agent,
    branch,
    pipeline,
    resume,
    run,
)

OLD_RUNS = Path(__file__).resolve().parent / "runs_0_3.sql"
"""Runs as 0.3 stores them, and damaged ones. Files that 0.3 itself has made are in tests/golden."""

T = TypeVar("T")

calls: list[str] = []


@pytest.fixture
def path(tmp_path: Path) -> Path:
    calls.clear()
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.executescript(OLD_RUNS.read_text(encoding="utf-8"))
    connection.close()
    return path


def with_store(path: Path, work: Callable[[SQLiteStateStore], Coroutine[Any, Any, T]]) -> T:
    async def main() -> T:
        store = SQLiteStateStore(path)
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(main())


def legacy_rows(path: Path) -> dict[str, str]:
    connection = sqlite3.connect(path)
    try:
        return dict(connection.execute("SELECT run_id, state FROM runs").fetchall())
    finally:
        connection.close()


class Bill(BaseModel):
    title: str
    price: float
    pages: int


@agent
def researcher(topic: str) -> str:
    calls.append("researcher")
    return "other facts"


@agent
def pros(facts: str) -> list[str]:
    calls.append("pros")
    return []


@agent
def cons(facts: str) -> None:
    calls.append("cons")


@agent
def triage(pros: list[str], cons: None) -> dict[str, str]:
    calls.append("triage")
    return {"category": "support"}


@agent
def billing(ticket: dict[str, str]) -> Bill:
    calls.append("billing")
    return Bill(title="new", price=0, pages=0)


@agent
def support(ticket: dict[str, str]) -> str:
    calls.append("support")
    return "new"


@agent
def reply(bill: Bill) -> str:
    calls.append("reply")
    return f"{bill.title} {bill.price}"


FLOW = pipeline(researcher >> (pros | cons) >> triage >> branch(billing=billing, support=support) >> reply, name="flow")


def test_a_record_is_read_without_what_groups_and_branches_left_in_it(path: Path) -> None:
    ctx = with_store(path, lambda store: store.load("half-done"))

    assert ctx is not None
    assert ctx.inputs == {"topic": "agentic search"}
    assert ctx.order == ["researcher", "cons", "pros", "triage", "billing"]
    assert ctx.completed == {
        "researcher": "3 facts",
        "cons": None,
        "pros": ["fast", "café"],
        "triage": {"category": "billing"},
        "billing": {"title": "Bill", "price": 1.0, "pages": 1},
    }
    assert (ctx.revision, ctx.created_at) == (0, 1764000000.5)


def test_reading_leaves_the_old_record_as_it_is(path: Path) -> None:
    before = legacy_rows(path)

    with_store(path, lambda store: store.load("half-done"))
    with_store(path, lambda store: store.load_or_create("half-done", {"topic": "other"}))

    assert legacy_rows(path) == before


def test_a_run_resumes_and_calls_nothing_that_0_3_had_completed(path: Path) -> None:
    result = resume(FLOW, "half-done", store=SQLiteStateStore(path))

    assert result.output == "Bill 1.0"
    assert calls == ["reply"]
    assert "half-done" not in legacy_rows(path)
    assert resume(FLOW, "half-done", store=SQLiteStateStore(path)).output == "Bill 1.0"
    assert calls == ["reply"]


def test_a_run_that_had_only_begun_runs_with_its_inputs(path: Path) -> None:
    result = resume(researcher, "fresh", store=SQLiteStateStore(path))

    assert (result.output, calls) == ("other facts", ["researcher"])


def test_new_runs_lie_beside_the_old_ones(path: Path) -> None:
    before = legacy_rows(path)

    result = run(researcher, run_id="new", store=SQLiteStateStore(path), topic="x")

    assert result.output == "other facts"
    assert legacy_rows(path) == before


def test_old_runs_are_listed_the_damaged_ones_too(path: Path) -> None:
    runs = with_store(path, lambda store: store.list_runs())

    assert [(run.run_id, run.status, run.completed) for run in runs] == [
        ("stranger", "running", 0),
        ("damaged", "running", 0),
        ("fresh", "running", 0),
        ("half-done", "running", 5),
    ]


@pytest.mark.parametrize("run_id", ["damaged", "stranger", "blob"])
def test_a_damaged_record_is_refused_and_left_as_it_is(path: Path, run_id: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO runs VALUES ('blob', ?, 1.0)", (b"\x00\xff",))
    connection.commit()
    connection.close()
    before = legacy_rows(path)

    for work in (
        lambda store: store.load(run_id),
        lambda store: store.load_or_create(run_id, {"topic": "x"}),
    ):
        with pytest.raises(CorruptCheckpointError, match="left as it is"):
            with_store(path, work)
    with pytest.raises(CorruptCheckpointError):
        run(researcher, run_id=run_id, store=SQLiteStateStore(path), topic="x")

    assert legacy_rows(path) == before
    assert calls == []


def test_a_delete_removes_the_old_record_and_a_late_save_does_not_bring_it_back(path: Path) -> None:
    async def work(store: SQLiteStateStore) -> Any:
        late = await store.load("half-done")
        assert late is not None
        await store.delete("half-done")
        late.checkpoint("reply", "late")
        with pytest.raises(StaleContextError, match="deleted or changed"):
            await store.save("half-done", late)
        return await store.load("half-done")

    assert with_store(path, work) is None
    assert sorted(legacy_rows(path)) == ["damaged", "fresh", "stranger"]


def test_the_second_of_two_who_read_the_old_record_is_fenced(path: Path) -> None:
    async def work(store: SQLiteStateStore) -> Any:
        first, second = await store.load("half-done"), await store.load("half-done")
        assert first is not None
        assert second is not None
        first.checkpoint("reply", "first")
        await store.save("half-done", first)
        second.checkpoint("reply", "second")
        with pytest.raises(StaleContextError):
            await store.save("half-done", second)
        return await store.load("half-done")

    ctx = with_store(path, work)

    assert (ctx.completed["reply"], ctx.revision) == ("first", 1)


def test_a_table_of_the_same_name_and_other_columns_is_somebody_elses(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE runs (run_id TEXT, distance REAL)")
    connection.execute("INSERT INTO runs VALUES ('r', 42.2)")
    connection.commit()
    connection.close()

    ctx = with_store(path, lambda store: store.load_or_create("r", {"x": 1}))
    with_store(path, lambda store: store.delete("r"))

    connection = sqlite3.connect(path)
    assert ctx.inputs == {"x": 1}
    assert connection.execute("SELECT * FROM runs").fetchall() == [("r", 42.2)]
    connection.close()
