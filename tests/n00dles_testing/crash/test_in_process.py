"""Simulated death: it ends the life, nothing of the dead reaches the store or the ledger, and nothing stays changed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import n00dles
from n00dles import PipelineContext, agent, pipeline
from n00dles_testing.crash import SimulatedDeath, explore
from n00dles_testing.crash.in_process import InProcess
from n00dles_testing.crash.ledger import read_ledger
from n00dles_testing.crash.life import ReferenceExecutor
from n00dles_testing.crash.points import Point
from n00dles_testing.crash.scenario import PlannedRun
from n00dles_testing.verdicts import Verdict
from tests.n00dles_testing.crash import mutants, pipelines


def scenario(folder: Path, *plan: str, **inputs: Any) -> PlannedRun:
    return PlannedRun(
        id="run",
        run_id="run",
        inputs=inputs,
        store="memory://",
        location=str(folder),
        ledger=str(folder / "ledger"),
        plan=tuple(Point.parse(text) for text in plan),
        lines={"during:middle": 1},
    )


class StubbornExecutor(mutants.Executor):
    """Shields its saves from the death of the run, as an executor with background writers does."""

    def __init__(self) -> None:
        self.late: list[asyncio.Task[None]] = []

    def around(self, store: Any) -> Any:
        late = self.late

        class Late(mutants.Around):
            async def save(self, run_id: str, ctx: PipelineContext) -> None:
                copied = PipelineContext.from_dict(ctx.to_dict())

                async def save_later() -> None:
                    try:
                        await asyncio.sleep(0)
                    finally:
                        await self.inner.save(run_id, copied)

                task = asyncio.ensure_future(save_later())
                late.append(task)
                await asyncio.shield(task)

        return Late(store)


def test_a_save_that_outlives_the_death_does_not_land(tmp_path: Path) -> None:
    store, executor = mutants.WholeStore(), StubbornExecutor()
    backend = InProcess(pipelines.chain, executor, store)

    ((_, ends),) = backend.play([scenario(tmp_path, "before-save:edit", topic="x")])

    disk = next(entry for entry in read_ledger(tmp_path / "ledger") if entry.kind == "disk")
    assert ends[0].simulated
    assert disk["nodes"] == ["draft"]


def test_the_dead_life_leaves_nothing_in_the_ledger_after_its_point(tmp_path: Path) -> None:
    backend = InProcess(pipelines.wide, ReferenceExecutor())

    list(backend.play([scenario(tmp_path, "during:middle", text="tea")]))

    first_life = [entry.kind for entry in read_ledger(tmp_path / "ledger") if entry.life == 1]
    assert first_life[-1] == "at_point"


def test_the_agents_are_afterwards_as_they_were(tmp_path: Path) -> None:
    before = [(step.fn, step.provider) for step in pipelines.conversation.agents()]
    backend = InProcess(pipelines.conversation, ReferenceExecutor())

    list(backend.play([scenario(tmp_path, "during:ask", topic="x")]))

    assert [(step.fn, step.provider) for step in pipelines.conversation.agents()] == before


class SwallowsDeath(mutants.Executor):
    """Catches what nothing should catch, and returns a result."""

    async def run(self, pipeline: Any, *, inputs: Mapping[str, Any], **options: Any) -> n00dles.RunResult:
        try:
            return await super().run(pipeline, inputs=inputs, **options)
        except SimulatedDeath:
            return n00dles.RunResult(options["run_id"], None)


def test_an_executor_that_catches_the_death_is_vacuous_not_a_pass() -> None:
    report = explore(
        pipelines.chain, {"topic": "x"}, mode="in-process", executor=SwallowsDeath(), at=["after-save:edit"]
    )

    assert report.verdict is Verdict.VACUOUS
    assert "it was there, and ended by no signal at all" in report.rows[0].reason


class Shouter:
    """A body whose lines cannot be seen, as those of an extension in C."""

    __name__ = "shouter"

    def __call__(self, text: str) -> str:
        return text.upper()


def test_a_body_whose_lines_cannot_be_seen_is_not_killed_in_its_middle_and_the_report_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("n00dles_testing.crash.instrument.code_of", lambda body: None)
    flow = pipeline(agent(Shouter()), name="flow")

    report = explore(flow, {"text": "x"})

    assert "during:shouter" not in {str(row.point) for row in report.rows}
    assert any("during:shouter is not offered" in note for note in report.notes)
    assert report.verdict is Verdict.PASS


def test_a_hang_in_an_async_body_is_ended_at_the_limit() -> None:
    report = explore(
        pipelines.chain,
        {"topic": "x"},
        mode="in-process",
        executor=mutants.HangsOnResume(),
        at=["after-save:edit"],
        time_limit=3.0,
    )

    assert [clause.clause for clause in report.clauses if clause.verdict is Verdict.FAIL] == ["E04"]


def test_a_store_object_and_its_runs_are_used_as_they_are() -> None:
    store = mutants.WholeStore()

    report = explore(pipelines.chain, {"topic": "x"}, store=store, at=["edit"])

    assert report.mode == "in-process"
    assert "the store is an object" in report.notes[0]
    assert report.verdict is Verdict.PASS
    assert store.records == {}


@pytest.mark.parametrize("url", ["memory://", "sqlite"])
def test_stores_by_url_work_in_process_too(url: str, tmp_path: Path) -> None:
    target = url if "://" in url else f"sqlite:///{tmp_path}/runs.db"

    report = explore(pipelines.chain, {"topic": "x"}, store=target, mode="in-process")

    assert report.verdict is Verdict.PASS
    assert len(report.rows) == 21
