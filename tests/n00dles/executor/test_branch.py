"""A branch: one route, chosen by the previous output, the same in every life."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from n00dles import (
    Agent,
    BranchError,
    InMemoryStateStore,
    PipelineFailure,
    agent,
    branch,
    pipeline,
    resume,
    run,
)
from n00dles.events import BranchRouted, Event, NodeStarted

calls: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    calls.clear()


class Ticket(BaseModel):
    category: Literal["billing", "support"]
    text: str


def node(name: str) -> Agent:
    @agent
    async def body(value: Any) -> str:
        calls.append(name)
        return f"{name}({value})"

    return body.named(name)


BILLING, SUPPORT, OTHER = (node(name) for name in ("handle_billing", "handle_support", "handle_other"))
ROUTES = branch(billing=BILLING, support=SUPPORT, default=OTHER)


@agent
async def triage(value: Any) -> Any:
    calls.append("triage")
    return value


@agent
async def typed_triage(text: str) -> Ticket:
    return Ticket(category="support", text=text)


@pytest.mark.parametrize(
    ("value", "route"),
    [
        ("billing", "handle_billing"),
        ({"category": "support", "more": 1}, "handle_support"),
        ("else", "handle_other"),
        ({"category": "else"}, "handle_other"),
        ({"kind": "billing"}, "handle_other"),
        ({"category": ["billing"]}, "handle_other"),
        (5, "handle_other"),
        (None, "handle_other"),
        (["billing"], "handle_other"),
        ("", "handle_other"),
        ("default", "handle_other"),
    ],
    ids=repr,
)
def test_the_previous_output_or_its_category_chooses_the_route(value: Any, route: str) -> None:
    seen: list[Event] = []

    result = run(triage >> ROUTES, run_id="r", store="memory://", value=value, observers=[seen.append])

    assert calls == ["triage", route]
    assert result.output == f"{route}({value})"
    assert [event.route for event in seen if isinstance(event, BranchRouted)] == [route]


def test_a_model_with_a_category_chooses_the_route() -> None:
    result = run(typed_triage >> ROUTES, store="memory://", text="help")

    assert result.output == "handle_support({'category': 'support', 'text': 'help'})"


@pytest.mark.parametrize("value", ["else", {"category": None}, {"other": 1}, 5, None], ids=repr)
def test_without_a_route_and_a_default_the_run_fails_and_names_the_key(value: Any) -> None:
    store = InMemoryStateStore()

    with pytest.raises(PipelineFailure) as caught:
        run(triage >> branch(billing=BILLING), run_id="r", store=store, value=value)

    assert isinstance(caught.value.cause, BranchError)
    assert "has no route for the key" in str(caught.value)
    assert calls == ["triage"]
    stored = asyncio.run(store.load("r"))
    assert stored is not None
    assert (stored.status, stored.completed) == ("failed", {"triage": value})


def test_a_missing_route_can_be_added_and_the_run_resumed() -> None:
    store = InMemoryStateStore()
    with pytest.raises(PipelineFailure):
        run(pipeline(triage >> branch(billing=BILLING), name="p"), run_id="r", store=store, value="support")

    result = resume(pipeline(triage >> branch(billing=BILLING, support=SUPPORT), name="p"), "r", store=store)

    assert result.output == "handle_support(support)"
    assert calls == ["triage", "handle_support"]


def test_a_resume_takes_the_same_route_and_does_not_call_the_routed_node_again() -> None:
    @agent(retry=1)
    async def fragile(value: Any) -> str:
        calls.append("fragile")
        if calls.count("fragile") == 1:
            raise RuntimeError("no luck")
        return f"done {value}"

    store = InMemoryStateStore()
    flow = pipeline(triage >> ROUTES >> fragile)
    with pytest.raises(PipelineFailure):
        run(flow, run_id="r", store=store, value="support")
    seen: list[Event] = []

    result = resume(flow, "r", store=store, observers=[seen.append])

    assert result.output == "done handle_support(support)"
    assert calls == ["triage", "handle_support", "fragile", "fragile"]
    assert [event.route for event in seen if isinstance(event, BranchRouted)] == ["handle_support"]
    assert [event.node for event in seen if isinstance(event, NodeStarted)] == ["fragile"]


def test_a_route_may_be_a_chain_a_fan_out_or_a_branch() -> None:
    deep = branch(
        chain=SUPPORT >> OTHER,
        group=node("x") | node("y"),
        nested=pipeline(node("pick") >> branch(default=node("n1"), a=node("n2")), name="nested"),
    )

    found = [run(triage >> deep, store="memory://", value=value).output for value in ("chain", "group", "nested")]

    assert found == [
        "handle_other(handle_support(chain))",
        {"x": "x(group)", "y": "y(group)"},
        "n1(pick(nested))",
    ]


def test_the_output_of_a_branch_has_the_type_of_the_route_that_ran() -> None:
    @agent
    async def open_ticket(text: str) -> Ticket:
        return Ticket(category="billing", text=text)

    flow = triage >> branch(ticket=open_ticket, default=OTHER)
    store = InMemoryStateStore()

    first = run(flow, run_id="r", store=store, value="ticket")

    assert first.output == Ticket(category="billing", text="ticket")
    assert resume(flow, "r", store=store).output == first.output
    assert run(flow, store=store, value="x").output == "handle_other(x)"
