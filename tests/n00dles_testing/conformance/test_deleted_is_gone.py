"""S07: what may be left of a deleted run, where it is looked for, and what a late save may do."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.raw_files import files_with
from n00dles_testing.verdicts import ClauseResult, Verdict

HOSTILE = Path(__file__).parent / "hostile_stores.py"
MUTANTS = "n00dles_testing.conformance.mutants.s07"
NO_REVISION = "a late save into a new run of the same id was not tried: a store without revisions cannot tell the two"


def s07_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["S07"]).results
    return result


@pytest.mark.parametrize(
    ("store", "note"),
    [
        ("Compresses", "what is left on disk was not looked for: texts are not in the files as they are"),
        ("CompactsWhenItIsClosed", "until the store is closed, a deleted run's text is still in runs.log"),
        ("IgnoresLateSaves", NO_REVISION),
    ],
)
def test_what_could_not_be_shown_is_a_note_and_no_fault(store: str, note: str) -> None:
    result = s07_of(f"{HOSTILE}:{store}")

    assert result.verdict is Verdict.PASS
    assert note in result.reason


@pytest.mark.parametrize(
    ("target", "scenario", "message"),
    [
        (f"{MUTANTS}:ASaveBringsItBack", "a worker saves a run that was deleted", "inputs['created'] is missing"),
        (
            f"{MUTANTS}:LeavesALineInTheLog",
            "what is left of a deleted run on disk",
            "the run is gone, and its text is still in runs.log",
        ),
        (f"{MUTANTS}:DeletesOneBatch", "a long run is deleted, and created anew", "inputs['created'] is missing"),
        (f"{MUTANTS}:MissesWhatIsGone", "a delete is repeated, and one of a run", "delete raised FileNotFoundError"),
        (
            f"{HOSTILE}:ForgetsItsRevisions",
            "a worker saves a run that was deleted and created anew",
            "completed['researcher'] is {'facts': ['a']}, and should not be there",
        ),
    ],
)
def test_a_run_that_comes_back_is_told_with_the_call_that_brought_it(target: str, scenario: str, message: str) -> None:
    result = s07_of(target)

    assert result.verdict is Verdict.FAIL
    finding = result.findings[0]
    assert finding.story[0].startswith(f"scenario {scenario}")
    assert finding.message.startswith(message)


def test_a_store_with_revisions_is_asked_for_a_late_save_into_the_next_run() -> None:
    result = s07_of("memory://")

    assert (result.verdict, result.scenarios) == (Verdict.PASS, 10)
    assert result.reason == "what is left on disk was not looked for: the store takes no location"


@pytest.mark.parametrize(
    "content",
    [
        b"..the-token-to-find..",
        "the-token-to-find".encode("utf-16-le"),
        b"the-token-to-find".hex().upper().encode(),
        base64.b64encode(b"x" + b"the-token-to-find"),
        base64.b64encode(b"xy" + b"the-token-to-find" + b"z"),
        base64.b64encode(b"xyz" + b"the-token-to-find"),
    ],
)
def test_a_text_is_found_in_any_usual_form(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(content)
    (tmp_path / "other").write_bytes(b"the-token-to-fin")

    assert files_with(str(tmp_path), "the-token-to-find") == ["folder/file"]
