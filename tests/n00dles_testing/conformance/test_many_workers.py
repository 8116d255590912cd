"""What W01 to W03 tell of a store that loses an update, when they do not apply, and when they have shown nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.clauses.w03_create_once import _raced
from n00dles_testing.conformance.recorded import share_of_time
from n00dles_testing.histories import Call, History, judge, read_history
from n00dles_testing.verdicts import Verdict

MUTANTS = "n00dles_testing.conformance.mutants"


def call(client: str, invoked: int, returned: int | None, run: str = "r", operation: str = "load") -> Call:
    outcome = "unknown" if returned is None else "ok"
    return Call(client, operation, run, invoked, returned, outcome)  # type: ignore[arg-type]


def test_a_lost_update_is_told_by_its_calls_and_kept_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    [w02] = check_store(f"{MUTANTS}.w02:ComparesBeforeItLocks", clauses=["W02"]).results

    story = w02.findings[0].story
    [path] = [Path(line.split()[1]) for line in story if line.startswith("history ")]
    assert w02.verdict is Verdict.FAIL
    assert any(line.startswith("calls ") and "├─" in line for line in story)
    assert any(line.split()[:1] == ["time"] and line.endswith("▶") for line in story)
    assert f"again    n00dles-testing history {path}" in story
    again = judge(read_history(path))
    assert again.verdict is Verdict.FAIL
    assert f"came     {again.violations[0].kind}" in story
    assert read_history(path).about["clause"] == "W02"


def test_a_store_that_each_process_reads_once_is_not_shared_and_not_blamed() -> None:
    report = check_store(f"{MUTANTS}.correct:AppendOnlyLog", clauses=["W01", "W02", "W03"])

    assert {each.verdict for each in report.results} == {Verdict.NOT_APPLICABLE}
    assert report.results[0].reason.startswith("the store is not shared: a run that was saved in one process")


def test_a_store_without_revisions_is_judged_by_what_stays() -> None:
    [w02] = check_store(f"{MUTANTS}.correct:JSONFiles", clauses=["W02"]).results

    assert w02.verdict is Verdict.PASS
    assert w02.scenarios >= 2
    assert "the store keeps no revision: in which order saves took effect was not judged" in w02.reason


@pytest.mark.parametrize(
    ("calls", "share"),
    [
        ([], 0.0),
        ([call("p0c1", 0, 10), call("p1c1", 10, 20)], 0.0),
        ([call("p0c1", 0, 10), call("p1c1", 5, 15)], 1 / 3),
        ([call("p0c1", 0, 10), call("p0c2", 5, 15)], 0.0),
        ([call("p0c1", 0, None), call("p1c1", 5, 15)], 0.0),
        ([call("p0c1", 0, 10), call("p1c1", 0, 10), call("last", 10, 90)], 1.0),
    ],
)
def test_only_calls_of_two_processes_at_once_count_as_meeting(calls: list[Call], share: float) -> None:
    assert share_of_time(History(tuple(calls))) == pytest.approx(share)


@pytest.mark.parametrize(
    ("calls", "raced"),
    [
        ([call("p0c0r0", 0, 10), call("p1c0r0", 5, 15)], 1),
        ([call("p0c0r0", 0, 10), call("p1c0r0", 11, 15)], 0),
        ([call("p0c0r0", 0, 10), call("p0c1r0", 5, 15)], 0),
        ([call("p0c0r0", 0, 10), call("p1c0r1", 5, 15, "another")], 0),
        ([call("p0c0r0", 0, 10), call("last", 5, 15)], 0),
    ],
)
def test_only_creations_of_one_run_by_two_processes_at_once_count_as_a_race(calls: list[Call], raced: int) -> None:
    assert _raced(History(tuple(calls))) == raced
