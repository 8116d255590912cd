"""Whatever a store does to its process, each clause ends with a verdict, and the others still run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from n00dles.errors import ConfigurationError
from n00dles_testing.conformance import StoreReport, check_store, implemented
from n00dles_testing.conformance.processes import HelperProcess
from n00dles_testing.conformance.runner import Runner, open_runner
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
    assert 2 <= (found["S02"].seconds or 0) < 60


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


SLOW = """
import time
from n00dles_testing.conformance.mutants.correct import JSONFiles

class Slow(JSONFiles):
    def load_or_create(self, run_id, inputs):
        time.sleep({seconds})
        return super().load_or_create(run_id, inputs)

    def save(self, run_id, context):
        time.sleep({seconds})
        super().save(run_id, context)
"""


def slow_store(folder: Path, seconds: float) -> str:
    (folder / "slow.py").write_text(SLOW.format(seconds=seconds))
    return f"{folder / 'slow.py'}:Slow"


@pytest.mark.parametrize("clause", ["S10", "S13", "S16", "S18"])
def test_a_procedure_of_many_calls_may_take_longer_than_a_call(tmp_path: Path, clause: str) -> None:
    [result] = check_store(slow_store(tmp_path, 0.15), clauses=[clause], limit=3).results

    assert result.verdict in (Verdict.PASS, Verdict.NOT_RUN), result.reason
    assert (result.seconds or 0) > 1


def test_a_clause_that_is_not_through_in_its_time_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("n00dles_testing.conformance.runner.CALLS_WORTH", 0.3)

    [result] = check_store(slow_store(tmp_path, 0.2), clauses=["S02"]).results

    assert result.verdict is Verdict.NOT_RUN
    assert result.reason.startswith("the clause was not through after 6 s, though no call took too long")
    assert result.findings == ()


def test_what_was_found_before_the_time_was_over_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("n00dles_testing.conformance.runner.CALLS_WORTH", 0.3)
    target = slow_store(tmp_path, 0.2)
    with (tmp_path / "slow.py").open("a") as module:
        module.write("\nclass Loses(Slow):\n    def save(self, run_id, context):\n        time.sleep(0.2)\n")

    [result] = check_store(target.replace("Slow", "Loses"), clauses=["S02"]).results

    assert result.verdict is Verdict.FAIL
    assert result.findings


def test_a_clause_that_does_not_end_by_itself_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("n00dles_testing.conformance.runner.CALLS_WORTH", 0.1)
    monkeypatch.setattr("n00dles_testing.conformance.runner._CALLS_TO_END", 0)

    [result] = check("TakesItsTime", ["S18"], limit=2).results

    assert result.verdict is Verdict.NOT_RUN
    assert result.reason.startswith("the clause was not through after 0.2 s")


class Scripted:
    """A worker that says these things, whatever it is asked."""

    def __init__(self, *said: dict[str, Any]) -> None:
        self.channel = self
        self._said = list(said)
        self._number = 0

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None: ...

    def send(self, message: dict[str, Any]) -> None:
        self._number = message["number"]

    def receive(self, timeout: float) -> dict[str, Any] | None:
        return {"number": self._number, **self._said.pop(0)} if self._said else None

    def output(self) -> str:
        return ""


def test_what_a_left_call_tells_behind_the_result_is_not_taken_for_the_end() -> None:
    result = ClauseResult("S14", "told", Verdict.PASS, scenarios=1).to_dict()
    answer = {"result": result, "reader": None}
    late = {"step": 3, "text": "save → raised RuntimeError"}
    worker = Scripted({"word": "unknown"}, answer, late, late, {"idle": True}, answer, {"idle": True})
    [clause] = [each for each in implemented() if each.id == "S14"]

    with open_runner("memory://") as runner:
        runner._stop()
        runner._worker = cast(HelperProcess, worker)
        results = [runner.check(clause), runner.check(clause)]

    assert [each.verdict for each in results] == [Verdict.PASS, Verdict.PASS]
    assert worker.receive(0) is None


def test_a_result_that_was_not_asked_for_is_not_taken() -> None:
    passed = ClauseResult("S14", "told", Verdict.PASS, scenarios=1).to_dict()
    failed = ClauseResult("S01", "told", Verdict.FAIL, scenarios=1).to_dict()
    again = {"result": failed, "reader": None, "number": 1}
    worker = Scripted(again, {"result": passed, "reader": None}, {"idle": True})
    [clause] = [each for each in implemented() if each.id == "S14"]

    with open_runner("memory://") as runner:
        runner._stop()
        runner._asked = 7
        runner._worker = cast(HelperProcess, worker)
        result = runner.check(clause)

    assert (result.clause, result.verdict) == ("S14", Verdict.PASS)


@pytest.mark.usefixtures("fresh_workers")  # a fork answers at once
def test_a_process_that_does_not_start_is_started_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = _slow_starts(monkeypatch, {2})

    report = check("KillsTheProcess", ["S02", "S05"])

    assert [result.verdict for result in report.results] == [Verdict.FAIL, Verdict.PASS]
    assert starts == [1, 2, 3]


@pytest.mark.usefixtures("fresh_workers")  # a fork answers at once
def test_a_process_that_never_starts_again_is_not_held_against_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    _slow_starts(monkeypatch, {2, 3})

    report = check("KillsTheProcess", ["S02", "S05"])

    assert [result.verdict for result in report.results] == [Verdict.FAIL, Verdict.NOT_RUN]
    assert "the process for the checks did not start" in report.results[1].reason


def _slow_starts(monkeypatch: pytest.MonkeyPatch, slow: set[int]) -> list[int]:
    """Let these starts of the worker take too long; return the list that all are noted in."""
    starts: list[int] = []
    first_answer = Runner._first_answer

    def answer(runner: Runner, worker: HelperProcess) -> dict[str, Any]:
        starts.append(runner._starts)
        with monkeypatch.context() as patch:
            if runner._starts in slow:
                patch.setattr("n00dles_testing.conformance.runner._TIME_TO_START", 0.0)
            return first_answer(runner, worker)

    monkeypatch.setattr(Runner, "_first_answer", answer)
    return starts


def test_what_keeps_from_seeing_whether_locations_are_apart_is_noted(tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text(
        "import time\n"
        "from n00dles_testing.conformance.mutants.correct import JSONFiles\n"
        "class Hangs(JSONFiles):\n"
        "    def load_or_create(self, run_id, inputs):\n"
        "        if inputs.get('location') == 'the second':\n"
        "            time.sleep(60)\n"
        "        return super().load_or_create(run_id, inputs)\n"
    )

    report = check_store(f"{tmp_path / 'hangs.py'}:Hangs", clauses=["S01"], limit=5)

    assert report.results[0].verdict is Verdict.PASS
    assert [
        note for note in report.notes if note.startswith("not found out whether locations are apart: the store did")
    ]


def test_locations_of_a_slow_store_are_seen_not_to_be_apart(tmp_path: Path) -> None:
    (tmp_path / "shares.py").write_text(
        "import time\n"
        "from n00dles_testing.conformance.mutants.correct import JSONFiles\n"
        "class Shares(JSONFiles):\n"
        "    def __init__(self, location):\n"
        f"        super().__init__({str(tmp_path)!r})\n"
        "        time.sleep(1.3)\n"
    )

    report = check_store(f"{tmp_path / 'shares.py'}:Shares", clauses=["S01"], limit=2.5)

    assert "two different locations gave the same data" in report.shares_data


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
        ("not_callable", "is of type int"),
        ("missing", "has no 'missing'"),
    ],
)
def test_a_target_that_cannot_be_opened_is_told_at_once(factory: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check(factory, [], limit=2)

    assert message in str(caught.value)


def test_the_time_that_a_process_takes_to_start_is_no_call_of_the_store(tmp_path: Path) -> None:
    store = tmp_path / "slow_to_import.py"
    text = (HERE / "plain_store.py").read_text()
    store.write_text(f"{text}\nimport time\ntime.sleep(2.5)\n")

    found = results(check_store(f"{store}:open_store", clauses=["S01", "C01"], limit=1.5))

    assert found["S01"].verdict is Verdict.PASS
    assert found["C01"].verdict in (Verdict.PASS, Verdict.NOT_RUN)


def test_a_finding_is_shown_again_with_the_limit_that_was_given() -> None:
    [result] = check("Raises", ["S02"], limit=7.5).results

    assert (result.findings[0].replay or "").endswith("--seed 0 --limit 7.5")


def test_a_factory_that_forks_and_lets_its_child_go_on_gets_one_verdict_a_clause(tmp_path: Path) -> None:
    store = tmp_path / "forks.py"
    text = (HERE / "plain_store.py").read_text()
    store.write_text(f"{text}\nimport os\ndef forks(location):\n    os.fork()\n    return open_store(location)\n")

    report = check_store(f"{store}:forks", clauses=["S01", "S05", "S07"], limit=20)

    assert [(result.clause, result.verdict) for result in report.results] == [
        ("S01", Verdict.PASS),
        ("S05", Verdict.PASS),
        ("S07", Verdict.PASS),
    ]
