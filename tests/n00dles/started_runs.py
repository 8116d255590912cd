"""Nodes that tell when they are called, and runs of them that have come half-way."""

from __future__ import annotations

from typing import Any

import pytest

from n00dles import Agent, InMemoryStateStore, Pipeline, PipelineFailure, agent, run

calls: list[str] = []


def node(name: str, *, fails: bool = False) -> Agent:
    @agent(retry=1)
    def body(value: str) -> str:
        calls.append(name)
        if fails:
            raise RuntimeError("no luck")
        return f"{name}({value})"

    return body.named(name)


A, B, C, D, FAILING = node("a"), node("b"), node("c"), node("d"), node("c", fails=True)


def node_reading_anything(*, fails: bool = False) -> Agent:
    @agent(retry=1)
    def reader(value: Any) -> Any:
        calls.append("reader")
        if fails:
            raise RuntimeError("no luck")
        return value

    return reader


READER = node_reading_anything()


def half_done(flow: Pipeline, **inputs: Any) -> InMemoryStateStore:
    """Return a store in which run 'r' of this pipeline has failed on its way."""
    store = InMemoryStateStore()
    with pytest.raises(PipelineFailure):
        run(flow, run_id="r", store=store, **(inputs or {"value": "x"}))
    calls.clear()
    return store
