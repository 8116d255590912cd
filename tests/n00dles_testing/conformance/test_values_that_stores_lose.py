"""S02 on values that stores lose: what every store must hold, and what it may refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.verdicts import ClauseResult, Verdict

HERE = Path(__file__).parent
MUTANTS = "n00dles_testing.conformance.mutants.s02"


def s02_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["S02"]).results
    return result


def hostile(name: str) -> str:
    return f"{HERE / 'hostile_stores.py'}:{name}"


def test_a_refusal_of_what_a_database_has_no_room_for_is_told_and_is_no_fault() -> None:
    result = s02_of(hostile("RefusesWhatItCannotHold"))

    assert result.verdict is Verdict.PASS
    assert "the store refuses to save text with a NUL" in result.reason
    assert "the store refuses to save 2**63" in result.reason
    assert result.reason.count("refuses") == 2


def test_a_refused_save_that_was_written_all_the_same_is_a_fault() -> None:
    result = s02_of(hostile("RefusesAndWritesAllTheSame"))

    assert result.verdict is Verdict.FAIL
    assert result.findings[0].story[-1].endswith("the save was refused, so the run stays as it was")


def test_a_refusal_of_what_every_store_must_hold_is_a_fault() -> None:
    result = s02_of(hostile("RefusesSpaces"))

    assert result.verdict is Verdict.FAIL
    assert result.findings[0].message == "save raised ValueError: white space"


@pytest.mark.parametrize(
    ("mutant", "scenario", "message"),
    [
        (
            "StripsTexts",
            "scenario an output and an input: a text of one space",
            "inputs['text'] is '', not ' '",
        ),
        (
            "RoundsToDoubles",
            "scenario an output, or a refusal: 2**53 + 1",
            "completed['node'] is 9007199254740992, not 9007199254740993",
        ),
    ],
)
def test_a_lost_value_is_told_as_the_calls_and_the_difference(mutant: str, scenario: str, message: str) -> None:
    finding = s02_of(f"{MUTANTS}:{mutant}").findings[0]

    assert (finding.story[0], finding.message) == (scenario, message)
    assert any("save(" in line and line.endswith("→ acknowledged") for line in finding.story)


@pytest.mark.parametrize(
    ("store", "scenario"),
    [
        ("MakesLineEndsOne", "scenario an output, or a refusal: 100 KB of lines that end with CRLF, CR and LF"),
        ("CutsInputs", "scenario inputs, or a refusal: 100 KB of lines that end with CRLF, CR and LF"),
        ("CutsNamesOfInputs", "scenario inputs, or a refusal: names that differ behind 64 characters"),
        ("KeepsTwoHundredRuns", "scenario 210 runs beside each other"),
    ],
)
def test_what_only_long_texts_long_names_or_many_runs_show_is_found(store: str, scenario: str) -> None:
    result = s02_of(hostile(store))

    assert result.verdict is Verdict.FAIL
    assert result.findings[0].story[0] == scenario


def test_inputs_that_are_too_long_may_be_refused_and_the_report_says_so() -> None:
    result = s02_of(hostile("RefusesLongInputs"))

    assert result.verdict is Verdict.PASS
    assert "the store refuses to create a run with names that differ behind 255 characters" in result.reason
