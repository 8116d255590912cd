"""Two locations hold different data, or the suite says so and does not pretend."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.verdicts import Verdict

HERE = Path(__file__).parent


def target(name: str) -> str:
    return f"{HERE / 'sharing_stores.py'}:{name}"


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("always_the_same_object", "the factory gave the same object"),
        ("always_the_same_folder", "a run saved in one was found in the other"),
        ("KeepsItsRunsInTheModule", "a run saved in one was found in the other"),
    ],
)
def test_a_factory_that_ignores_its_location_is_told_so_and_the_clauses_are_checked(
    name: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    report = check_store(target(name), clauses=["S01", "S02"])

    assert [result.verdict for result in report.results] == [Verdict.PASS, Verdict.PASS]
    assert report.notes[0].startswith(f"two different locations gave the same data ({how}): ")
    assert report.problems == (report.notes[0],)
    assert not report.ok


def test_runs_in_a_place_that_is_not_the_suites_are_deleted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    check_store(target("always_the_same_folder"), clauses=["S01", "S02"])

    assert list((tmp_path / "the-only-one").glob("*.json")) == []


def test_one_object_for_a_location_is_no_fault() -> None:
    report = check_store(target("one_object_a_location"), clauses=["S01", "C01"])

    assert report.ok
    assert "opening again gave the same object" in report.results[1].reason


def test_a_store_that_hangs_meanwhile_is_for_the_clauses_to_judge() -> None:
    began = time.monotonic()

    report = check_store(target("HangsInItsFirstSave"), clauses=["S05"], limit=2)

    assert [result.verdict for result in report.results] == [Verdict.FAIL]
    assert report.results[0].reason.startswith("the store did not answer within 2 s")
    assert time.monotonic() - began < 30


def test_the_story_of_a_failure_has_the_files_on_disk() -> None:
    report = check_store("n00dles_testing.conformance.mutants.s02:OrdersByName", clauses=["S02"])

    [on_disk] = [line for line in report.results[0].findings[0].story if line.startswith("on disk")]
    assert on_disk.endswith(" B)")
    assert ".json (" in on_disk


def test_the_story_of_a_hang_has_them_too() -> None:
    report = check_store(target("HangsInItsFirstSave"), clauses=["S05"], limit=2)

    assert any(line.startswith("on disk  ") and ".json (" in line for line in report.results[0].findings[0].story)
