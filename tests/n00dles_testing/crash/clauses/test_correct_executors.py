"""No clause has anything to say about a correct executor, however it is built; and something about each wrong one."""

from __future__ import annotations

import pytest

from n00dles_testing.campaign import prove
from tests.n00dles_testing.crash.mutants import Executor
from tests.n00dles_testing.crash.mutants.correct import CORRECT


@pytest.mark.parametrize("executor", CORRECT, ids=repr)
def test_a_correct_executor_breaks_no_clause(executor: Executor) -> None:
    report = prove(executor, examples=150, confirm=False, shrink_seconds=2)

    assert [str(finding) for finding in report.findings] == []
    assert report.scenarios >= 150
