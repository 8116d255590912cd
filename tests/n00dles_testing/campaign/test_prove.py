"""A campaign against the executor of n00dles passes every clause; one against a wrong executor says what is wrong."""

from __future__ import annotations

import re
import time
from functools import partial
from typing import Any, cast

import pytest
from hypothesis import settings

from n00dles_testing.campaign import CampaignError, CampaignProgress, CampaignToken, prove, replay
from n00dles_testing.campaign.families import SCOUTS
from n00dles_testing.campaign.family import Judgement, Trial
from n00dles_testing.campaign.search import Search
from n00dles_testing.campaign.stage import Stage
from n00dles_testing.strategies import NodeSpec, PipelineSpec
from n00dles_testing.verdicts import Verdict
from tests.n00dles_testing.campaign import executors

EXAMPLES = {"deep": 10_000}.get(settings.get_current_profile_name(), 500)


def test_the_executor_of_n00dles_keeps_every_clause() -> None:
    report = prove(examples=EXAMPLES)

    assert [str(finding) for finding in report.findings] == []
    assert {clause.clause: clause.verdict.value for clause in report.clauses} == {
        f"E{number:02}": "PASS" for number in range(1, 19)
    }
    assert report.scenarios >= EXAMPLES
    assert set(report.disturbances) == {
        *("kill", "interrupt", "cancel", "timeout"),
        *("refused", "reply-lost", "refused-once", "reply-lost-once", "slow"),
    }


def test_an_executor_that_is_wrong_every_time_does_not_pass_for_being_consistent() -> None:
    report = prove(executors.AlwaysReturnsText(), examples=60, only=["E04"], shrink_seconds=5, confirm=False)

    assert report.broken == {"E04"}
    assert "told from the pipeline alone" in str(report.findings[0])


def test_a_member_that_is_never_run_is_missed_though_no_life_runs_it() -> None:
    report = prove(executors.AlwaysDropsTheLastMember(), examples=150, only=["E06"], shrink_seconds=5, confirm=False)

    assert report.broken == {"E06"}
    assert report.sizes["E06"] <= 3


def test_a_clause_without_an_occasion_is_vacuous_and_no_pass() -> None:
    report = prove(examples=1, only=["E07", "E11"], confirm=False)

    assert {c.verdict for c in report.clauses if c.clause in ("E07", "E11")} == {Verdict.VACUOUS}
    assert {c.reason for c in report.clauses if c.clause == "E01"} == {"not asked for"}
    assert not report.ok


def test_a_fault_is_told_with_the_smallest_pipeline_a_story_and_a_replay() -> None:
    report = prove("tests.n00dles_testing.campaign.executors:forgets_what_was_stored", examples=60, only=["E02"])

    (finding,) = report.findings
    assert report.sizes == {"E02": 2}
    assert finding.message.startswith("`a` was called again in life 2")
    assert finding.story[0].startswith("pipeline pipeline(a >> b")
    assert finding.story[-1] == "seen     in this process, and again in processes of their own, killed for real"
    assert (finding.replay or "").startswith("n00dles-testing replay c1")


def test_the_same_seed_draws_the_same_scenarios_and_another_seed_draws_others() -> None:
    def doings(seed: int) -> list[str]:
        told: list[CampaignProgress] = []
        prove(examples=30, seed=seed, only=["E02"], on_progress=told.append)
        return [each.doing for each in told]

    first, second, other = doings(3), doings(3), doings(4)

    assert first == second
    assert first != other


