"""Each broken executor is caught by the clause that it breaks and by no unrelated one, soon, and on a small pipeline.

One seed each; `conformance.benchmarks.mutants` takes the median over ten.
"""

from __future__ import annotations

import pytest

from conformance.benchmarks.mutants import MOST_NODES, MOST_SCENARIOS, catch
from n00dles_testing.crash.clauses import CLAUSES
from tests.n00dles_testing.crash.mutants import MUTANTS, Executor


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("mutant", MUTANTS, ids=repr)
def test_a_broken_executor_is_caught_by_its_clause_and_by_no_unrelated_one(mutant: Executor) -> None:
    caught = catch(mutant, seed=1)

    assert caught.scenarios is not None
    assert caught.scenarios <= 2 * MOST_SCENARIOS  # of one seed; the target is for the median of ten
    assert caught.nodes is not None
    assert caught.nodes <= MOST_NODES
    assert caught.unrelated == frozenset()


def test_every_clause_has_a_mutant() -> None:
    assert {mutant.breaks for mutant in MUTANTS} == {clause.id for clause in CLAUSES}
