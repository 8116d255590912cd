"""S14: that a cancellation met a save is proven, and what a store may do with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.cancelling import Moment, When, cancel_a_save, time_a_save
from n00dles_testing.conformance.clauses import s14_cancelled
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.verdicts import ClauseResult, Verdict

from .test_what_counts import judged

STORES = Path(__file__).parent / "cancelled_stores.py"
MUTANTS = "n00dles_testing.conformance.mutants.s14"


def s14_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["S14"]).results
    return result


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (f"{MUTANTS}:SavesInTheBackground", "completed['b'] is 'short', and should not be there"),
        (f"{MUTANTS}:SavesLaterIfNobodyElseDoes", "completed['b'] is 'short', and should not be there"),
        (f"{STORES}:LandsFromItsThread", "completed['b'] is 'short', and should not be there"),
        (f"{STORES}:StaysLocked", "after a cancelled save, save has not returned within 5 s"),
        (f"{MUTANTS}:AnswersTheQuestionBefore", "the store returned None instead of the run"),
        (f"{STORES}:LeavesItsThread", "completed['"),
        (f"{STORES}:ReturnsWithoutSaving", "completed['b'] is missing"),
        (f"{STORES}:WritesInTwoSteps", "completed['"),
        (f"{STORES}:NeverEnds", "a cancelled save has not ended within 5 s"),
    ],
)
def test_a_cancelled_save_that_is_late_half_or_in_the_way_is_found(target: str, message: str) -> None:
    result = s14_of(target)

    assert result.verdict is Verdict.FAIL
    assert result.findings[0].message.startswith(message)
    assert any("cancelled" in line for line in result.findings[0].story[1:])


@pytest.mark.parametrize("store", ["WaitsForItsThread", "ReturnsAllTheSame", "RaisesItsOwnError"])
def test_a_cancelled_save_may_be_done_or_not_done(store: str) -> None:
    result = s14_of(f"{STORES}:{store}")

    assert (result.verdict, result.reason) == (Verdict.PASS, "")


@pytest.mark.parametrize("target", ["memory://", f"{STORES}:GivesWayToNothing"])
def test_a_save_that_gives_way_to_nothing_is_cancelled_before_or_after(target: str) -> None:
    result = s14_of(target)

    assert result.verdict is Verdict.PASS
    assert result.reason == "a save gives way to nothing in the event loop: a cancellation comes before it, or after it"


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("target", correct_stores(), ids=lambda target: target.rpartition(":")[2])
def test_no_correct_store_fails_whatever_is_drawn(target: str, seed: int) -> None:
    [result] = check_store(target, clauses=["S14"], seed=seed).results

    assert (result.verdict, result.scenarios) == (Verdict.PASS, 6)


@pytest.mark.parametrize(
    ("moment", "is_hit"),
    [
        (Moment(When.BEFORE), False),
        (Moment(When.WAITS, 1), True),
        (Moment(When.WAITS, 9), False),
        (Moment(When.IS_OVER, 1), True),
        (Moment(When.LIMIT, part=0.0), True),
    ],
)
def test_a_hit_is_a_cancellation_that_the_store_was_given(moment: Moment, is_hit: bool, tmp_path: Path) -> None:
    came = []

    async def check(subject: Any) -> None:
        async with subject.scenario("one save") as s:
            handle = await s.create()
            assert (await time_a_save(s, handle, {"a": 1}))[0] >= 1
            came.append(await cancel_a_save(s, handle, {"b": 1}, moment, limit=60))
            s.expect(None).equals(None, because="")

    result = judged(check, tmp_path)

    assert result.verdict is Verdict.PASS, result.reason
    assert came[0].is_hit is is_hit
    assert came[0].is_acknowledged is (moment.at == 9)


def test_cancellations_that_no_save_was_given_are_vacuous(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def without_a_hit(*arguments: Any, **options: Any) -> Any:
        came = await cancel_a_save(*arguments, **options)
        return type(came)(came.awaits, False, came.is_acknowledged)

    monkeypatch.setattr(f"{s14_cancelled.__name__}.cancel_a_save", without_a_hit)

    result = judged(s14_cancelled.cancelled_saves, tmp_path)

    assert result.verdict is Verdict.VACUOUS
    assert result.reason.endswith("saves were under way when they were cancelled, and none of them noticed")
