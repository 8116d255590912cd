"""A chain: what is saved when, what is reported when, and where a body runs."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import (
    AgentOutputError,
    Event,
    InMemoryStateStore,
    PipelineFailure,
    RetryPolicy,
    SerializationError,
    SQLiteStateStore,
    StateStore,
    agent,
    arun,
    pipeline,
    resume,
    run,
)
from n00dles.events import (
    CheckpointSaved,
    CheckpointSaving,
    NodeReturned,
    NodeStarted,
    RunFailed,
    RunFinished,
    RunStarted,
)


class Article(BaseModel):
    title: str


@agent
def a(topic: str) -> str:
    return topic.upper()


@agent
async def b(text: str) -> Article:
    return Article(title=text)


@agent(retry=1)
def broken(article: Article) -> str:
    raise ValueError("no luck")


def told(event: Event) -> Any:
    """Return the event's name and what it is about."""
    if isinstance(event, CheckpointSaving | CheckpointSaved):
        return event.name, event.nodes
    if isinstance(event, NodeStarted | NodeReturned):
        return event.name, event.node
    return event.name


FIRST_LIFE = [
    "run_started",
    ("node_started", "a"),
    ("node_returned", "a"),
    ("checkpoint_saving", ("a",)),
    ("checkpoint_saved", ("a",)),
    ("node_started", "b"),
    ("node_returned", "b"),
    ("checkpoint_saving", ("b",)),
    ("checkpoint_saved", ("b",)),
    "run_finished",
]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StateStore:
    return InMemoryStateStore() if request.param == "memory" else SQLiteStateStore(tmp_path / "runs.db")


def test_a_life_reports_its_steps_in_order(store: StateStore) -> None:
    seen: list[Event] = []

    run(a >> b, store=store, run_id="r", observers=[seen.append], topic="x")

    assert [told(event) for event in seen] == FIRST_LIFE
    assert seen[0] == RunStarted(run_id="r", pipeline="a_b", life=1, completed=())
    assert seen[1] == NodeStarted(run_id="r", node="a", attempt=1, arguments={"topic": "x"})
    assert isinstance(seen[6], NodeReturned)
    assert seen[6].output == {"title": "X"}
    assert seen[-1] == RunFinished(run_id="r", calls=2)


def test_a_second_life_says_what_is_complete_and_takes_note_of_itself_before_its_first_call(store: StateStore) -> None:
    with pytest.raises(PipelineFailure):
        run(a >> b >> broken, store=store, run_id="r", topic="x")
    seen: list[Event] = []

    with pytest.raises(PipelineFailure):
        resume(a >> b >> broken, "r", store=store, observers=[seen.append])

    assert seen[0] == RunStarted(run_id="r", pipeline="a_b_broken", life=2, completed=("a", "b"))
    assert [told(event) for event in seen[1:4]] == [
        ("checkpoint_saving", ()),
        ("checkpoint_saved", ()),
        ("node_started", "broken"),
    ]
    assert isinstance(seen[-1], RunFailed)
    assert (seen[-1].node, "no luck" in seen[-1].error) == ("broken", True)


def test_a_finished_run_is_reported_as_such_and_saves_nothing(store: StateStore) -> None:
    run(a >> b, store=store, run_id="r", topic="x")
    seen: list[Event] = []

    resume(a >> b, "r", store=store, observers=[seen.append])

    assert [told(event) for event in seen] == ["run_started", "run_finished"]
    assert seen[-1] == RunFinished(run_id="r", calls=0)


