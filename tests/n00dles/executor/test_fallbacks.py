"""A fallback answers for its node, over all lives."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import (
    AgentOutputError,
    InMemoryStateStore,
    PipelineBuildError,
    PipelineFailure,
    RetryPolicy,
    agent,
    resume,
    run,
)
from n00dles.events import Event, NodeFailed
from tests.n00dles.executor.flaky import Death, calls, die_at, flaky


@pytest.fixture(autouse=True)
def _fresh() -> None:
    calls.clear()


class Ticket(BaseModel):
    text: str


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
