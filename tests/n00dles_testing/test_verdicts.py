"""The vocabulary of results: what may pass, what may not, and what survives JSON."""

from __future__ import annotations

import json

import pytest

from n00dles_testing.verdicts import ClauseResult, Finding, Verdict, overall


def test_a_result_with_no_scenario_behind_it_is_never_a_pass() -> None:
    empty = ClauseResult("E02", "no completed node is called again", Verdict.PASS, scenarios=0)

    tried = ClauseResult("E02", "no completed node is called again", Verdict.PASS, scenarios=1)

    assert empty.verdict is Verdict.VACUOUS
    assert "no scenario" in empty.reason
    assert not empty.ok
    assert tried.verdict is Verdict.PASS


@pytest.mark.parametrize("verdict", list(Verdict))
def test_only_fail_and_vacuous_end_badly(verdict: Verdict) -> None:
    assert verdict.ok == (verdict not in ("FAIL", "VACUOUS"))


def test_many_verdicts_are_as_good_as_the_worst_and_none_at_all_is_vacuous() -> None:
    assert overall([]) is Verdict.VACUOUS
    assert overall([Verdict.PASS, Verdict.NOT_RUN]) is Verdict.PASS
    assert overall([Verdict.NOT_RUN, Verdict.NOT_APPLICABLE]) is Verdict.NOT_RUN
    assert overall([Verdict.PASS, Verdict.VACUOUS, Verdict.UNKNOWN]) is Verdict.VACUOUS
    assert overall([Verdict.VACUOUS, Verdict.FAIL]) is Verdict.FAIL


def test_a_result_comes_back_from_json_as_it_was() -> None:
    finding = Finding(
        "E02", "`writer` was called again.", ("life 1  writer saved", "life 2  writer AGAIN"), "replay me"
    )
    result = ClauseResult("E02", "no re-calls", Verdict.FAIL, "1 of 3 scenarios", 3, 0.5, (finding,))

    again = ClauseResult.from_dict(json.loads(json.dumps(result.to_dict())))

    assert again == result
    assert again.findings[0].story == ("life 1  writer saved", "life 2  writer AGAIN")


def test_a_finding_prints_its_story_and_the_command_that_shows_it_again() -> None:
    finding = Finding("E02", "`writer` was called again.", ("life 1  writer saved",), "n00dles-testing explore x:y")

    text = str(finding)

    assert text.splitlines() == [
        "E02  `writer` was called again.",
        "  life 1  writer saved",
        "  replay   n00dles-testing explore x:y",
    ]