def test_an_output_is_in_the_store_before_the_next_node_starts(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    found: dict[str, list[str]] = {}

    @agent
    async def c(article: Article) -> str:
        stored = await SQLiteStateStore(path).load("r")
        assert stored is not None
        found["c"] = stored.order
        return "done"

    run(a >> b >> c, store=SQLiteStateStore(path), run_id="r", topic="x")

    assert found == {"c": ["a", "b"]}


def test_the_save_of_the_last_node_says_that_the_run_is_finished(store: Any) -> None:
    statuses: list[str] = []

    class Watched(type(store)):  # type: ignore[misc]
        async def save(self, run_id: str, ctx: Any) -> None:
            await super().save(run_id, ctx)
            statuses.append((await self.load(run_id)).status)

    store.__class__ = Watched
    run(a >> b, store=store, topic="x")

    assert statuses == ["running", "finished"]


def test_a_sync_body_runs_off_the_event_loop_and_an_async_one_on_it() -> None:
    threads: dict[str, threading.Thread] = {}
    variable = contextvars.ContextVar("variable", default="unset")
    seen: list[str] = []

    @agent
    def sync(x: int) -> int:
        threads["sync"] = threading.current_thread()
        seen.append(variable.get())
        return x

    @agent
    async def on_loop(x: int) -> int:
        threads["async"] = threading.current_thread()
        return x

    async def main() -> None:
        variable.set("set by the caller")
        await arun(sync >> on_loop, store="memory://", x=1)

    asyncio.run(main())

    assert threads["async"] is threading.main_thread()
    assert threads["sync"] is not threading.main_thread()
    assert not threads["sync"].is_alive()
    assert seen == ["set by the caller"]


def test_a_sync_body_that_returns_an_awaitable_is_awaited() -> None:
    async def later(x: int) -> int:
        return x + 1

    @agent
    def wraps(x: int) -> Any:
        return later(x)

    assert run(wraps, store="memory://", x=1).output == 2


def test_a_long_chain_needs_no_deep_stack() -> None:
    @agent
    async def count(value: int) -> int:
        return value + 1

    flow = pipeline(count.named("n0"), name="long")
    for n in range(1, 400):
        flow = pipeline(flow >> count.named(f"n{n}"), name=f"long{n}") if n % 100 == 0 else flow >> count.named(f"n{n}")

    assert run(flow, store="memory://", value=0).output == 400


# Outputs that cannot be.


@pytest.mark.parametrize(
    ("output", "path"),
    [({1, 2}, "output"), ({"facts": ["a", b"x"]}, "output['facts'][1]"), (float("nan"), "output")],
    ids=["set", "bytes inside", "nan"],
)
def test_an_output_that_cannot_be_stored_fails_its_node_before_anything_else_runs(
    store: StateStore, output: Any, path: str
) -> None:
    calls: list[str] = []

    @agent(retry=5)
    def bad(topic):  # type: ignore[no-untyped-def]
        calls.append("bad")
        return output

    @agent
    def after(value: Any) -> str:
        calls.append("after")
        return "done"

    with pytest.raises(PipelineFailure) as caught:
        run(a >> bad >> after, store=store, run_id="r", topic="x")

    assert isinstance(caught.value.cause, SerializationError)
    assert (caught.value.cause.node, caught.value.cause.path) == ("bad", path)
    assert calls == ["bad"]
    stored = asyncio.run(store.load("r"))  # type: ignore[attr-defined]
    assert stored.completed == {"a": "X"}


def test_an_output_that_does_not_fit_its_declared_type_is_a_failed_attempt() -> None:
    answers = [{"titel": "X"}, {"title": "X"}]

    @agent(retry=RetryPolicy(2, base_delay=0))
    def writer(topic: str) -> Article:
        return answers.pop(0)  # type: ignore[return-value]

    result = run(pipeline(writer, retry=1), store="memory://", topic="x")

    assert result.output == Article(title="X")
    assert result.agent_traces[0].attempts == 2
    assert "does not fit its declared return type" in str(result.agent_traces[0].error)


def test_the_last_misfit_is_the_cause_of_the_failure() -> None:
    @agent(retry=1)
    def writer(topic: str) -> Article:
        return {"titel": "X"}  # type: ignore[return-value]

    with pytest.raises(PipelineFailure) as caught:
        run(writer, store="memory://", topic="x")

    assert isinstance(caught.value.cause, AgentOutputError)
    assert caught.value.cause.raw_output == "{'titel': 'X'}"


# Observers.


def test_an_observers_mistake_does_not_touch_the_run(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    def clumsy(event: Event) -> None:
        raise ValueError("observer's own mistake")

    with caplog.at_level(logging.ERROR, logger="n00dles"):
        result = run(a, store="memory://", observers=[clumsy, lambda event: seen.append(event.name)], topic="x")

    assert result.output == "X"
    assert seen[0] == "run_started"
    assert seen[-1] == "run_finished"
    assert "the run goes on" in caplog.text


class Death(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("moment", FIRST_LIFE[:-1], ids=str)
def test_what_is_no_exception_gets_through_at_any_moment_and_leaves_a_run_that_resumes(
    store: StateStore, moment: Any
) -> None:
    lives: list[list[Any]] = [[]]

    def record(event: Event) -> None:
        lives[-1].append(told(event))

    def die(event: Event) -> None:
        record(event)
        if told(event) == moment:
            raise Death

    with pytest.raises(Death):
        run(a >> b, store=store, run_id="r", observers=[die], topic="x")
    lives.append([])
    result = resume(a >> b, "r", store=store, observers=[record])

    acknowledged = {node for node in "ab" if ("checkpoint_saved", (node,)) in lives[0]}
    called_again = {node for node in "ab" if ("node_started", node) in lives[1]}
    assert result.output == Article(title="X")
    assert called_again == set("ab") - acknowledged
