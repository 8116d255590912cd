"""Each faulty store is caught by the rule that is for it, the correct one by none, and two checks agree on all."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from n00dles_testing.histories import History, judge
from n00dles_testing.histories.calls import Call
from n00dles_testing.histories.origins import phantom, two_creations
from n00dles_testing.histories.search import SearchLimit, is_linearizable
from n00dles_testing.histories.sweep import sweep
from n00dles_testing.verdicts import Verdict
from tests.n00dles_testing.histories import simulated
from tests.n00dles_testing.histories.simulated import Plan, SimulatedStore, simulate

_FAULTY = [
    simulated.StaleReads,
    simulated.MissingCheck,
    simulated.ClientCounts,
    simulated.DuplicateRevisions,
    simulated.SkippedRevisions,
    simulated.LostSaves,
    simulated.SpuriousConflicts,
    simulated.RefusedButKept,
    simulated.DoubleCreation,
]


def _is_linearizable_by_sweep(calls: list[Call]) -> bool:
    return not (phantom(calls) or two_creations(calls) or sweep(calls))


@settings(max_examples=1500, deadline=None)
@given(
    st.builds(
        Plan,
        seed=st.integers(0, 2**32),
        clients=st.integers(2, 6),
        calls=st.integers(4, 40),
        stale=st.sampled_from([0.0, 0.3]),
        unknown=st.sampled_from([0.0, 0.1, 0.3]),
        store=st.sampled_from([SimulatedStore, *_FAULTY]),
    )
)
def test_the_sweep_and_the_exhaustive_search_agree(plan: Plan) -> None:
    (calls,) = simulate(plan).by_run().values()

    by_sweep = _is_linearizable_by_sweep(calls)

    assert by_sweep == is_linearizable(calls)


@pytest.mark.parametrize("deletes", [0.0, 0.1])
@pytest.mark.parametrize("unknown", [0.0, 0.1])
@pytest.mark.parametrize("has_revisions", [True, False])
def test_the_correct_store_gives_no_false_alarm(deletes: float, unknown: float, has_revisions: bool) -> None:
    plan = Plan(0, runs=2, deletes=deletes, unknown=unknown, has_revisions=has_revisions)

    verdicts = Counter(judge(simulate(replace(plan, seed=seed))).kind for seed in range(500))

    assert set(verdicts) <= {"PASS", "VACUOUS"}
    assert verdicts["PASS"] >= 450


@pytest.mark.parametrize("unknown", [0.0, 0.1])
@pytest.mark.parametrize(
    ("store", "kinds"),
    [
        (simulated.StaleReads, {"REALTIME"}),
        (simulated.MissingCheck, {"LOST_UPDATE"}),
        (simulated.ClientCounts, {"SPLIT_REV"}),
        (simulated.DuplicateRevisions, {"SPLIT_REV"}),
        (simulated.SkippedRevisions, {"LOST_UPDATE"}),
        (simulated.LostSaves, {"REALTIME", "SPLIT_REV"}),
        (simulated.SpuriousConflicts, {"SPURIOUS_CONFLICT", "REALTIME"}),
        (simulated.RefusedButKept, {"PHANTOM"}),
        (simulated.DoubleCreation, {"DOUBLE_CREATE"}),
        (simulated.ForgottenOutputs, {"LOST_OUTPUT"}),
    ],
)
def test_a_faulty_store_is_caught_by_its_rule(store: type[SimulatedStore], kinds: set[str], unknown: float) -> None:
    judgements = [judge(simulate(Plan(seed, calls=60, unknown=unknown, store=store))) for seed in range(60)]

    found = Counter(each.violations[0].kind for each in judgements if each.verdict is Verdict.FAIL)

    assert found.total() >= 45
    assert sum(found[kind] for kind in kinds) >= 0.8 * found.total()
    assert all(1 <= len(each.violations[0].calls) <= 3 for each in judgements if each.violations)


def test_a_deleted_run_that_comes_back_is_caught() -> None:
    plans = [Plan(seed, calls=60, deletes=0.15, store=simulated.Resurrecting) for seed in range(60)]

    found = Counter(judge(simulate(plan)).kind for plan in plans)

    assert found["FAIL(RESURRECTED)"] + found["FAIL(NOT_LINEARIZABLE)"] >= 50
    assert found["FAIL(RESURRECTED)"] >= 30


@pytest.mark.parametrize("store", [simulated.StaleReads, simulated.LostSaves, simulated.SpuriousConflicts])
def test_the_search_makes_a_failure_of_a_history_with_deletes_small(store: type[SimulatedStore]) -> None:
    plans = [Plan(seed, calls=40, deletes=0.08, has_outputs=False, store=store) for seed in range(30)]

    judgements = [judge(simulate(plan)) for plan in plans]

    sizes = [len(each.violations[0].calls) for each in judgements if each.kind == "FAIL(NOT_LINEARIZABLE)"]
    assert len(sizes) >= 10
    assert sorted(sizes)[len(sizes) // 2] <= 3


@pytest.mark.parametrize("unknown", [0.0, 0.1])
def test_without_revisions_a_lost_update_is_a_fork(unknown: float) -> None:
    plan = Plan(0, has_revisions=False, unknown=unknown, store=simulated.MissingCheck)

    judgements = [judge(simulate(replace(plan, seed=seed))) for seed in range(60)]

    assert Counter(each.kind for each in judgements)["FAIL(LOST_UPDATE)"] >= 50
    assert "H2, H4, H5" in judgements[0].not_run[0]


def test_a_search_beyond_its_limit_says_so() -> None:
    (calls,) = simulate(Plan(1, calls=60, clients=6, deletes=0.1)).by_run().values()

    with pytest.raises(SearchLimit, match="takes 50"):
        is_linearizable(calls, most_calls=50)
    with pytest.raises(SearchLimit, match="5 steps"):
        is_linearizable(calls, most_nodes=5)


@pytest.mark.parametrize("store", [SimulatedStore, simulated.StaleReads, simulated.LostSaves])
@pytest.mark.parametrize("deletes", [0.0, 0.1])
def test_a_store_that_counts_the_creation_is_judged_alike(store: type[SimulatedStore], deletes: float) -> None:
    def counted(call: Call) -> Call:
        revision, expected = (None if each is None else each + 1 for each in (call.revision, call.expected))
        return replace(call, revision=revision, expected=expected)

    histories = [simulate(Plan(seed, deletes=deletes, store=store)) for seed in range(30)]

    kinds = [judge(history).kind for history in histories]
    of_counted = [judge(History(tuple(map(counted, history.calls)))).kind for history in histories]

    assert of_counted == kinds
