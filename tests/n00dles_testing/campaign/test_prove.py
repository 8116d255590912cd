"""A campaign against the executor of n00dles passes every clause; one against a wrong executor says what is wrong."""

from __future__ import annotations

import time
from functools import partial

import pytest
from hypothesis import settings

from n00dles_testing.campaign import CampaignError, CampaignProgress, prove
from n00dles_testing.campaign.stage import Stage
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
    report = prove(executors.TellsNobody(), examples=12, only=["E07", "E14"], confirm=False)

    assert {c.verdict for c in report.clauses if c.clause in ("E07", "E14")} == {Verdict.VACUOUS}
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
