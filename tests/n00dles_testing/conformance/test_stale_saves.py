"""S08: a stale save is refused or merged; what it may not do is told with the calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.verdicts import ClauseResult, Verdict

HOSTILE = Path(__file__).parent / "hostile_stores.py"
MUTANTS = "n00dles_testing.conformance.mutants.s08"
FILES, LOG, REVISIONS = correct_stores()[:3]


def s08_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["S08"]).results
    return result


@pytest.mark.parametrize(
    ("target", "end"),
    [
        (FILES, "of 13 stale saves 13 were merged"),
        (LOG, "of 13 stale saves 13 were merged"),
        (REVISIONS, "of 13 stale saves 13 were refused"),
        ("memory://", "of 12 stale saves 12 were refused"),
        (f"{HOSTILE}:KeepsTheFirstOutput", "of 13 stale saves 13 were merged"),
    ],
)
def test_a_stale_save_may_be_refused_or_merged_and_the_report_says_which(target: str, end: str) -> None:
    result = s08_of(target)

    assert (result.verdict, result.reason) == (Verdict.PASS, end)


@pytest.mark.parametrize(
    ("target", "scenario", "message"),
    [
        (f"{MUTANTS}:LastWriterWins", "two workers load a run, and each", "completed['writer'] is missing"),
        (f"{MUTANTS}:CountsInMemory", "a worker has loaded the run before", "completed['researcher'] is missing"),
        (f"{MUTANTS}:RefusesAndWrites", "two workers load a run, and each", "completed['critic'] is 'approved'"),
        (f"{MUTANTS}:TakesItsOwnRevision", "a worker that is six saves behind", "completed['node0'] is missing"),
        (f"{HOSTILE}:DropsStaleSaves", "two workers load a run, and each", "completed['critic'] is missing"),
    ],
)
def test_a_node_that_disappears_is_told_with_the_save_that_took_it(target: str, scenario: str, message: str) -> None:
    result = s08_of(target)

    assert result.verdict is Verdict.FAIL
    finding = result.findings[0]
    assert finding.story[0].startswith(f"scenario {scenario}")
    assert finding.message.startswith(message)
