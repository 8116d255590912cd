"""W09: what is tried of retention, where a store offers it, and what is said where nothing could be shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.clauses import w09_retention
from n00dles_testing.conformance.expect import MisuseError, VacuousCheck
from n00dles_testing.conformance.subject import StoreSubject
from n00dles_testing.verdicts import ClauseResult, Verdict

from .test_what_counts import subject_in

MUTANTS = "n00dles_testing.conformance.mutants"


def w09_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["W09"]).results
    return result


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[StoreSubject]:
    subject = subject_in(tmp_path, f"{MUTANTS}.correct_shared:SharedFiles")
    yield subject
    subject.nursery().close()


def test_a_store_that_looks_and_removes_in_one_step_passes() -> None:
    result = w09_of("sqlite:///runs.db")

    assert (result.verdict, result.reason) == (Verdict.PASS, "")
    assert result.scenarios >= 2  # on a busy machine a prune may meet no run at the first attempt


def test_a_store_without_prune_has_nothing_to_break() -> None:
    result = w09_of(f"{MUTANTS}.correct:JSONFiles")

    assert (result.verdict, result.reason) == (Verdict.NOT_APPLICABLE, "no prune: the store has no method prune")


def test_a_prune_that_removes_what_is_not_finished_fails_by_its_probe() -> None:
    result = w09_of(f"{MUTANTS}.capabilities:PrunesByAge")

    assert (result.verdict, result.reason) == (Verdict.FAIL, "prune removed a run that was not finished")


def test_prunes_that_remove_nothing_beside_the_traffic_show_nothing(
    subject: StoreSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing_to_remove(*_: Any) -> list[str]:
        await asyncio.sleep(0.01)
        return []

    monkeypatch.setattr(w09_retention, "_prune", nothing_to_remove)
    monkeypatch.setattr(w09_retention, "_ATTEMPTS", ((2, 0.0), (2, 0.0)))

    with pytest.raises(VacuousCheck, match="no prune has removed anything while the others were at work"):
        asyncio.run(w09_retention._beside_traffic(subject))


def test_prunes_that_remove_nothing_at_first_are_tried_again(
    subject: StoreSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    async def removes_at_the_sixth_attempt(_: StoreSubject, runs: int, pause: float) -> bool:
        tried.append((runs, pause))
        return len(tried) == 6

    monkeypatch.setattr(w09_retention, "_beside_traffic_with", removes_at_the_sixth_attempt)

    asyncio.run(w09_retention._beside_traffic(subject))

    assert tried == sorted(tried)
    assert len(tried) == 6


def test_a_machine_too_busy_to_tell_young_from_old_is_not_held_against_the_store(
    subject: StoreSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(w09_retention, "_GAPS", (0.7, 0.8))

    with pytest.raises(MisuseError, match="run the check again"):
        asyncio.run(w09_retention._old_and_finished(subject))
    assert subject.findings == []
