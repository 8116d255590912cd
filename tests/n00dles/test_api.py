"""`run`, `arun`, `resume` and `aresume`, as a caller meets them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import (
    BranchError,
    ConfigurationError,
    Event,
    InMemoryStateStore,
    InputsError,
    PipelineFailure,
    RunNotFoundError,
    SQLiteStateStore,
    StateStoreError,
    agent,
    aresume,
    arun,
    branch,
    configure,
    parallel,
    pipeline,
    resume,
    run,
)
from n00dles import config as configuration
from tests.n00dles.processes import python

calls: list[str] = []


class Article(BaseModel):
    title: str


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    calls.clear()
    monkeypatch.setattr(configuration._Defaults, "store", None)
    monkeypatch.setattr(configuration._Defaults, "observers", ())


@agent
def research(topic: str) -> str:
    calls.append("research")
    return f"facts about {topic}"


@agent
async def write(facts: str) -> Article:
    calls.append("write")
    return Article(title=facts)


CONTENT = pipeline(research >> write, name="content")


def test_a_result_says_what_the_run_was() -> None:
    result = run(CONTENT, store="memory://", topic="x", tags=["test", "x"])

    assert result.output == Article(title="facts about x")
    assert len(result.run_id) == 32
    assert (result.total_tokens, result.tags) == (0, ["test", "x"])
    assert result.duration_ms > 0
    assert [(trace.name, trace.status, trace.attempts, trace.error) for trace in result.agent_traces] == [
        ("research", "ok", 1, None),
        ("write", "ok", 1, None),
    ]


def test_each_run_has_an_id_of_its_own() -> None:
    store = InMemoryStateStore()

    ids = {run(CONTENT, store=store, topic="x").run_id for _ in range(3)}

    assert len(ids) == 3


def test_a_finished_run_returns_its_stored_result_and_calls_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    first = run(CONTENT, run_id="r", store=url, topic="x", tags=["a"])
    calls.clear()

    again, resumed = run(CONTENT, run_id="r", store=url, topic="x"), resume(CONTENT, "r", store=url)

    assert calls == []
    assert again.output == resumed.output == first.output == Article(title="facts about x")
    assert again.agent_traces == resumed.agent_traces == first.agent_traces
    assert again.duration_ms == resumed.duration_ms == first.duration_ms


def test_async_callers_use_arun_and_aresume() -> None:
    store = InMemoryStateStore()

    async def main() -> tuple[Any, Any]:
        first = await arun(CONTENT, run_id="r", store=store, topic="x")
        return first, await aresume(CONTENT, "r", store=store)

    first, again = asyncio.run(main())

    assert first.output == again.output == Article(title="facts about x")
    assert calls == ["research", "write"]


def test_inside_an_event_loop_run_and_resume_say_what_to_use() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"run\(\) was called inside a running event loop.*await arun"):
            run(CONTENT, store="memory://", topic="x")
        with pytest.raises(RuntimeError, match=r"resume\(\) was called inside a running event loop.*await aresume"):
            resume(CONTENT, "r", store="memory://")

    asyncio.run(main())

    assert calls == []


def test_an_unknown_run_cannot_be_resumed_and_is_not_made(tmp_path: Path) -> None:
    store = SQLiteStateStore(tmp_path / "runs.db")

    with pytest.raises(RunNotFoundError, match=r"no run 'nope' is stored in SQLiteStateStore\(.*n00dles runs list"):
        resume(CONTENT, "nope", store=store)

    assert asyncio.run(store.list_runs()) == []


@pytest.mark.parametrize("run_id", ["", "\ud800", "x" * 10_001], ids=["empty", "surrogate", "long"])
def test_what_cannot_be_a_run_id_is_refused_before_any_call(run_id: str, tmp_path: Path) -> None:
    for store in (InMemoryStateStore(), SQLiteStateStore(tmp_path / "runs.db")):
        with pytest.raises(StateStoreError, match=r"run id"):
            run(CONTENT, run_id=run_id, store=store, topic="x")

    assert calls == []


def test_inputs_that_do_not_fit_leave_no_record() -> None:
    store = InMemoryStateStore()

    for inputs in ({}, {"topic": "x", "more": 1}, {"topic": 5}):
        with pytest.raises(InputsError):
            run(CONTENT, run_id="r", store=store, **inputs)

    assert asyncio.run(store.load("r")) is None
    assert calls == []


@pytest.mark.parametrize("target", [len, "content", None, [research]], ids=repr)
def test_what_is_no_pipeline_cannot_be_run(target: Any) -> None:
    with pytest.raises(TypeError, match=r"cannot be run; give a pipeline"):
        run(target, store="memory://")


@pytest.mark.parametrize(
    ("target", "output"),
    [
        (research, "facts about x"),
        (research >> write, Article(title="facts about x")),
        (research | research.named("again"), {"research": "facts about x", "again": "facts about x"}),
        (
            parallel(research >> write, research.named("b")),
            {"research_write": Article(title="facts about x"), "b": "facts about x"},
        ),
        (research >> branch(a=research.named("b"), default=write), Article(title="facts about x")),
    ],
    ids=["agent", "chain", "fan-out", "chain in a fan-out", "branch"],
)
def test_any_step_can_be_run_and_its_output_has_the_declared_types(target: Any, output: Any) -> None:
    store = InMemoryStateStore()

    first = run(target, run_id="r", store=store, topic="x")
    again = resume(target, "r", store=store)

    assert first.output == again.output == output


# The store.


def test_the_default_store_is_a_file_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    run(CONTENT, run_id="r", topic="x")

    assert resume(CONTENT, "r", store=SQLiteStateStore(tmp_path / "n00dles_state.db")).run_id == "r"
    assert calls == ["research", "write"]


def test_configure_sets_store_and_observers_of_all_runs(tmp_path: Path) -> None:
    seen: list[Event] = []
    configure(state_store=f"sqlite:///{tmp_path}/mine.db")
    configure(observers=[seen.append])

    run(CONTENT, run_id="r", topic="x")

    assert (tmp_path / "mine.db").exists()
    assert seen[0].name == "run_started"
    assert resume(CONTENT, "r", store=SQLiteStateStore(tmp_path / "mine.db")).run_id == "r"


def test_a_store_that_is_none_is_refused_before_any_call() -> None:
    for store, what in [("nosuch://x", "no store is known"), (object(), "no state store"), ("runs.db", "no URL")]:
        with pytest.raises(ConfigurationError, match=what):
            run(CONTENT, store=store, topic="x")
        with pytest.raises(ConfigurationError, match=what):
            configure(state_store=store)

    assert calls == []


# Failures.


def test_a_failure_names_run_node_and_cause_and_says_how_to_go_on() -> None:
    @agent(retry=1)
    def broken(facts: str) -> str:
        raise ValueError("no luck")

    store = InMemoryStateStore()
    with pytest.raises(PipelineFailure) as caught:
        run(research >> broken, run_id="r", store=store, topic="x")

    failure = caught.value
    assert (failure.run_id, failure.node_name, str(failure.cause)) == ("r", "broken", "no luck")
    assert str(failure) == (
        "run 'r' failed at node 'broken': ValueError: no luck. Completed nodes are kept; resume(pipeline, 'r') "
        "continues from them."
    )
    assert failure.__cause__ is failure.cause
    stored = asyncio.run(store.load("r"))
    assert stored is not None
    assert (stored.status, stored.completed, stored.error) == ("failed", {"research": "facts about x"}, str(failure))


def test_a_failed_run_that_is_resumed_calls_the_failed_node_and_what_follows() -> None:
    failing = [True]

    @agent(retry=1)
    def fragile(facts: str) -> str:
        calls.append("fragile")
        if failing.pop():
            failing.append(False)
            raise ValueError("no luck")
        return facts.upper()

    store = InMemoryStateStore()
    flow = pipeline(research >> fragile >> write)
    with pytest.raises(PipelineFailure):
        run(flow, run_id="r", store=store, topic="x")

    result = resume(flow, "r", store=store)

    assert calls == ["research", "fragile", "fragile", "write"]
    assert result.output == Article(title="FACTS ABOUT X")
    assert [(trace.name, trace.attempts, trace.error) for trace in result.agent_traces] == [
        ("research", 1, None),
        ("fragile", 2, "ValueError: no luck"),
        ("write", 1, None),
    ]


def test_a_branch_without_a_route_is_a_failure_that_names_the_key() -> None:
    with pytest.raises(PipelineFailure) as caught:
        run(research >> branch(a=write), store="memory://", topic="x")

    assert isinstance(caught.value.cause, BranchError)
    assert (caught.value.node_name, caught.value.cause.key) == ("branch[a]", "facts about x")


def test_a_timeout_of_the_whole_run_leaves_a_run_that_can_be_resumed() -> None:
    waits = [True]

    @agent
    async def slow(facts: str) -> str:
        calls.append("slow")
        if waits.pop():
            waits.append(False)
            await asyncio.Event().wait()
        return facts

    store = InMemoryStateStore()
    with pytest.raises(TimeoutError):
        run(research >> slow, run_id="r", store=store, topic="x", timeout=0.1)

    assert resume(research >> slow, "r", store=store).output == "facts about x"
    assert calls == ["research", "slow", "slow"]


def test_many_event_loops_one_after_another_share_a_store(tmp_path: Path) -> None:
    store = SQLiteStateStore(tmp_path / "runs.db")

    outputs = [run(research, run_id=f"r{n}", store=store, topic=str(n)).output for n in range(5)]

    assert outputs == [f"facts about {n}" for n in range(5)]
    assert len(asyncio.run(store.list_runs())) == 5


def test_a_fresh_interpreter_resumes_a_run(tmp_path: Path) -> None:
    script = """
import sys
from n00dles import agent, pipeline, resume, run

@agent
def a(topic: str) -> str:
    print("a")
    return topic

@agent(retry=1)
def b(text: str) -> str:
    print("b")
    return {"fail": lambda: 1 / 0, "go": lambda: text}[sys.argv[1]]()

try:
    flow = pipeline(a >> b)
    if sys.argv[1] == "fail":
        run(flow, run_id="r", topic="x")
    else:
        print(resume(flow, "r").output)
except Exception as error:
    print(type(error).__name__)
"""
    first = python(script, "fail", cwd=tmp_path)
    second = python(script, "go", cwd=tmp_path)

    assert first.split() == ["a", "b", "PipelineFailure"]
    assert second.split() == ["b", "x"]
