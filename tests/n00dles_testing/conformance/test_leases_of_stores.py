"""W07: what is tried of leases, where a store offers them, and what is said where it does not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.clauses import w07_leases
from n00dles_testing.conformance.expect import VacuousCheck
from n00dles_testing.verdicts import ClauseResult, Verdict

from .test_what_counts import subject_in

MUTANTS = "n00dles_testing.conformance.mutants"


def w07_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["W07"]).results
    return result


def scenarios_of(result: ClauseResult) -> list[str]:
    return [finding.story[0].removeprefix("scenario ") for finding in result.findings]


@pytest.mark.parametrize("target", ["sqlite:///runs.db", f"{MUTANTS}.correct_shared:SharedFiles"])
def test_leases_that_all_processes_see_pass(target: str) -> None:
    result = w07_of(target)

    assert (result.verdict, result.scenarios, result.reason) == (Verdict.PASS, 5, "")


def test_leases_in_the_memory_of_one_process_are_found_wherever_there_are_two() -> None:
    result = w07_of(f"{MUTANTS}.capabilities:ManagedFiles")

    assert result.verdict is Verdict.FAIL
    assert scenarios_of(result) == [
        "4 processes want one lease, 5 times each",
        "a lease is renewed, and released",
        "a holder is stopped, and another takes over",
        "the clocks of two workers are a day ahead and a day behind",
    ]


def test_a_store_without_leases_has_none_to_break() -> None:
    result = w07_of(f"{MUTANTS}.correct:JSONFiles")

    assert result.verdict is Verdict.NOT_APPLICABLE
    assert result.reason == "no leases: the store has no method acquire"


def test_leases_that_fail_their_probe_are_a_finding() -> None:
    result = w07_of(f"{MUTANTS}.capabilities:LeasesToAnybody")

    assert result.verdict is Verdict.FAIL
    assert "a second holder was given a lease" in result.reason
    assert result.scenarios == 1


def test_turns_that_nobody_had_to_wait_for_show_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def one_after_the_other(*_: Any) -> list[dict[str, Any]]:
        turns = [(float(at), at + 0.5) for at in range(5)]
        return [{"turns": turns, "refused": 0, "refusal": ""}]

    monkeypatch.setattr(w07_leases, "_take_turns", one_after_the_other)

    with pytest.raises(VacuousCheck, match="no process asked for the lease while another had it, in 3 attempts"):
        asyncio.run(w07_leases._one_holder(subject_in(tmp_path)))
