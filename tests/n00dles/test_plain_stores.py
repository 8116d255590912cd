"""Stores with nothing but the three methods, written for another release, under the executor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import (
    Event,
    InputsError,
    PipelineFailure,
    RunNotFoundError,
    StateStoreError,
    agent,
    aresume,
    pipeline,
    resume,
    run,
)

calls: list[str] = []


class Article(BaseModel):
    title: str


@pytest.fixture(autouse=True)
def _fresh() -> None:
    calls.clear()


@agent
def research(topic: str) -> str:
    calls.append("research")
    return f"facts about {topic}"


@agent
async def write(facts: str) -> Article:
    calls.append("write")
    return Article(title=facts)


CONTENT = pipeline(research >> write, name="content")


class PlainStore:
    """Written for another release: sync, four fields, no revision, nothing optional."""

    def __init__(self) -> None:
        self.records: dict[str, str] = {}
        self.fails = False

    def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> Any:
        new = {"run_id": run_id, "inputs": inputs, "completed": {}, "order": []}
        return json.loads(self.records.setdefault(run_id, json.dumps(new)))

    def save(self, run_id: str, ctx: Any) -> None:
        if self.fails:
            raise OSError("no space left")
        record = {"run_id": run_id, "inputs": ctx.inputs, "completed": ctx.completed, "order": ctx.order}
        self.records[run_id] = json.dumps(record)

    def delete(self, run_id: str) -> None:
        self.records.pop(run_id, None)


def test_a_store_with_nothing_but_the_three_methods_runs_and_resumes() -> None:
    store = PlainStore()

    first = run(CONTENT, run_id="r", store=store, topic="x")
    again = run(CONTENT, run_id="r", store=store, topic="x")

    assert first.output == again.output == resume(CONTENT, "r", store=store).output == Article(title="facts about x")
    assert calls == ["research", "write"]
    assert json.loads(store.records["r"])["order"] == ["research", "write"]


def test_asking_such_a_store_for_an_unknown_run_is_in_nobodys_way() -> None:
    store = PlainStore()

    with pytest.raises(RunNotFoundError):
        resume(CONTENT, "r", store=store)
    with pytest.raises(InputsError):
        run(CONTENT, run_id="r", store=store)

    assert run(CONTENT, run_id="r", store=store, topic="x").run_id == "r"
    assert json.loads(store.records["r"])["inputs"] == {"topic": "x"}


def test_resuming_a_run_that_another_worker_has_just_begun_does_not_delete_it() -> None:
    store = PlainStore()
    seen: list[list[str]] = []

    @agent(retry=1)
    async def begin() -> str:
        if not seen:
            seen.append([])
            with pytest.raises(PipelineFailure):
                await aresume(whole, "r", store=store)
            seen.append(list(store.records))
            return "done"
        raise ValueError("the second worker fails")

    whole = pipeline(begin, name="whole")

    output = run(whole, run_id="r", store=store).output

    assert output == "done"
    assert seen == [[], ["r"]]


def test_such_a_store_that_failed_gets_the_output_with_the_next_save_and_the_node_is_not_called_again() -> None:
    store = PlainStore()

    def fail_after_research(event: Event) -> None:
        if event.name == "node_returned":
            store.fails = True

    with pytest.raises(StateStoreError, match=r"OSError: no space left"):
        run(CONTENT, run_id="r", store=store, topic="x", observers=[fail_after_research])
    store.fails = False

    assert resume(CONTENT, "r", store=store).output == Article(title="facts about x")
    assert calls == ["research", "write"]


def test_any_object_with_the_four_fields_is_taken_as_a_context() -> None:
    class Record:
        run_id, order, revision = "r", ["research"], "etag-7"
        inputs, completed = {"topic": "x"}, {"research": "stored facts"}

    class Store(PlainStore):
        async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> Any:
            return Record()

    result = resume(CONTENT, "r", store=Store())

    assert result.output == Article(title="stored facts")
    assert calls == ["write"]
