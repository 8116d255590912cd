"""Pipelines that call models, killed between payment and reply, and what the fake server was paid for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles_testing.crash import ExplorationReport, explore
from n00dles_testing.llm import LLMServer
from n00dles_testing.verdicts import Verdict
from tests.n00dles_testing.crash import mutants, pipelines

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


@pytest.fixture(scope="module")
def content() -> ExplorationReport:
    """Return the exploration of the article's pipeline through the official SDK over HTTP."""
    with LLMServer() as server:
        return explore(
            f"{EXAMPLES / 'content.py'}:content_pipeline",
            {"topic": "agentic search"},
            environment=server.environment_of,
            paid=lambda scenario: len(server.journal(scenario)),
        )


def test_every_point_is_killed_by_signal_9_with_no_re_call_and_the_same_output(content: ExplorationReport) -> None:
    assert len(content.rows) == 21
    assert {row.killed_by for row in content.rows} == {9}
    assert {row.recalled for row in content.rows} == {()}
    assert {row.same_output for row in content.rows} == {True}
    assert content.verdict is Verdict.PASS


def test_what_is_paid_is_one_call_more_only_if_a_call_was_in_flight(content: ExplorationReport) -> None:
    paid = {str(row.point): row.paid for row in content.rows}

    assert content.paid == 3
    assert {point for point, count in paid.items() if count == 4} == {
        f"{kind}:{node}" for kind in ("during", "after", "before-save") for node in ("researcher", "writer", "editor")
    }
    assert {count for count in paid.values() if count != 4} == {3}


def test_a_process_that_dies_during_a_call_has_been_counted_by_the_server(content: ExplorationReport) -> None:
    row = next(row for row in content.rows if str(row.point) == "during:writer")

    assert row.story == (
        "life 1   researcher ✓  saved  writer …  ✗ SIGKILL during writer (the LLM has been paid and has not replied)",
        "on disk  researcher",
        "life 2   writer ✓  saved  editor ✓  saved  finished",
        "again    called nothing  finished",
    )


def test_one_count_for_all_scenarios_is_enough_when_they_do_not_overlap() -> None:
    with LLMServer() as server:
        report = explore(
            f"{EXAMPLES / 'content.py'}:content_pipeline",
            {"topic": "agentic search"},
            environment=server.environment,
            paid=lambda scenario: len(server.journal()),
            at=["writer"],
            workers=2,
        )

    assert report.workers == 1
    assert [row.paid for row in report.rows] == [3, 4, 4, 4, 3]
    assert report.verdict is Verdict.PASS


def test_without_a_server_a_model_dies_with_its_reply_and_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("N00DLES_LLM_CONTROL", raising=False)

    report = explore(pipelines.conversation, {"topic": "x"}, mode="fork", at=["during:ask"])

    assert report.rows[0].killed_by == 9
    assert "(the LLM has been paid and its reply is not used)" in report.rows[0].story[0]
    assert any("there is no local LLM server" in note for note in report.notes)


def test_a_server_that_does_not_see_the_calls_is_not_relied_on() -> None:
    report = explore(pipelines.conversation, {"topic": "x"}, mode="fork", at=["after:ask"], paid=lambda scenario: 0)

    assert any("does not see them all" in note for note in report.notes)


def test_in_a_fan_out_the_request_of_the_node_that_is_meant_is_the_one_that_dies() -> None:
    scenarios: set[str] = set()

    def counted(scenario: str) -> int:
        scenarios.add(scenario)
        return len(server.journal(scenario))

    with LLMServer() as server:
        report = explore(
            pipelines.chorus,
            {"topic": "tea"},
            mode="fork",
            environment=server.environment_of,
            paid=counted,
            at=["during"],
        )
        killed = [call.system for scenario in scenarios for call in server.journal(scenario) if call.killed]

    assert report.verdict is Verdict.PASS
    assert [row.point.subject for row in report.rows] == ["soprano", "alto", "tenor"]
    assert sorted(killed) == ["Sing alto.", "Sing soprano.", "Sing tenor."]


def test_without_a_key_and_with_a_sibling_s_request_on_its_way_the_kill_shows_nothing() -> None:
    with LLMServer() as server:
        report = explore(
            pipelines.chorus,
            {"topic": "tea"},
            mode="fork",
            environment=server.environment_of,
            executor=f"{mutants.__file__}:offers_no_key",
            at=["during:tenor"],
        )

    (row,) = report.rows
    assert row.verdict is Verdict.VACUOUS
    assert "hit the request that was meant cannot be told: `alto`, `soprano` sent one at the same time" in row.reason


def test_a_model_that_refuses_is_killed_in_that_request_and_nobody_waits_for_the_next_attempt() -> None:
    report = explore(pipelines.insisting, {"topic": "x"}, mode="fork", at=["during:insist", "during:insist#2"])

    assert [(str(row.point), row.killed_by) for row in report.rows] == [("during:insist", 9), ("during:insist#2", 9)]
    assert "(the LLM call has raised, and its error is not used)" in report.rows[0].story[0]
    assert report.verdict is Verdict.PASS
    assert report.seconds < 15  # one back-off alone would take longer
