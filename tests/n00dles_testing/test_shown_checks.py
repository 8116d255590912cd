"""What a check of a store shows in a log: one line a thing, each cause once, and why it ends as it does."""

from __future__ import annotations

import io

import pytest

from n00dles_testing.conformance.claims import Claims
from n00dles_testing.conformance.gaps import judge_gaps
from n00dles_testing.conformance.report import StoreReport, grade
from n00dles_testing.report.terminal import console_for
from n00dles_testing.show_check import print_report
from n00dles_testing.verdicts import ClauseResult, Finding, Verdict


def failed(clause: str, *messages: str) -> ClauseResult:
    findings = tuple(Finding(clause, each, (f"scenario of {clause}",), f"replay {clause}") for each in messages)
    return ClauseResult(clause, "a title", Verdict.FAIL, messages[0], len(messages), 0.1, findings)


def passed(clause: str) -> ClauseResult:
    return ClauseResult(clause, "a title", Verdict.PASS, "", 1, 0.1)


def report_of(*results: ClauseResult, claims: Claims | None = None) -> StoreReport:
    claims = claims or Claims()
    gaps = judge_gaps(claims.gaps, results, "claims.toml")
    return StoreReport("x:y", results, grade(results), ("a note",), 0, 1.0, claims, gaps=gaps)


def shown(report: StoreReport, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("COLUMNS", raising=False)
    console = console_for(io.StringIO())
    print_report(console, report)
    stream = console.file
    assert isinstance(stream, io.StringIO)
    return stream.getvalue()


def test_clauses_that_fail_by_one_error_tell_one_story(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [
        failed("S01", "save raised ProgrammingError: thread id 1391", "load raised ProgrammingError: thread id 77"),
        failed("S02", "save in another process raised ProgrammingError: thread id 12"),
        failed("S03", "save raised KeyError: 'writer'"),
        failed("S04", "save raised ProgrammingError: thread id 3"),
        failed("S05", "it is 'a', not 'b'"),
        failed("S06", "it is 'a', not 'b'"),
    ]

    text = shown(report_of(*results), monkeypatch)

    assert [line for line in text.splitlines() if line.startswith("  replay")] == [
        f"  replay   replay {clause}" for clause in ("S01", "S03", "S05", "S06")
    ]
    assert "  also in 1 more scenario, by the same error\n" in text
    assert "  also S02, S04, by the same error; --clause tells the story of each\n" in text


def test_in_a_log_no_sentence_is_broken_and_no_line_is_filled_with_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "a sentence that goes on " * 8 + "to its end"

    text = shown(report_of(failed("S01", long, long)), monkeypatch)

    assert f"S01  {long}\n" in text
    assert f"  also: scenario of S01: {long}\n" in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_a_long_value_is_cut_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    value = "976707a4 " * 20

    text = shown(report_of(failed("S09", f"the store's node is '{value}', not 'b'")), monkeypatch)

    cell = " ".join(text.partition("\nS09  ")[0].split())
    assert "the store's node is '976707a4 976707a4 976707a4 976707a4 9767…', not 'b'" in cell


def test_what_does_not_apply_is_not_counted_as_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    aside = [ClauseResult(id_, "a title", Verdict.NOT_APPLICABLE, "in memory", 0, 0.1) for id_ in ("C01", "C02")]
    not_run = ClauseResult("S13", "a title", Verdict.NOT_RUN, "no time", 0, 0.1)

    text = shown(report_of(passed("S01"), failed("S02", "it is lost"), not_run, *aside), monkeypatch)

    assert "\nof 2 clauses tried, 1 passed in 1.0 s; 2 do not apply; 1 was not run\n" in text


def test_a_run_in_which_nothing_passed_says_that_this_is_why_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of(failed("S10", "damage is taken for a first run"), claims=Claims(gaps={"S10": "old"}))

    text = shown(report, monkeypatch)

    assert not report.ok
    assert text.endswith("of 1 clause tried, 0 passed in 1.0 s\nfails: no clause passed, so nothing was shown\n")


def test_claimed_capabilities_that_were_not_probed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = Claims(capabilities=("durable", "load"))

    text = shown(report_of(passed("S01"), claims=claims), monkeypatch)

    assert "claimed: durable, load; not probed, since only a part was asked for\n" in text
