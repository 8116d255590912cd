"""Lives that are disturbed and not killed: each proves that it was, says what is left of it, and is gone on from."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

import n00dles
from n00dles_testing.crash import ExplorationError, ExplorationReport, explore
from n00dles_testing.crash.assessment import not_disturbed
from n00dles_testing.crash.clauses import JUDGED
from n00dles_testing.crash.history import Life
from n00dles_testing.crash.inner_loop import InnerLoop
from n00dles_testing.crash.life import ReferenceExecutor
from n00dles_testing.crash.points import How, Plan, Point
from n00dles_testing.verdicts import Verdict
from tests.n00dles_testing.crash import mutants, pipelines

NOTHING = {"tasks": [], "calls": [], "saves": 0, "threads": []}


def plan(*texts: str) -> Plan:
    return tuple(Point.parse(text) for text in texts)


def lived(*texts: str, executor: Any = None, flow: Any = pipelines.chain) -> list[Life]:
    """Return the lives of a plan that came true."""
    inputs = {"topic": "x"} if flow is not pipelines.wide else {"text": "tea"}
    case = InnerLoop(flow, executor or ReferenceExecutor(), inputs).case(plan(*texts))
    assert not_disturbed(case.history, plan(*texts)) == ""
    return case.history.working


@pytest.fixture(scope="module")
def forked() -> ExplorationReport:
    """Return the exploration of the chain with all that can be done to it, in processes."""
    return explore(pipelines.chain, {"topic": "x"}, mode="fork", how="all", at=["edit", "*create", "await"])


def test_all_that_can_be_done_is_done_in_processes_and_survived(forked: ExplorationReport) -> None:
    done = {row.point.how for row in forked.rows}

    assert done == set(How)
    assert all(row.disturbed for row in forked.rows if row.point.how is not How.KILL)
    assert {row.killed_by for row in forked.rows if row.point.how is How.KILL} == {signal.SIGKILL}
    assert {row.verdict for row in forked.rows} == {Verdict.PASS}


def test_the_story_of_a_disturbed_life_says_what_was_done_and_how_it_ended(forked: ExplorationReport) -> None:
    stories = {str(row.point): row.story[0] for row in forked.rows}

    assert stories["cancel@after:edit"].endswith("✗ cancelled after edit, not saved: raised CancelledError")
    assert stories["interrupt@before:edit"].endswith("✗ interrupted before edit: raised KeyboardInterrupt")
    assert "timed out during edit" in stories["timeout@during:edit"]
    assert "the save of edit refused, and all after it: raised StateStoreError" in stories["refused@before-save:edit"]


def test_a_run_that_finishes_in_spite_of_a_fault_has_one_life(forked: ExplorationReport) -> None:
    lives = {row.point.how: row.lives for row in forked.rows if row.point.subject == "edit"}

    assert lives[How.REFUSED_ONCE] == lives[How.REPLY_LOST_ONCE] == lives[How.SLOW] == 1
    assert lives[How.REFUSED] == lives[How.CANCEL] == 2


@pytest.mark.parametrize("mode", ["spawn", "in-process"])
def test_fresh_interpreters_and_this_process_can_do_it_too(mode: str) -> None:
    at = ["cancel@after:edit", "interrupt@during:edit", "timeout@after:edit", "refused@before-save:edit"]

    report = explore(pipelines.chain, {"topic": "x"}, mode=mode, at=at)

    assert {str(row.point) for row in report.rows} == set(at)
    assert [row.lives for row in report.rows] == [2, 2, 2, 2]
    assert report.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("point", "error"),
    [
        ("cancel@during:draft", "CancelledError"),
        ("cancel@before:edit", "CancelledError"),
        ("cancel@await", "CancelledError"),
        ("cancel@run-finished", "CancelledError"),
        ("interrupt@during:edit", "KeyboardInterrupt"),
        ("interrupt@before-create", "KeyboardInterrupt"),
        ("timeout@during:draft", "TimeoutError"),
        ("timeout@await#2", "TimeoutError"),
        ("refused@before-save:edit", "StateStoreError"),
        ("reply-lost@before-save:edit", "StateStoreError"),
    ],
)
def test_a_disturbed_life_ends_as_its_caller_would_see_it_and_leaves_nothing(point: str, error: str) -> None:
    life, *_ = lived(point)

    assert life.how is Point.parse(point).how
    assert life.outcomes[-1]["error"] == error
    assert life.left == {**NOTHING, "delivered": True}


def test_the_ledger_says_in_which_functions_the_run_gave_way() -> None:
    life, *_ = lived("cancel@await")

    assert life.at_point is not None
    assert life.at_point["where"].split(" > ")[-1] == "call_in_thread"


def test_members_of_a_fan_out_are_ended_with_the_run() -> None:
    first, second = lived("cancel@during:left", flow=pipelines.wide)

    assert first.left == {**NOTHING, "delivered": True}
    assert second.outcomes[-1]["ok"]


def test_what_was_returned_is_kept_in_the_process_when_the_store_fails_and_forgotten_with_a_cancelled_one() -> None:
    refused = lived("refused@before-save:edit")
    cancelled = lived("cancel@after:edit")

    assert [(life.same_process, [call.node for call in life.calls]) for life in refused] == [
        (False, ["draft", "edit"]),
        (True, ["publish"]),
    ]
    assert [(life.same_process, life.stored) for life in cancelled] == [(False, []), (False, ["draft", "edit"])]


def test_a_refused_save_is_not_there_and_one_whose_reply_was_lost_is() -> None:
    assert lived("refused@before-save:edit")[1].stored == ["draft"]
    assert lived("reply-lost@before-save:edit")[1].stored == ["draft", "edit"]


def test_a_store_that_lost_its_reply_is_not_reached_again_in_that_life() -> None:
    life, *_ = lived("reply-lost@before-save:edit")

    errors = [save.error for save in life.saves if save.error is not None]
    assert "does not reply" in errors[0]
    assert errors[1:]
    assert all("cannot be reached" in error for error in errors[1:])


def test_lives_of_several_kinds_follow_each_other() -> None:
    lives = lived("refused@before-save:draft", "after-save:edit", "timeout@before:publish", "cancel@run-started")

    assert [life.same_process for life in lives] == [False, True, False, False, False]
    assert [life.stored for life in lives[1:3]] == [[], ["draft", "edit"]]
    assert lives[3].stored == ["draft", "edit", "publish"]  # a body in a thread is waited for, and what it gave is kept


def test_a_life_of_several_in_one_process_can_be_killed_there() -> None:
    plans = [plan("refused@before-save:draft", "after-save:edit", "before:publish")]

    report = explore(pipelines.chain, {"topic": "x"}, mode="fork", plans=plans)

    (row,) = report.rows
    assert row.killed_by == signal.SIGKILL
    assert (row.lives, row.verdict) == (4, Verdict.PASS)
    assert [line.split()[0] for line in row.story].count("life") == 4


class Deaf(mutants.Executor):
    """Goes on to the end though it was told to end."""

    async def run(self, pipeline: Any, *, inputs: Mapping[str, Any], **options: Any) -> n00dles.RunResult:
        work = asyncio.ensure_future(super().run(pipeline, inputs=inputs, **options))
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.shield(work)
        return work.result()


class LeavesATask(mutants.Executor):
    """Is gone when it is told to end, and leaves the run to itself."""

    async def run(self, pipeline: Any, *, inputs: Mapping[str, Any], **options: Any) -> n00dles.RunResult:
        return await asyncio.shield(asyncio.ensure_future(super().run(pipeline, inputs=inputs, **options)))


@pytest.mark.parametrize("how", ["cancel", "interrupt", "timeout"])
def test_an_executor_that_does_not_end_is_a_fact_and_no_vacuous_scenario(how: str) -> None:
    life, *others = lived(f"{how}@during:draft", executor=Deaf())

    assert others == []
    assert life.was_disturbed
    assert life.outcomes[-1]["ok"]


@pytest.mark.parametrize("how", ["cancel", "interrupt", "timeout"])
def test_what_an_executor_leaves_running_is_named_and_what_it_does_afterwards_is_seen(how: str) -> None:
    life, *_ = lived(f"{how}@during:draft", executor=LeavesATask())

    assert life.left is not None
    assert life.left["tasks"] == ["Executor.run"]
    assert life.outcome_at is not None
    assert life.saves[-1].new == ["publish"]
    assert life.saves[-1].began > life.outcome_at


class SavesNothing(mutants.Executor):
    """Has no save that could fail."""

    def around(self, store: Any) -> Any:
        class Quiet(mutants.Around):
            async def save(self, run_id: str, ctx: n00dles.PipelineContext) -> None:
                return

        return Quiet(store)


def test_a_store_fault_that_never_happens_is_vacuous() -> None:
    executor: Any = SavesNothing()

    report = explore(
        pipelines.chain, {"topic": "x"}, plans=[plan("refused@before-save:edit")], mode="in-process", executor=executor
    )

    assert report.rows[0].verdict is Verdict.VACUOUS
    assert "the disturbance refused@before-save:edit of life 1 did not happen" in report.rows[0].reason


def test_a_time_limit_is_not_offered_where_nothing_is_left_that_it_could_end() -> None:
    report = explore(pipelines.chain, {"topic": "x"}, mode="in-process", how="timeout")

    points = {str(row.point) for row in report.rows}
    assert "timeout@during:publish" in points
    assert "timeout@run-finished" not in points
    assert report.verdict is Verdict.PASS


def test_a_run_that_dies_before_there_is_a_record_is_run_from_its_start() -> None:
    before, after = lived("before-create"), lived("after-create")

    assert before[1].disk == {"exists": False, "nodes": []}
    assert (after[1].disk or {})["exists"]
    assert [call.node for life in before for call in life.calls] == ["draft", "edit", "publish"]


def test_more_lives_are_disturbed_in_all_the_given_ways() -> None:
    report = explore(
        pipelines.chain, {"topic": "x"}, mode="in-process", how=["cancel", "kill"], at=["after-save:edit"], lives=2
    )

    chains = {" ".join(map(str, row.plan)) for row in report.rows}
    assert {"cancel@after-save:edit before:publish", "after-save:edit cancel@before:publish"} <= chains
    assert report.verdict is Verdict.PASS


def test_a_run_that_has_finished_in_spite_of_a_fault_has_no_other_life_to_be_disturbed() -> None:
    report = explore(
        pipelines.chain, {"topic": "x"}, mode="in-process", how=["slow", "refused-once"], at=["edit"], lives=3
    )

    assert [" ".join(map(str, row.plan)) for row in report.rows] == [
        "refused-once@before-save:edit",
        "slow@before-save:edit",
    ]
    assert report.verdict is Verdict.PASS


def test_what_is_not_known_is_refused_with_what_is() -> None:
    with pytest.raises(ExplorationError, match="how='gently' is not known; choose of kill, interrupt, cancel"):
        explore(pipelines.chain, {"topic": "x"}, how="gently")


def test_what_completes_while_a_save_is_slow_may_be_stored_with_it() -> None:
    attempts: list[str] = []

    @n00dles.agent
    async def steady(text: str) -> str:
        await asyncio.sleep(0.005)
        return text

    @n00dles.agent(retry=n00dles.RetryPolicy(max_attempts=2))
    async def flaky(text: str) -> str:
        attempts.append(text)
        if len(attempts) % 2:
            raise ConnectionError("busy")
        await asyncio.sleep(0.01)
        return text

    loop = InnerLoop(n00dles.pipeline(steady | flaky, name="flow"), ReferenceExecutor(), {"text": "tea"})
    for point in loop.points([How.SLOW]):
        case = loop.case((point,))

        assert loop.vacuous(case, (point,)) == ""
        assert [fault for clause in JUDGED for fault in clause.faults(case)] == []


class Hesitating(n00dles.InMemoryStateStore):
    """Gives way before it saves, so that a cancellation comes first."""

    async def save(self, run_id: str, ctx: n00dles.PipelineContext) -> None:
        await asyncio.sleep(0)
        await super().save(run_id, ctx)


def test_what_a_cancelled_run_had_in_hand_is_not_there_for_the_next_process() -> None:
    loop = InnerLoop(pipelines.chain, ReferenceExecutor(), {"topic": "x"}, make_store=Hesitating)

    first, second = loop.case(plan("cancel@before-save:edit")).history.working

    assert first.outcomes[-1]["error"] == "CancelledError"
    assert second.stored == ["draft"]
    assert [call.node for call in second.calls] == ["edit", "publish"]
