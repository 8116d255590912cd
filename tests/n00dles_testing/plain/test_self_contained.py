"""A framework that keeps its own checkpoints is a subject, by what the page on other executors says of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from n00dles import Pipeline, PipelineContext, RunResult, agent, pipeline
from n00dles.events import NodeReturned, NodeStarted, Observer, RunFinished, RunStarted
from n00dles_testing import Verdict, explore


class Box:
    """What a made-up engine stores of one run: a file for each step."""

    def __init__(self, location: str) -> None:
        self.folder = Path(location)

    def put(self, name: str, value: Any) -> None:
        written = self.folder / "written"
        written.write_text(json.dumps(value))
        os.replace(written, self.folder / f"{name}.json")

    def get(self, name: str) -> Any:
        return json.loads((self.folder / f"{name}.json").read_text())

    def has(self, name: str) -> bool:
        return (self.folder / f"{name}.json").exists()

    async def load(self, run_id: str) -> PipelineContext | None:
        """Be asked between two lives."""
        if not self.has("inputs"):
            return None
        steps = {name: self.get(name) for name in ("first", "second") if self.has(name)}
        return PipelineContext(run_id, self.get("inputs"), steps)


@agent
def first(text: str) -> str:
    upper = text.upper()
    return f"{upper}!"


@agent
def second(text: str) -> dict[str, int]:
    count = len(text)
    return {"letters": count}


class Engine:
    """Runs steps one by one, and stores what each returns."""

    def __init__(self) -> None:
        self.pipeline: Pipeline = pipeline(first >> second, name="engine")

    def describe(self) -> dict[str, Any]:
        return {
            "name": "engine",
            "nodes": {
                "first": {"model": None, "needs": []},
                "second": {"model": None, "needs": ["first"]},
            },
            "untold": {"E01": "when it saves cannot be seen"},
            "sees_saves": False,
            "notes": ["an engine for tests"],
            "how": ["kill"],
        }

    def open_store(self, location: str) -> Any:
        return Box(location)

    async def run(
        self, pipeline: Pipeline, *, run_id: str, store: Any, observers: Sequence[Observer], inputs: Mapping[str, Any]
    ) -> RunResult:
        def tell(kind: Any, **fields: Any) -> None:
            for observer in observers:
                observer(kind(run_id=run_id, **fields))

        store.put("inputs", dict(inputs))
        tell(RunStarted, pipeline="engine", life=1, completed=())
        value: Any = inputs["text"]
        for step in pipeline.agents():
            if not store.has(step.name):
                tell(NodeStarted, node=step.name, attempt=1, arguments={"text": value})
                output = step.fn(text=value)
                cost = {"duration_ms": 0.0, "input_tokens": 0, "output_tokens": 0}
                tell(NodeReturned, node=step.name, attempt=1, output=output, **cost)
                store.put(step.name, output)
            value = store.get(step.name)
        tell(RunFinished, calls=2)
        return RunResult(run_id, value)

    async def resume(self, pipeline: Pipeline, *, run_id: str, store: Any, observers: Sequence[Observer]) -> RunResult:
        inputs = store.get("inputs")
        return await self.run(pipeline, run_id=run_id, store=store, observers=observers, inputs=inputs)


engine = Engine()
HERE = "tests.n00dles_testing.plain.test_self_contained"


@pytest.mark.parametrize("mode", ["fork", "spawn", "in-process"])
def test_an_engine_is_explored_in_every_mode(mode: str) -> None:
    report = explore(f"{HERE}:engine", {"text": "tea"}, mode=mode, at=["second"])

    assert [str(row.point) for row in report.rows] == ["before:second", "during:second", "after:second"]
    assert {row.on_disk for row in report.rows} == {("first",)}
    assert (report.verdict, report.store) == (Verdict.PASS, "its own")
    assert "an engine for tests" in report.notes


def test_a_clause_that_cannot_be_told_is_not_applicable_with_its_reason() -> None:
    report = explore(engine, {"text": "tea"}, mode="in-process")

    told = {clause.clause: (clause.verdict, clause.reason) for clause in report.clauses}
    assert told["E01"] == (Verdict.NOT_APPLICABLE, "when it saves cannot be seen")


class ForgetsFirst(Engine):
    """Runs its first step again in every life."""

    async def resume(self, pipeline: Pipeline, **options: Any) -> RunResult:
        if not options["store"].has("second"):
            (options["store"].folder / "first.json").unlink(missing_ok=True)
        return await super().resume(pipeline, **options)


def test_a_step_that_is_run_again_is_found() -> None:
    report = explore(ForgetsFirst(), {"text": "tea"}, mode="in-process", at=["before:second"])

    assert {clause.clause for clause in report.clauses if clause.verdict is Verdict.FAIL} == {"E02"}
    assert "`first` was called again in life 2, though it was in the store" in report.findings[0].message
