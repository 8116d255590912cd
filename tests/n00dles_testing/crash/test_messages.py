"""What a report says to its reader, and what `check` says to who has mistyped something."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles import agent, pipeline
from n00dles_testing.crash import CrashSafety, ExplorationError, Point, explore
from n00dles_testing.verdicts import Verdict
from tests.n00dles_testing.crash import mutants, pipelines

_seen: list[str] = []


@agent
def remember(text: str) -> str:
    _seen.append(text)
    return text


@agent
def rely(remember: str) -> str:
    if not _seen:
        raise KeyError("nothing is remembered here")
    return remember


relying = pipeline(remember >> rely, name="relying")


@agent
def count(text: str) -> str:
    _seen.append(text)
    return f"{text} {len(_seen)}"


def test_one_point_may_be_given_as_a_text() -> None:
    report = CrashSafety().check(pipelines.chain, mode="in-process", at="after-save:edit", topic="x")

    assert [str(row.point) for row in report.rows] == ["after-save:edit"]


def test_a_report_that_is_printed_tells_what_is_wrong() -> None:
    report = explore(
        pipelines.chain,
        {"topic": "x"},
        mode="in-process",
        store=mutants.WholeStore(),
        executor=mutants.ForgetsTheLastNode(),
        at="after-save:edit",
    )

    text = str(report)

    assert "does not survive every kill" in text
    assert "life 1   draft ✓  saved  edit ✓  saved  ✗ simulated death after the save of edit" in text
    assert text.count("docs/reference/executor-clauses.md") == 1
    assert repr(report).startswith("<ExplorationReport of tests.n00dles_testing.crash.pipelines:chain: FAIL, ")
    assert str(report.rows[0]).startswith("FAIL after the save of edit")


def test_a_report_that_is_printed_says_so_if_all_is_well() -> None:
    report = explore(pipelines.chain, {"topic": "x"}, mode="in-process", budget=2)

    assert "survives every kill, 2 in all (store: memory://, mode: in-process)" in str(report)
    assert f"bodies ran {report.bodies} times" in str(report)
    assert "executor-clauses.md" not in str(report)


def test_bodies_are_counted_in_all_lives_of_all_runs() -> None:
    report = explore(pipelines.chain, {"topic": "x"}, mode="in-process", at="before:draft")

    undisturbed, probe, killed = 2 * 3, 3, 3
    assert report.bodies == undisturbed + probe + killed


def test_another_executor_is_an_option_of_a_check() -> None:
    safety = CrashSafety()

    with pytest.raises(AssertionError, match="FAIL E02"):
        safety.check(
            pipelines.chain, store=mutants.WholeStore(), executor=mutants.ForgetsTheLastNode(), at="edit", topic="x"
        )


def test_an_input_that_is_no_data_is_refused_by_name() -> None:
    with pytest.raises(ExplorationError, match=r"inputs\['topic'\].+A run keeps its inputs, so they have to be data"):
        CrashSafety().check(pipelines.chain, mode="in-process", topic=object())


def test_a_mistyped_option_is_named() -> None:
    with pytest.raises(ExplorationError, match=r"lifes= was taken for an input; did you mean the option lives="):
        CrashSafety().check(pipelines.chain, mode="in-process", topic="x", lifes=2)


def test_a_failure_of_a_resumed_run_says_where_it_was_raised() -> None:
    report = explore(relying, {"text": "x"}, mode="fork", at="after-save:remember")

    (finding,) = [finding for finding in report.findings if finding.clause == "E04"]
    line = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "raise KeyError(" in text)
    assert f"({__file__}, line {line}, in rely)" in finding.message
    assert "KeyError: 'nothing is remembered here'" in finding.message
    assert "resume(pipeline" not in str(finding)


def test_what_cannot_be_told_is_not_blamed_on_a_model_that_there_is_not() -> None:
    report = explore(pipeline(count, name="counting"), {"text": "x"}, mode="in-process", at="before:count")

    assert report.verdict is Verdict.UNKNOWN
    assert "LLM" not in report.unknown
    assert "or `count` reads something that an earlier run has changed (a file, a database, a global)" in report.unknown


def test_a_kill_in_a_node_that_there_is_no_more_names_the_nodes_that_there_are() -> None:
    report = explore(pipelines.chain, {"topic": "x"}, mode="in-process", plans=[(Point.parse("after:proofread"),)])

    (row,) = report.rows
    assert row.verdict is Verdict.VACUOUS
    assert "`proofread` is no node that is called now, those are `draft`, `edit`, " in row.reason


def test_a_budget_that_is_over_is_told_as_it_was_given() -> None:
    report = explore(pipelines.chain, {"topic": "x"}, mode="in-process", lives=2, budget="0.001s")

    assert any("the budget of 0.001s left no time for " in note for note in report.notes)
    assert any(note.endswith("scenarios in which 2 lives in a row are ended") for note in report.notes)
