"""Attempts, fallbacks and timeouts: how often a node is called, over all lives, and who answers for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import (
    Agent,
    AgentOutputError,
    ConfigurationError,
    InMemoryStateStore,
    PipelineBuildError,
    PipelineFailure,
    RetryPolicy,
    agent,
    aresume,
    arun,
    pipeline,
    resume,
    run,
)
from n00dles.events import Event, NodeFailed, NodeRetried, NodeStarted

AT_ONCE = RetryPolicy(max_attempts=3, base_delay=0)

calls: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    calls.clear()


class Death(BaseException):
    """Stands for the end of the process."""


class Ticket(BaseModel):
    text: str


def flaky(name: str, failures: int, error: type[BaseException] = RuntimeError, **settings: Any) -> Agent:
    """Return an agent that fails so many times before it succeeds."""
    left = [failures]

    async def body(value: str) -> str:
        calls.append(name)
        if left[0]:
            left[0] -= 1
            raise error(f"no luck {left[0]}")
        return f"{name}({value})"

    return Agent(body, **{"retry": AT_ONCE, **settings}).named(name)


def test_a_failed_attempt_is_followed_by_another_until_one_succeeds() -> None:
    seen: list[Event] = []

    result = run(flaky("a", 2), run_id="r", store="memory://", value="x", observers=[seen.append])

    assert result.output == "a(x)"
    assert [(trace.attempts, trace.error) for trace in result.agent_traces] == [(3, "RuntimeError: no luck 0")]
    assert [event for event in seen if isinstance(event, NodeRetried)] == [
        NodeRetried(run_id="r", node="a", attempt=1, error="no luck 1", delay=0),
        NodeRetried(run_id="r", node="a", attempt=2, error="no luck 0", delay=0),
    ]
    assert [event.attempt for event in seen if isinstance(event, NodeStarted)] == [1, 2, 3]


def test_when_all_attempts_are_used_up_the_run_fails_with_the_last_error() -> None:
    seen: list[Event] = []

    with pytest.raises(PipelineFailure) as caught:
        run(flaky("a", 9), run_id="r", store="memory://", value="x", observers=[seen.append])

    assert (len(calls), str(caught.value.cause)) == (3, "no luck 6")
    assert [event for event in seen if isinstance(event, NodeFailed)] == [
        NodeFailed(run_id="r", node="a", attempt=3, error="no luck 6", fallback=None)
    ]


@pytest.mark.parametrize(
    ("pipelines_retry", "agents_retry", "attempts"),
    [(None, 1, 1), (2, None, 2), (5, 1, 1), (1, 2, 2)],
    ids=["agent", "pipeline", "agent wins", "agent wins over less"],
)
def test_the_most_specific_number_of_attempts_holds(
    pipelines_retry: int | None, agents_retry: int | None, attempts: int
) -> None:
    def quick(number: int | None) -> RetryPolicy | None:
        return None if number is None else RetryPolicy(number, base_delay=0)

    node = flaky("a", 99, retry=quick(agents_retry))

    with pytest.raises(PipelineFailure):
        run(pipeline(node, retry=quick(pipelines_retry)), store="memory://", value="x")

    assert len(calls) == attempts


def test_an_inner_pipelines_settings_go_before_the_outer_ones() -> None:
    inner = pipeline(flaky("a", 99, retry=None), name="inner", retry=RetryPolicy(2, base_delay=0))

    with pytest.raises(PipelineFailure):
        run(pipeline(inner, name="outer", retry=RetryPolicy(7, base_delay=0)), store="memory://", value="x")

    assert len(calls) == 2


def test_only_the_stated_errors_are_tried_again() -> None:
    policy = RetryPolicy(5, base_delay=0, retryable_exceptions=(ConnectionError,))

    with pytest.raises(PipelineFailure):
        run(flaky("a", 9, ValueError, retry=policy), store="memory://", value="x")
    result = run(flaky("b", 2, ConnectionResetError, retry=policy), store="memory://", value="x")

    assert calls == ["a", "b", "b", "b"]
    assert result.output == "b(x)"


def test_a_mistake_in_the_set_up_is_not_tried_again_and_takes_no_fallback() -> None:
    node = flaky("a", 9, ConfigurationError, fallback=flaky("b", 0))

    with pytest.raises(PipelineFailure) as caught:
        run(node, store="memory://", value="x")

    assert isinstance(caught.value.cause, ConfigurationError)
    assert calls == ["a"]


# Over all lives.


def die_at(name: str, **fields: Any) -> Callable[[Event], None]:
    def observer(event: Event) -> None:
        if event.name == name and all(getattr(event, field) == value for field, value in fields.items()):
            raise Death

    return observer


def test_failed_attempts_count_over_all_lives() -> None:
    store = InMemoryStateStore()
    node = flaky("a", 9)
    with pytest.raises(Death):
        run(node, run_id="r", store=store, value="x", observers=[die_at("node_started", attempt=2)])
    calls.clear()

    with pytest.raises(PipelineFailure) as caught:
        resume(node, "r", store=store)

    assert calls == ["a", "a"]
    assert "no luck" in str(caught.value.cause)


def test_a_death_in_the_back_off_does_not_give_the_attempt_back() -> None:
    async def first_life(store: InMemoryStateStore, node: Agent) -> None:
        waiting = asyncio.Event()

        def watch(event: Event) -> None:
            if event.name == "checkpoint_saved" and calls:
                waiting.set()

        task = asyncio.create_task(arun(node, run_id="r", store=store, value="x", observers=[watch]))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    store = InMemoryStateStore()
    asyncio.run(first_life(store, flaky("a", 9, retry=RetryPolicy(2, base_delay=3600))))

    with pytest.raises(PipelineFailure):
        resume(flaky("a", 9, retry=RetryPolicy(2, base_delay=3600)), "r", store=store)

    assert calls == ["a", "a"]


def test_a_failure_that_was_reported_gives_the_node_its_attempts_back() -> None:
    store = InMemoryStateStore()
    node = flaky("a", 4)
    with pytest.raises(PipelineFailure):
        run(node, run_id="r", store=store, value="x")

    result = resume(node, "r", store=store)

    assert result.output == "a(x)"
    assert calls == ["a"] * 5
    assert result.agent_traces[0].attempts == 5


# Fallbacks.


def test_a_fallback_takes_over_with_the_same_arguments_under_the_nodes_name() -> None:
    seen: list[Event] = []
    store = InMemoryStateStore()
    node = flaky("a", 9, fallback=flaky("b", 0))

    result = run(node >> flaky("c", 0), run_id="r", store=store, value="x", observers=[seen.append])

    assert result.output == "c(b(x))"
    assert calls == ["a", "a", "a", "b", "c"]
    assert [event.fallback for event in seen if isinstance(event, NodeFailed)] == ["b"]
    assert [(trace.name, trace.attempts) for trace in result.agent_traces] == [("a", 4), ("c", 1)]
    assert resume(node >> flaky("c", 0), "r", store=store).output == "c(b(x))"


def test_a_fallback_has_its_own_attempts_one_unless_it_says_otherwise() -> None:
    node = flaky("a", 9, fallback=flaky("b", 9, retry=None, fallback=flaky("c", 9, retry=RetryPolicy(2, base_delay=0))))

    with pytest.raises(PipelineFailure):
        run(node, store="memory://", value="x")

    assert calls == ["a", "a", "a", "b", "c", "c"]


@pytest.mark.parametrize(
    ("dies_at", "first", "second"),
    [
        ({"attempt": 2}, ["a"], ["a", "a", "b"]),
        ({"attempt": 4}, ["a", "a", "a"], ["b"]),
    ],
    ids=["before the second attempt", "before the fallback"],
)
def test_a_death_leads_back_to_where_the_lineup_was(
    dies_at: dict[str, Any], first: list[str], second: list[str]
) -> None:
    store = InMemoryStateStore()
    node = flaky("a", 9, fallback=flaky("b", 0))
    with pytest.raises(Death):
        run(node, run_id="r", store=store, value="x", observers=[die_at("node_started", **dies_at)])
    before = list(calls)
    calls.clear()

    result = resume(node, "r", store=store)

    assert (before, calls) == (first, second)
    assert result.output == "b(x)"


def test_a_fallback_whose_output_is_not_what_the_node_declares_has_failed() -> None:
    @agent(retry=1)
    async def apology(value: str) -> str:
        return "sorry"

    @agent(retry=1, fallback=apology)
    async def open_ticket(value: str) -> Ticket:
        raise RuntimeError("no luck")

    with pytest.raises(PipelineFailure) as caught:
        run(open_ticket, store="memory://", value="x")

    assert isinstance(caught.value.cause, AgentOutputError)
    assert (caught.value.node_name, caught.value.cause.agent_name) == ("open_ticket", "open_ticket")


def test_a_fallback_that_cannot_take_the_arguments_is_refused_when_the_agent_is_made() -> None:
    @agent
    async def other(text: str) -> str:
        return text

    with pytest.raises(PipelineBuildError, match="fallback 'other' is called with the arguments of 'body'"):
        flaky("a", 0, fallback=other)

    assert flaky("a", 0, fallback=flaky("b", 0)).fallback is not None


# Timeouts.


def test_an_attempt_that_takes_too_long_is_ended_and_the_next_one_made() -> None:
    ended: list[str] = []

    @agent(timeout=0.05, retry=AT_ONCE)
    async def slow(value: str) -> str:
        calls.append("slow")
        if len(calls) < 3:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("ended")
        return value

    result = run(slow, store="memory://", value="x")

    assert (result.output, len(calls), ended) == ("x", 3, ["ended", "ended"])
    assert result.agent_traces[0].error == "TimeoutError: node 'slow' was not done within its timeout of 0.05 s"


def test_the_most_specific_timeout_holds() -> None:
    @agent(retry=1)
    async def slow(value: str) -> str:
        await asyncio.Event().wait()
        return value

    with pytest.raises(PipelineFailure, match=r"within its timeout of 0\.02 s"):
        run(
            pipeline(pipeline(slow, name="inner", timeout=0.02), name="outer", timeout=50), store="memory://", value="x"
        )
    with pytest.raises(PipelineFailure, match=r"within its timeout of 0\.03 s"):
        run(pipeline(Agent(slow.fn, timeout=0.03, retry=1), timeout=50), store="memory://", value="x")


def test_a_timeout_that_the_body_itself_raises_is_an_error_like_any_other() -> None:
    node = flaky("a", 1, TimeoutError)

    result = run(node, store="memory://", value="x")

    assert (result.output, result.agent_traces[0].error) == ("a(x)", "TimeoutError: no luck 0")


def test_a_sync_body_that_is_over_its_time_is_waited_for_and_what_it_returns_is_kept() -> None:
    called: list[str] = []

    @agent(timeout=0.05, retry=RetryPolicy(2, base_delay=0))
    def slow(value: str) -> str:
        called.append(value)
        threading.Event().wait(0.1)
        return value

    result = run(slow, store="memory://", value="x")

    assert (result.output, called) == ("x", ["x"])


def test_a_sync_body_that_is_over_its_time_and_fails_is_called_again_only_when_it_has_ended() -> None:
    running, most = 0, 0
    lock = threading.Lock()

    @agent(timeout=0.05, retry=RetryPolicy(2, base_delay=0))
    def slow(value: str) -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.1)
        with lock:
            running -= 1
        raise ValueError("no")

    with pytest.raises(PipelineFailure, match="was not done within its timeout"):
        run(slow, store="memory://", value="x")

    assert (most, running) == (1, 0)


# on_error.


def test_on_error_is_called_and_awaited_from_the_inside_out() -> None:
    told: list[tuple[str, str]] = []

    async def inner_handler(failure: PipelineFailure) -> None:
        await asyncio.sleep(0)
        told.append(("inner", failure.node_name))

    def outer_handler(failure: PipelineFailure) -> None:
        told.append(("outer", failure.node_name))

    inner = pipeline(flaky("a", 9), name="inner", on_error=inner_handler)

    with pytest.raises(PipelineFailure):
        run(pipeline(inner, name="outer", on_error=outer_handler), store="memory://", value="x")

    assert told == [("inner", "a"), ("outer", "a")]


def test_an_on_error_that_fails_is_noted_and_hides_nothing() -> None:
    def handler(failure: PipelineFailure) -> None:
        raise ValueError("handler's own mistake")

    with pytest.raises(PipelineFailure) as caught:
        run(pipeline(flaky("a", 9), name="p", on_error=handler), store="memory://", value="x")

    assert str(caught.value.cause) == "no luck 6"
    assert caught.value.__notes__ == ["and on_error of pipeline 'p' failed: ValueError: handler's own mistake"]


def test_on_error_finds_the_failure_in_the_store_already() -> None:
    store = InMemoryStateStore()
    found: list[Any] = []

    async def handler(failure: PipelineFailure) -> None:
        stored = await store.load(failure.run_id)
        assert stored is not None
        found.append((stored.status, stored.order))

    with pytest.raises(PipelineFailure):
        run(pipeline(flaky("a", 0) >> flaky("b", 9), on_error=handler), store=store, value="x")

    assert found == [("failed", ["a"])]


# Poison.


def test_a_node_that_ends_every_process_fails_the_run_after_a_stated_number_of_lives() -> None:
    from n00dles.executor import MAX_STALLED_LIVES

    store = InMemoryStateStore()
    flow = pipeline(flaky("a", 0) >> flaky("poison", 0) >> flaky("c", 0))
    deadly = [die_at("node_started", node="poison")]
    with pytest.raises(Death):
        run(flow, run_id="r", store=store, value="x", observers=deadly)
    lives = 1
    while True:
        try:
            resume(flow, "r", store=store, observers=deadly)
        except Death:
            lives += 1
        except PipelineFailure as failure:
            end = failure
            break

    assert lives == MAX_STALLED_LIVES + 1
    assert end.node_name == "poison"
    assert f"{MAX_STALLED_LIVES} lives in a row have ended without a completed node" in str(end)
    assert calls == ["a"]
    assert asyncio.run(_status(store)) == "failed"
    assert resume(flow, "r", store=store).output == "c(poison(a(x)))"


async def _status(store: InMemoryStateStore) -> str:
    stored = await store.load("r")
    assert stored is not None
    return stored.status


def test_lives_that_complete_a_node_are_not_counted_as_stalled() -> None:
    store = InMemoryStateStore()
    names = [f"n{n}" for n in range(12)]
    flow = flaky(names[0], 0) >> flaky(names[1], 0)
    for name in names[2:]:
        flow = flow >> flaky(name, 0)

    with pytest.raises(Death):
        run(flow, run_id="r", store=store, value="x", observers=[die_at("node_started", node=names[1])])
    for name in names[2:]:
        with pytest.raises(Death):
            resume(flow, "r", store=store, observers=[die_at("node_started", node=name)])

    assert resume(flow, "r", store=store).run_id == "r"
    assert calls == names


def test_resumes_at_a_time_do_not_use_up_lives_of_a_run_that_only_fails() -> None:
    store = InMemoryStateStore()
    node = flaky("a", 7, retry=1)
    with pytest.raises(PipelineFailure):
        run(node, run_id="r", store=store, value="x")
    for _ in range(6):
        with pytest.raises(PipelineFailure, match="no luck"):
            resume(node, "r", store=store)

    assert asyncio.run(aresume(node, "r", store=store)).output == "a(x)"
