"""A worker that is forked for the tests comes to the same verdicts as one that is started."""

from __future__ import annotations

import pytest

from n00dles_testing import check_store
from n00dles_testing.verdicts import Verdict

STORES = "n00dles_testing.conformance.mutants"


def verdicts(target: str) -> dict[str, Verdict]:
    return {result.clause: result.verdict for result in check_store(target, clauses=["S01", "C01", "C02"]).results}


@pytest.mark.parametrize(
    ("target", "reopened"),
    [(f"{STORES}.correct:JSONFiles", Verdict.PASS), (f"{STORES}.c01:NamesFilesByHash", Verdict.FAIL)],
    ids=["correct", "depends on the hash seed"],
)
def test_a_forked_worker_and_a_fresh_one_tell_the_same(
    target: str, reopened: Verdict, request: pytest.FixtureRequest
) -> None:
    forked = verdicts(target)
    request.getfixturevalue("fresh_workers")
    fresh = verdicts(target)

    assert forked == fresh == {"S01": Verdict.PASS, "C01": reopened, "C02": reopened}
