"""What a store loses of a run's bookkeeping: told by S02 and beside the level, and no fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.verdicts import Verdict

STORES = Path(__file__).parent / "bookkeeping_stores.py"
ALL = "keeps the four fields only: attempts, lives, status and the pipeline's fingerprint are lost at a restart"


@pytest.mark.parametrize(
    ("target", "note"),
    [
        (f"{STORES}:LosesAllBookkeeping", ALL),
        (f"{STORES}:LosesWhatNodesCost", "does not keep attempts and usage of nodes: lost at a restart"),
        ("n00dles_testing.conformance.mutants.correct:FilesWithRevisions", ALL),
    ],
)
def test_bookkeeping_that_is_lost_is_no_fault_and_is_told(target: str, note: str) -> None:
    report = check_store(target, clauses=["S02"])

    [result] = report.results
    assert result.verdict is Verdict.PASS
    assert note in result.reason.split("; ")
    assert f"note of S02: the store {note}" in report.grade.text.splitlines()


@pytest.mark.parametrize("target", ["memory://", "sqlite:///{folder}/runs.db", "docs/examples/my_store.py:open_store"])
def test_a_store_that_keeps_all_of_a_context_has_no_such_note(target: str, tmp_path: Path) -> None:
    report = check_store(target.format(folder=tmp_path), clauses=["S02"])

    assert report.results[0].verdict is Verdict.PASS
    assert "restart" not in report.results[0].reason + report.grade.text
