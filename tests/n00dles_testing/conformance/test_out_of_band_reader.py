"""What was acknowledged is compared with what is stored; a reader that is wrong is told, and never the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles.errors import ConfigurationError
from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.out_of_band import COMPARED_IN
from n00dles_testing.verdicts import Verdict

HERE = Path(__file__).parent
READERS = f"{HERE / 'readers.py'}"
FILES = "n00dles_testing.conformance.mutants.correct:JSONFiles"
SPOOLS = "n00dles_testing.conformance.mutants.out_of_band:SpoolsElsewhere"
READS = "n00dles_testing.conformance.mutants.out_of_band:read_json_file"


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_a_correct_store_agrees_with_its_reader() -> None:
    report = check_store(FILES, clauses=COMPARED_IN, reader=READS)

    assert [result.verdict for result in report.results] == [Verdict.PASS] * 4
    assert report.reader is not None
    assert (report.reader.name, report.reader.fault) == (READS, "")
    assert report.reader.compared > 100
    assert report.ok


def test_a_save_that_is_only_in_a_cache_is_seen_by_the_reader_alone() -> None:
    # All clauses pass; these are those that open, close, kill and delete.
    without = check_store(SPOOLS, clauses=["S01", *COMPARED_IN, "S08", "S13"])
    report = check_store(SPOOLS, clauses=COMPARED_IN, reader=READS)

    assert without.ok, [result.reason for result in without.results if not result.ok]
    assert [result.verdict for result in report.results] == [Verdict.FAIL] * 4
    finding = report.results[0].findings[0]
    assert finding.message.startswith("the record outside the store is another one: completed['node'] is missing")
    assert [line.split()[0] for line in finding.story][-4:] == ["on", "allowed", "came", "why"]
    assert any(line.startswith(f"reader {READS}: 'run-") and "completed {}" in line for line in finding.story)
    assert finding.replay == f"n00dles-testing check {SPOOLS} --clause S02 --seed 0 --reader {READS}"


def test_a_factory_may_bring_its_reader() -> None:
    report = check_store(f"{READERS}:Brings", clauses=["S02"])

    assert report.reader is not None
    assert report.reader.compared > 50


def test_a_method_of_the_store_that_is_called_reader_is_none() -> None:
    report = check_store(f"{READERS}:HasAMethodOfThatName", clauses=["S02"])

    assert report.reader is None
    assert report.ok


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("raises", "raised OSError: the disk is elsewhere ("),
        ("exits", "raised SystemExit: 1 ("),
        ("gives_text", "returned 'all is well' (str), and neither a mapping nor None"),
        ("gives_half", "returned a dict without 'order'; write inputs, completed and order"),
        ("is_a_coroutine", "is a coroutine function; write a plain one"),
        ("hangs", "did not answer within 1 s"),
    ],
)
def test_a_reader_that_does_not_read_is_told_and_the_store_keeps_its_verdicts(name: str, fault: str) -> None:
    reader = f"{READERS}:{name}"

    report = check_store(FILES, clauses=["S02", "C01"], reader=reader, limit=2 if name == "hangs" else 20)

    assert [result.verdict for result in report.results] == [Verdict.PASS, Verdict.PASS]
    assert report.reader is not None
    assert report.reader.fault.startswith(f"the out-of-band reader {reader} {fault}")
    assert report.problems == (report.reader.fault,)
    assert not report.ok


def test_a_reader_that_ends_the_process_is_told_and_not_asked_again() -> None:
    report = check_store(FILES, clauses=["S02", "C01"], reader=f"{READERS}:kills_the_process")

    assert [result.verdict for result in report.results] == [Verdict.VACUOUS, Verdict.PASS]
    assert report.results[0].reason.startswith("the out-of-band reader ended the check, and not the store: ")
    assert report.reader is not None
    assert "ended its process" in report.reader.fault


def test_a_reader_that_has_never_found_a_run_is_asked_whether_it_looks_in_the_right_place() -> None:
    report = check_store(FILES, clauses=["S02"], reader=f"{READERS}:looks_elsewhere")

    [why] = [line for line in report.results[0].findings[0].story if line.startswith("why")]
    assert why.endswith("the reader has found no run so far: does it look in the right place?")


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (f"{READERS}:takes_one", "is no out-of-band reader: write a function read(location, run_id)"),
        (f"{READERS}:missing", "has no 'missing'"),
        ("no.such.module:read", "module 'no.such.module' cannot be imported"),
        ("read", "'read' is no target"),
    ],
)
def test_a_reader_that_is_none_is_told_at_once(reader: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_store(FILES, reader=reader)

    assert message in str(caught.value)
