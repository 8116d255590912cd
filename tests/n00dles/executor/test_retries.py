"""Attempts: how often a node is called, over all lives."""

from __future__ import annotations

import asyncio

import pytest

from n00dles import (
    Agent,
    ConfigurationError,
    InMemoryStateStore,
    PipelineFailure,
    RetryPolicy,
    aresume,
    arun,
    pipeline,
    resume,
    run,
)
from n00dles.events import Event, NodeFailed, NodeRetried, NodeStarted
from n00dles.executor import MAX_STALLED_LIVES
from tests.n00dles.executor.flaky import Death, calls, die_at, flaky


@pytest.fixture(autouse=True)
def _fresh() -> None:
    calls.clear()


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


# Poison.


def test_a_node_that_ends_every_process_fails_the_run_after_a_stated_number_of_lives() -> None:

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
