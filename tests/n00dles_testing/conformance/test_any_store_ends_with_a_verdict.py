"""Whatever a store does to its process, each clause ends with a verdict, and the others still run."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles.errors import ConfigurationError
from n00dles_testing.conformance import StoreReport, check_store
from n00dles_testing.verdicts import ClauseResult, Verdict

HERE = Path(__file__).parent
S_CLAUSES = ["S01", "S02", "S05"]


def check(name: str, clauses: list[str], limit: float = 10) -> StoreReport:
    return check_store(f"{HERE / 'hostile_stores.py'}:{name}", clauses=clauses, limit=limit)


def results(report: StoreReport) -> dict[str, ClauseResult]:
    return {result.clause: result for result in report.results}


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("Exits", "save raised SystemExit: the store has had enough"),
        ("Raises", "save raised ValueError: no None here, please"),
        ("CancelsItself", "save raised CancelledError"),
        ("KillsTheProcess", "the store's process ended with exit status 7, during: save("),
    ],
)
def test_a_store_that_raises_or_exits_fails_where_it_did(store: str, message: str) -> None:
    found = results(check(store, S_CLAUSES))

    assert {clause: result.verdict for clause, result in found.items()} == {
        "S01": Verdict.PASS,
        "S02": Verdict.FAIL,
        "S05": Verdict.PASS,
    }
    assert found["S02"].reason.startswith(message)


@pytest.mark.parametrize("store", ["HangsInAThread", "BlocksTheLoop", "NeverAnswers"])
def test_a_store_that_hangs_is_killed_at_the_limit(store: str) -> None:
    found = results(check(store, S_CLAUSES, limit=2))

    assert [result.verdict for result in found.values()] == [Verdict.PASS, Verdict.FAIL, Verdict.PASS]
    assert found["S02"].reason.startswith("the store did not answer within 2 s, and was killed, during: save(")
    assert 2 <= (found["S02"].seconds or 0) < 5


@pytest.mark.parametrize("store", ["HangsInAThread", "BlocksTheLoop"])
def test_the_story_of_a_hang_says_where_it_hangs(store: str) -> None:
    found = results(check(store, ["S02"], limit=2))

    [finding] = found["S02"].findings
    assert finding.story[0] == "scenario an output: None"
    assert any("hostile_stores.py" in line and "in misbehave" in line for line in finding.story), finding.story


def test_what_a_process_printed_before_it_ended_is_told() -> None:
    found = results(check("KillsTheProcess", ["S02"]))

    assert "printed  about to go" in found["S02"].findings[0].story


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("ReturnsNone", "the store returned None instead of the run"),
        ("ReturnsARunWithoutOrder", "the store returned a dict without 'order'"),
    ],
)
def test_a_reply_that_is_no_run_fails(store: str, message: str) -> None:
    found = results(check(store, S_CLAUSES))

    assert {result.verdict for result in found.values()} == {Verdict.FAIL}
    assert {result.reason for result in found.values()} == {message}


def test_a_store_that_prints_is_checked_all_the_same() -> None:
    report = check("Prints", ["S01", "C01"])

    assert [result.verdict for result in report.results] == [Verdict.PASS, Verdict.PASS]
    assert "and straight to the descriptor" in report.notes[-1]


def test_threads_left_behind_keep_nothing_from_ending() -> None:
    report = check("LeaksThreads", ["S01", "C01", "C02"])

    assert [result.verdict for result in report.results] == [Verdict.PASS, Verdict.PASS, Verdict.PASS]


def test_what_a_clause_leaves_running_is_not_held_against_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("n00dles_testing.conformance.runner._TIME_TO_SETTLE", 0.3)

    report = check("LeavesAJobInTheLoopsOwnExecutor", ["S01", "S05"], limit=5)

    assert [result.verdict for result in report.results] == [Verdict.PASS, Verdict.PASS]


def test_a_slow_store_is_not_taken_for_one_that_hangs() -> None:
    [result] = check("TakesItsTime", ["S02"], limit=1).results

    assert result.verdict is Verdict.PASS
    assert (result.seconds or 0) > 1


def test_a_clause_that_never_comes_to_its_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("n00dles_testing.conformance.runner._CALLS_WORTH", 1)

    [result] = check("TakesItsTime", ["S02"], limit=1).results

    assert result.verdict is Verdict.FAIL
    assert result.reason.startswith("the clause was not through after 1 s, and was killed")


def test_a_close_that_raises_fails() -> None:
    found = results(check("CannotBeClosed", ["C01"]))

    assert found["C01"].reason == "close raised OSError: still busy"


def test_a_module_that_can_be_imported_once_only_fails_and_ends(tmp_path: Path) -> None:
    (tmp_path / "once.py").write_text(
        "import os, pathlib\n"
        "from n00dles_testing.conformance.mutants.correct import JSONFiles\n"
        f"pathlib.Path({str(tmp_path)!r}, 'imported').touch(exist_ok=False)\n"
        "class Dies(JSONFiles):\n"
        "    def save(self, run_id, context):\n"
        "        os._exit(3)\n"
    )

    report = check_store(f"{tmp_path / 'once.py'}:Dies", clauses=["S02", "S05"])

    assert [result.verdict for result in report.results] == [Verdict.FAIL, Verdict.FAIL]
    assert "the store could not be opened in a new process: " in report.results[1].reason
    assert "FileExistsError" in report.results[1].reason


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("raises", "opening the store raised RuntimeError: no database today"),
        ("exits", "opening the store raised SystemExit: 4"),
        ("kills_the_process", "its process ended with exit status 5"),
        ("hangs", "did not return within 2 s (it is at "),
        ("gives_none", "None is no state store: it has no method load_or_create, save, delete"),
        ("gives_half_a_store", "it has no method load_or_create, delete"),
        ("needs_more", "requires 2 arguments (location, password)"),
        ("not_callable", "is a int"),
        ("missing", "has no 'missing'"),
    ],
)
def test_a_target_that_cannot_be_opened_is_told_at_once(factory: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check(factory, [], limit=2)

    assert message in str(caught.value)
