"""Errors that are hard to tell, to store or to carry over a thread are failures of their node, like any other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import (
    Agent,
    ConfigurationError,
    PipelineFailure,
    RetryPolicy,
    SQLiteStateStore,
    agent,
    run,
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


@pytest.mark.parametrize("kind", ["retried", "final"])
def test_an_error_message_that_cannot_be_stored_as_it_is_does_not_fail_the_store(tmp_path: Path, kind: str) -> None:
    fails = [True]

    @agent(retry=RetryPolicy(2 if kind == "retried" else 1, base_delay=0))
    def reads(topic: str) -> str:
        if fails.pop():
            fails.append(False)
            raise OSError("cannot read 'caf\udce9'")
        return topic

    store = SQLiteStateStore(tmp_path / "runs.db")
    if kind == "final":
        with pytest.raises(PipelineFailure, match=r"OSError: cannot read 'caf\\udce9'"):
            run(reads, run_id="r", store=store, topic="x")
    result = run(reads, run_id="r", store=store, topic="x")

    assert result.output == "x"
    assert result.agent_traces[0].error == "OSError: cannot read 'caf\\udce9'"


def test_an_error_without_a_usable_message_is_an_error_like_any_other() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("cannot be told")

    @agent(retry=1)
    def fails(topic: str) -> str:
        raise Mute

    with pytest.raises(PipelineFailure, match="its message cannot be told"):
        run(fails, store="memory://", topic="x")


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_stop_iteration_is_a_failure_and_not_an_endless_wait(kind: str) -> None:
    def sync_body(topic: str) -> str:
        return next(iter(()))

    async def async_body(topic: str) -> str:
        return next(iter(()))

    node = Agent(sync_body if kind == "sync" else async_body, retry=1)

    with pytest.raises(PipelineFailure) as caught:
        run(node, store="memory://", topic="x")

    assert isinstance(caught.value.cause, RuntimeError)
    assert "StopIteration" in str(caught.value.cause)


def test_a_cancellation_from_inside_a_body_is_a_failed_attempt() -> None:
    @agent(retry=1)
    async def waits(topic: str) -> str:
        task = asyncio.ensure_future(asyncio.Event().wait())
        task.cancel()
        await task
        return topic

    with pytest.raises(PipelineFailure, match="something that node 'waits' awaited was cancelled"):
        run(waits | a, store="memory://", topic="x")


def test_an_annotation_that_cannot_be_checked_is_refused_before_the_first_call() -> None:
    class Opaque:
        pass

    calls: list[str] = []

    @agent
    def first(topic: str) -> dict[str, int]:
        calls.append("first")
        return {}

    @agent
    def takes(value: Opaque) -> str:
        return "x"

    @agent
    def gives(value: Any) -> Opaque:
        return Opaque()

    for last in (takes, gives, Agent(first.fn, fallback=Agent(first.fn)).named("ok") >> gives):
        with pytest.raises(ConfigurationError, match=r"agent '(takes|gives)': the annotation .* No node was called"):
            run(first >> last, store="memory://", topic="x")

    assert calls == []
