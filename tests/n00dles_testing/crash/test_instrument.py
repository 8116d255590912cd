"""Every true call goes to the ledger, under the node that it is for, whatever kind of function it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from n00dles import InMemoryStateStore, LLMResponse, PipelineFailure, RetryPolicy, agent, arun, pipeline
from n00dles.pipeline import Pipeline
from n00dles_testing.crash import explore
from n00dles_testing.crash.instrument import Trigger, callees, instrumented
from n00dles_testing.crash.ledger import Entry, LedgerWriter, read_ledger
from n00dles_testing.verdicts import Verdict

ONCE = RetryPolicy(max_attempts=1)


def never() -> None:
    raise AssertionError("nobody dies here")


def recorded(flow: Pipeline, folder: Path, **inputs: Any) -> list[Entry]:
    ledger = LedgerWriter(folder / "ledger", 1)
    trigger = Trigger(ledger, None, never)
    with instrumented(flow, trigger):
        try:
            asyncio.run(arun(flow, store=InMemoryStateStore(), observers=[trigger.observe], **inputs))
        except PipelineFailure as failure:
            ledger.write("failure", message=str(failure.cause))
    ledger.close()
    return read_ledger(folder / "ledger")


def calls(entries: list[Entry]) -> list[tuple[str, str, Any]]:
    return [
        (entry.kind, entry["node"], entry.get("arguments") or entry.get("output") or entry.get("error"))
        for entry in entries
        if entry.kind in ("call_start", "call_end")
    ]


def plain(text: str) -> str:
    return text.upper()


async def asynchronous(text: str) -> str:
    return text.upper()


def returns_an_awaitable(text: str) -> Any:
    return asynchronous(text)


class Callable:
    __name__ = "callable"

    async def __call__(self, text: str) -> str:
        return text.upper()


@pytest.mark.parametrize("body", [plain, asynchronous, returns_an_awaitable, Callable()])
def test_a_body_of_any_kind_is_recorded_with_its_arguments_and_its_output(body: Any, tmp_path: Path) -> None:
    flow = pipeline(agent(body), name="flow")
    name = flow.agents()[0].name

    entries = recorded(flow, tmp_path, text="tea")

    assert calls(entries) == [("call_start", name, {"text": "tea"}), ("call_end", name, "TEA")]
    assert flow.agents()[0].fn is body


async def fails(text: str) -> str:
    raise ValueError("no " + text)


def fails_when_awaited(text: str) -> Any:
    return fails(text)


@pytest.mark.parametrize("body", [fails, fails_when_awaited])
def test_a_body_that_raises_is_recorded_with_its_error(body: Any, tmp_path: Path) -> None:
    flow = pipeline(agent(body), name="flow", retry=ONCE)

    entries = recorded(flow, tmp_path, text="tea")

    assert calls(entries)[-1] == ("call_end", body.__name__, "ValueError: no tea")


class Echo:
    async def complete(self, prompt: str, system: str, **kwargs: Any) -> LLMResponse:
        return LLMResponse(content=prompt, input_tokens=3, output_tokens=2)


@agent(model="echo", provider=Echo(), temperature=0.5)
def ask(topic: str) -> str:
    """Ask."""


def test_a_request_to_a_model_is_recorded_as_it_was_sent(tmp_path: Path) -> None:
    entries = recorded(pipeline(ask, name="flow"), tmp_path, topic="tea\u2028\U0001f375")

    (request,) = (entry for entry in entries if entry.kind == "llm_request")
    assert request["prompt"] == "tea\u2028\U0001f375"
    assert request["system"] == "Ask."
    assert request["kwargs"] == {"model": "echo", "temperature": 0.5}
    assert isinstance(ask.provider, Echo)


@agent
def rescue(text: str) -> str:
    return text + " (rescued)"


@agent(fallback=rescue, retry=ONCE)
def first(text: str) -> str:
    raise ValueError("first")


@agent(fallback=rescue, retry=ONCE)
def second(text: str) -> str:
    raise ValueError("second")


rescued = pipeline(first >> second, name="rescued")


def test_a_fallback_that_two_nodes_share_is_recorded_for_the_node_that_failed(tmp_path: Path) -> None:
    entries = recorded(rescued, tmp_path, text="tea")

    assert [callee.nodes for callee in callees(rescued)] == [("first",), ("first", "second"), ("second",)]
    assert [(kind, node) for kind, node, _ in calls(entries)] == [
        (kind, node) for node in ("first", "first", "second", "second") for kind in ("call_start", "call_end")
    ]


def test_a_shared_fallback_is_not_taken_for_a_call_of_a_completed_node() -> None:
    report = explore(rescued, {"text": "tea"}, mode="in-process")

    assert report.verdict is Verdict.PASS
    assert {row.recalled for row in report.rows} == {()}


@pytest.mark.parametrize("mode", ["fork", "in-process"])
def test_a_failing_attempt_is_killed_at_its_own_line(mode: str) -> None:
    report = explore(rescued, {"text": "tea"}, mode=mode, at=["during:first", "during:first#2"])

    assert [row.story[0].partition("✗")[0].split() for row in report.rows] == [
        ["life", "1", "first", "…"],
        ["life", "1", "first", "failed", "(ValueError:", "first)", "first", "…"],
    ]
    assert report.verdict is Verdict.PASS
