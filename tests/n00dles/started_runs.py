"""Nodes that tell when they are called, and runs of them that have come half-way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from n00dles import Agent, InMemoryStateStore, Pipeline, PipelineContext, PipelineFailure, agent, run

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


class FourFields:
    """A store that keeps what the interface says that it must, and nothing else."""

    def __init__(
        self, *order: str, completed: Mapping[str, Any] | None = None, inputs: Mapping[str, Any] | None = None
    ) -> None:
        self.run: dict[str, Any] | None = None
        if order or completed is not None:
            outputs = dict.fromkeys(order, "y") if completed is None else dict(completed)
            given = {"value": "x"} if inputs is None else dict(inputs)
            self.run = {"run_id": "r", "inputs": given, "completed": outputs, "order": order}

    def load(self, run_id: str) -> Any:
        return self.run

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        self.run = self.run or {"run_id": run_id, "inputs": inputs, "completed": {}, "order": []}
        return self.run

    def save(self, run_id: str, ctx: PipelineContext) -> None:
        self.run = {"run_id": run_id, "inputs": ctx.inputs, "completed": dict(ctx.completed), "order": ctx.order}

    def delete(self, run_id: str) -> None:
        self.run = None
