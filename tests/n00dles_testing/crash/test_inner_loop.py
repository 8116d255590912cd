"""The inner loop: scenarios without a file, which say the same as those with one."""

from __future__ import annotations

from pathlib import Path

from n00dles_testing.crash.in_process import InProcess
from n00dles_testing.crash.inner_loop import InnerLoop
from n00dles_testing.crash.ledger import read_ledger
from n00dles_testing.crash.life import ReferenceExecutor
from n00dles_testing.crash.points import Point
from n00dles_testing.crash.scenario import PlannedRun
from tests.n00dles_testing.crash import pipelines


def test_a_plan_is_lived_to_the_end_of_the_run_and_can_be_judged() -> None:
    loop = InnerLoop(pipelines.chain, ReferenceExecutor(), {"topic": "x"})
    plan = (Point.parse("after-save:draft"), Point.parse("during:edit"))

    case = loop.case(plan)

    assert loop.vacuous(case, plan) == ""
    assert [life.stored for life in case.history.working] == [[], ["draft"], ["draft"]]
    assert case.history.outcome is not None
    assert case.history.outcome["output"] == case.baseline.outcome["output"]


def test_a_plan_that_does_not_come_true_is_vacuous() -> None:
    loop = InnerLoop(pipelines.chain, ReferenceExecutor(), {"topic": "x"})
    plan = (Point.parse("before:edit#2"),)

    assert "never passed there" in loop.vacuous(loop.case(plan), plan)


def test_a_ledger_in_memory_says_what_one_in_a_file_says(tmp_path: Path) -> None:
    backend = InProcess(pipelines.conversation, ReferenceExecutor())

    kept = []
    for path in ("", str(tmp_path / "ledger")):
        scenario = PlannedRun(path, "run", {"topic": "tea"}, "memory://", "", path, (Point.parse("run-finished"),))
        list(backend.play([scenario]))
        kept.append([(entry.kind, entry.life, entry.data) for entry in backend.entries(scenario)])

    in_memory, in_file = kept
    own = ("duration_ms", "elapsed_ms", "until", "store", "incarnation")  # of each run
    assert len(read_ledger(tmp_path / "ledger")) == len(in_memory) > 20
    for (kind, life, data), (its_kind, its_life, its_data) in zip(in_memory, in_file, strict=True):
        assert (kind, life) == (its_kind, its_life)
        assert {k: v for k, v in data.items() if k not in own} == {k: v for k, v in its_data.items() if k not in own}
