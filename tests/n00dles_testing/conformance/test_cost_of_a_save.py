"""S18: what a save costs in a long run is told as it is, of stores that write all of it and of stores that do not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from n00dles_testing.conformance import check_store, implemented
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.verdicts import ClauseResult, Verdict

FILES, LOG, _, SQLITE = correct_stores()[:4]
LMDB = [store for store in correct_stores() if store.endswith("LMDBRuns")]


def checked(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["S18"]).results
    return result


def bytes_told(result: ClauseResult) -> tuple[float, str]:
    found = re.search(r"it writes ([\d.]+) times as much \((flat|grows)\)", result.reason)
    assert found is not None
    return float(found[1]), found[2]


@pytest.mark.parametrize("target", [FILES, LOG, SQLITE])
def test_a_store_that_writes_the_whole_run_is_said_to_grow(target: str) -> None:
    result = checked(target)

    ratio, word = bytes_told(result)
    assert result.verdict is Verdict.PASS
    assert word == "grows"
    assert 5 < ratio < 20
    [slope] = re.findall(r"(\d+) bytes for each node already saved", result.reason)
    assert int(slope) > 200


@pytest.mark.parametrize("target", ["sqlite:///{}/runs.db", *LMDB])
def test_a_store_that_writes_what_is_new_is_said_to_be_flat(target: str, tmp_path: Path) -> None:
    result = checked(target.format(tmp_path))

    ratio, word = bytes_told(result)
    assert result.verdict is Verdict.PASS
    assert word == "flat"
    assert 0.5 < ratio <= 1.5


def test_of_a_store_that_writes_nothing_the_time_is_told() -> None:
    result = checked("memory://")

    assert result.verdict is Verdict.PASS
    assert re.fullmatch(
        r"a save with 400 nodes, beside one with 20: it takes [\d.]+ times as long \((flat|grows)\)", result.reason
    )


def test_a_slow_store_gets_fewer_saves(tmp_path: Path) -> None:
    store = tmp_path / "store.py"
    store.write_text(
        "import time\n"
        "from n00dles_testing.conformance.mutants.correct import JSONFiles\n"
        "class Slow(JSONFiles):\n"
        "    def save(self, run_id, context):\n"
        "        time.sleep(0.9)\n"
        "        super().save(run_id, context)\n"
    )

    result = checked(f"{store}:Slow")

    assert result.verdict is Verdict.PASS
    assert re.match(r"a save with 400 nodes, beside one with 20( \(of [34] saves only\))?: it writes", result.reason)


def test_a_clause_that_is_graded_is_failed_by_no_store() -> None:
    assert [clause.id for clause in implemented() if clause.graded] == ["S18"]