@pytest.mark.parametrize(
    ("executor", "told"),
    [
        (executors.ReturnsNone(), "run returned a NoneType, and no RunResult"),
        (executors.Exits(), "SystemExit: 3"),
        (executors.Hangs(), "did not end within its limit"),
    ],
    ids=["no result", "an exit", "a hang"],
)
def test_an_executor_that_does_not_run_at_all_is_at_fault_and_ends_no_campaign(
    executor: executors.Executor, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("n00dles_testing.campaign.campaign.Stage", partial(Stage, time_limit=0.2))

    report = prove(executor, examples=40, confirm=False, shrink_seconds=0)

    (finding,) = report.findings
    assert finding.clause == "E04"
    assert told in finding.message
    assert report.ok is False


def test_a_budget_ends_a_campaign_in_time() -> None:
    begun = time.monotonic()

    report = prove(budget=1.0, only=["E02"])

    assert time.monotonic() - begun < 10
    assert report.scenarios > 0


@pytest.mark.parametrize(
    ("executor", "told"),
    [
        (executors.TakesNoObservers(), "run cannot be called: got an unexpected keyword argument 'observers'"),
        (executors.PassesOnTheWrongWay(), "run cannot be called: TakesNoObservers.run() got an unexpected keyword"),
        (executors.IsNotAsync(), "run is no `async def`"),
        (executors.BlocksItsLoop(), "run is no `async def`"),
    ],
    ids=["no parameter", "no parameter further in", "a plain def", "a loop in a loop"],
)
def test_an_executor_that_cannot_be_called_is_told_what_it_is_called_with(executor: Any, told: str) -> None:
    with pytest.raises(CampaignError) as caught:
        prove(executor, examples=10, only=["E07"])

    assert told in str(caught.value)
    assert "async def run(self, pipeline, *, run_id, store, observers, inputs)" in str(caught.value)
    assert "async def resume(self, pipeline, *, run_id, store, observers)" in str(caught.value)


def test_an_executor_that_tells_its_observers_nothing_is_told_so() -> None:
    with pytest.raises(CampaignError) as caught:
        prove(executors.TellsNobody(), examples=10, only=["E07"])

    assert "no event arrived" in str(caught.value)
    assert "NodeStarted" in str(caught.value)


def test_a_clause_is_never_broken_more_often_than_it_was_tried() -> None:
    report = prove(executors.AlwaysReturnsText(), examples=60, confirm=False, shrink_seconds=0)

    broken = {c.clause: (int(c.reason.split()[2]), c.scenarios) for c in report.clauses if c.clause in report.broken}
    assert "E04" in broken
    assert all(0 < faulty <= tried for faulty, tried in broken.values())


def test_what_breaks_a_clause_counts_as_what_could_have_broken_it() -> None:
    fault = ("E11", "`a` was called 3 times", "")
    search = Search(SCOUTS, cast(Any, None), seed=0)

    search._take(Trial("lives", PipelineSpec((NodeSpec("a", "str"),))), Judgement([fault], {"E11": 0}))

    assert search.tally.behind["E11"] == 1


def test_an_object_is_called_what_its_module_calls_it_and_its_replay_is_of_it() -> None:
    report = prove(executors.forgets_what_was_stored, examples=60, only=["E02"], shrink_seconds=20)

    (finding,) = report.findings
    assert report.executor == "tests.n00dles_testing.campaign.executors:forgets_what_was_stored"
    assert finding.story[-1] == "seen     in this process, and again in processes of their own, killed for real"
    token = CampaignToken.decode((finding.replay or "").split()[-1])
    assert token.executor == report.executor
    assert replay(token, confirm=False).broken == {"E02"}


def test_an_object_that_no_module_names_has_no_replay_and_is_not_taken_for_another() -> None:
    report = prove(executors.ForgetsWhatWasStored(), examples=60, only=["E02"], shrink_seconds=2)

    (finding,) = report.findings
    assert report.executor == "an object of tests.n00dles_testing.campaign.executors.ForgetsWhatWasStored"
    assert finding.replay is None
    told = "\n".join(finding.story)
    assert "in this process only: another one cannot import it" in told
    assert "no replay: no module has this executor at its top level" in told
    assert "prove('executors.py:executor')" in told


def test_an_executor_that_calls_the_body_of_a_model_is_told_of_its_provider() -> None:
    report = prove(executors.CallsTheBodiesOfModels(), examples=150, confirm=False, shrink_seconds=3)

    assert any("has a model" in str(each) and "resolve_provider().complete(" in str(each) for each in report.findings)


def test_a_report_can_be_read() -> None:
    report = prove(executors.forgets_what_was_stored, examples=60, only=["E01", "E02"], confirm=False, shrink_seconds=2)

    lines = str(report).splitlines()

    assert lines[0].startswith("tests.n00dles_testing.campaign.executors:forgets_what_was_stored: FAIL, ")
    assert any(line.split()[:2] == ["E01", "PASS"] for line in lines)
    assert any(line.startswith("E02  FAIL ") and "scenarios: broken in " in line for line in lines)
    assert any(re.match(r"E02  `\w+` was called again in life \d", line) for line in lines)
    assert "n00dles-testing replay c1" in str(report)


def test_a_budget_bounds_the_shrinking_too_and_says_what_is_being_shrunk() -> None:
    told: list[str] = []
    begun = time.monotonic()

    report = prove(
        executors.AlwaysReturnsText(), budget=4.0, confirm=False, on_progress=lambda each: told.append(each.doing)
    )

    assert time.monotonic() - begun < 8
    assert report.broken
    shrunk = [each for each in dict.fromkeys(told) if each.startswith("shrinking")]
    in_turn = [
        f"shrinking {clause} ({number} of {len(report.broken)})"
        for number, clause in enumerate([finding.clause for finding in report.findings], 1)
    ]
    # On a busy machine the budget may be over before the last one's turn.
    assert shrunk
    assert shrunk == in_turn[: len(shrunk)]


@pytest.mark.parametrize(
    ("executor", "options", "told"),
    [
        (None, {"examples": 0}, "examples=0 tries nothing"),
        (None, {"only": ["E19"]}, "there is no clause E19"),
        (executors.not_an_executor, {}, "needs the methods run and resume"),
        (executors.Executor, {}, "is a class; name an object of it: executor = Executor()"),
        ("tests.n00dles_testing.campaign.executors:nobody", {}, "nobody"),
    ],
)
def test_what_cannot_be_proven_is_an_error_and_no_empty_report(
    executor: object, options: dict[str, object], told: str
) -> None:
    with pytest.raises(CampaignError) as caught:
        prove(executor, **options)  # type: ignore[arg-type]

    assert told in str(caught.value)
