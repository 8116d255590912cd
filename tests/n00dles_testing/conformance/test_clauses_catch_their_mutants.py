"""The suite's own test: each clause catches its broken stores, no other one does, and correct stores pass.

Here a broken store meets the clause that it breaks, and a sample of those that must let it pass, and a correct one a
third of those that take long; every pair of them, and many seeds, are in the table that `make tables` makes
(`conformance/results/mutants-stores.md`).
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from n00dles_testing.conformance import StoreReport, check_store, implemented
from n00dles_testing.conformance.contract import LEVELS
from n00dles_testing.conformance.mutants import Mutant, all_mutants, correct_stores, left_out
from n00dles_testing.servers import why_not_valkey
from n00dles_testing.verdicts import ClauseResult, Verdict

HERE = Path(__file__).parent
MUTANTS = all_mutants()
IDS = [clause.id for clause in implemented()]
"""The clauses that have a check, in the order of the contract."""
GRADED = {clause.id for clause in implemented() if clause.graded}
"""What these tell of a store that costs much, and of one that does not, is tested in test_cost_of_a_save.py."""
MACHINE = "S17"
REACHABLE = max((level for level, (_, ids) in LEVELS.items() if set(ids) <= set(IDS)), default=None)
"""The highest level whose clauses all have a check."""
MET = 2
"""So many stores that it must let pass each clause meets."""
LONG = ("C03", "C04", "C05", "C06", "P01", "P03", "S17")
"""More than half of what a check takes: a correct store meets every third of them here, and all in the table."""
PLAIN = f"{HERE / 'plain_store.py'}:open_store"
SKIPPED = [pytest.param(store, marks=pytest.mark.skip(reason=reason)) for store, reason in left_out().items()]


def verdicts(report: StoreReport) -> dict[str, Verdict]:
    return {result.clause: result.verdict for result in report.results}


def sample() -> dict[str, list[str]]:
    """Return a clause that must let a broken store pass, by its target, until each clause has met enough of them."""
    met, chosen = Counter[str](), dict[str, list[str]]()
    for mutant in MUTANTS:
        wanting = [id_ for id_ in mutant.let_pass_by(IDS) if met[id_] < MET]
        strangers = sorted(wanting, key=lambda id_: (met[id_], IDS.index(id_)))[:1]
        met.update(strangers)
        chosen[mutant.target] = strangers
    return chosen


SAMPLE = sample()


def test_the_sample_is_spread_over_all_clauses() -> None:
    met = Counter(clause for strangers in SAMPLE.values() for clause in strangers)

    assert set(met) == {*IDS} - {MACHINE}
    assert set(met.values()) == {MET}


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.target.rpartition(":")[2] for mutant in MUTANTS])
def test_a_mutant_fails_its_own_clause_and_no_other(mutant: Mutant) -> None:
    if mutant.server is not None and (why := why_not_valkey()):
        pytest.skip(f"NOT RUN: {why}")

    # What else is said to see the fault is held to that by the table.
    report = check_store(mutant.target, clauses=[mutant.breaks, *SAMPLE[mutant.target]], server=mutant.server, seed=1)

    # One that loses whatever is closed leaves nothing on which a fault could be tried: NOT RUN says so, and is no pass.
    # One that no other process can share, or that offers no leases, is nothing that a clause about these could judge.
    let_pass = (Verdict.PASS, Verdict.NOT_RUN, Verdict.NOT_APPLICABLE)
    failed = [clause for clause, verdict in verdicts(report).items() if verdict not in let_pass]
    assert failed == [mutant.breaks]
    assert not report.ok
    assert report.grade.level is None
    assert report.grade.text.startswith(f"no level: the store breaks {', '.join(failed)}\n")
    [result] = [result for result in report.results if result.clause == mutant.breaks]
    tells_what_was_called_allowed_and_came(result, mutant)


def tells_what_was_called_allowed_and_came(result: ClauseResult, mutant: Mutant) -> None:
    finding = result.findings[0]
    assert result.verdict is Verdict.FAIL
    assert result.reason.startswith(finding.message)
    # What to do about it, and what else does the same, come last.
    labels = [label for line in finding.story if (label := line.split()[0]) not in ("fix", "also")]
    assert labels[0] == "scenario"
    # A call that raised, and may not, has the line that raised instead.
    assert labels[-3:] == ["allowed", "came", "why"] or (labels[-1] == "raised" and " raised " in finding.message)
    calls = ("load_or_create(", "save(", "delete(", "acquire(", "takes turns", "prune(")
    assert any("→" in line and any(call in line for call in calls) for line in finding.story)
    assert finding.replay is not None
    if mutant.breaks == MACHINE:
        assert finding.replay.startswith("n00dles-testing replay s1")
    else:
        again = f"n00dles-testing check {mutant.target} --clause {mutant.breaks} --seed 1"
        assert finding.replay == (f"{again} --server {mutant.server}" if mutant.server else again)


def test_every_clause_has_a_mutant() -> None:
    broken = {mutant.breaks for mutant in MUTANTS}

    assert broken == set(IDS) - GRADED


def test_every_clause_has_a_mutant_that_only_it_catches() -> None:
    # The test above has shown that such a mutant fails its own clause and passes all others.
    alone = {mutant.breaks for mutant in MUTANTS if not mutant.also_breaks}

    assert alone == set(IDS) - GRADED


def test_the_form_for_programs_claims_no_level_that_was_checked_in_part() -> None:
    form = check_store("memory://", clauses=["S01", "S02", "S05"]).to_dict()

    assert form["level"] is None
    assert "level_so_far" not in form
    assert form["grade"].startswith("no level: no fault found by S01, S02, S05\n")
    assert form["not_implemented"] == []


def name_of(target: object) -> str:
    return str(target).rpartition(":")[2]


CORRECT = [*correct_stores(), PLAIN]


def left_to_the_table(target: str) -> set[str]:
    """Return the long clauses that this correct store does not meet here, and its neighbours do."""
    return {id_ for number, id_ in enumerate(LONG) if (CORRECT.index(target) + number) % 3}


def test_every_long_clause_meets_a_third_of_the_correct_stores() -> None:
    met = Counter(id_ for target in CORRECT for id_ in set(LONG) - left_to_the_table(target))

    assert set(met) == set(LONG)
    assert min(met.values()) >= len(CORRECT) // 3


@pytest.mark.parametrize("target", [*CORRECT, *SKIPPED], ids=name_of)
@pytest.mark.parametrize("kind", "SCPW")
def test_a_correct_store_passes(target: str, kind: str) -> None:
    ids = [id_ for id_ in IDS if id_.startswith(kind) and id_ not in left_to_the_table(target)]

    report = check_store(target, clauses=ids)

    found = verdicts(report)
    passed = [id_ for id_, verdict in found.items() if verdict is Verdict.PASS]
    # A log that each process reads once is not shared; none of the stores has a server, or leases.
    shared = [] if name_of(target) == "AppendOnlyLog" else ["W01", "W02", "W03", "W04", "W08"]
    assert passed == (shared if kind == "W" else ids)
    assert set(found.values()) <= {Verdict.PASS, Verdict.NOT_APPLICABLE}
    assert all(result.scenarios >= 1 for result in report.results if result.verdict is Verdict.PASS)


@pytest.mark.parametrize("target", correct_stores()[:2], ids=name_of)
def test_a_correct_store_passes_with_other_values_drawn(target: str) -> None:
    # Not those that cost most and draw least; all clauses, with twenty seeds, are for `make tables`.
    drawing = [id_ for id_ in IDS if id_.startswith("S") and id_ not in ("S11", "S15", "S16", "S18")]

    report = check_store(target, clauses=drawing, seed=2)

    assert set(verdicts(report).values()) == {Verdict.PASS}


def test_the_memory_store_proves_that_clauses_about_crashes_are_not_for_it() -> None:
    report = check_store("memory://")

    not_for_memory = [id_ for id_ in IDS if id_[0] in "CPW" or id_ in ("S10", "S16")]
    not_shared, no_server = ("W01", "W02", "W03"), ("W05", "W06")
    assert verdicts(report) == {id_: Verdict.NOT_APPLICABLE if id_ in not_for_memory else Verdict.PASS for id_ in IDS}
    for result in report.results:
        if result.clause in not_shared:
            assert "the store is not shared" in result.reason
        elif result.clause in no_server:
            assert "the store talks to no server" in result.reason
        elif result.clause in not_for_memory:
            assert "not found in this one, and that process opened no file" in result.reason
    assert report.ok
    assert report.grade.level == (1 if REACHABLE else None)


def test_a_store_without_revisions_is_told_so() -> None:
    [result] = check_store(PLAIN, clauses=["S02"]).results

    assert (result.verdict, result.reason) == (
        Verdict.PASS,
        "the store keeps no revision: S08 tells what a stale save does; keeps the four fields only: "
        "attempts, lives, status and the pipeline's fingerprint are lost at a restart",
    )


def test_a_report_in_which_nothing_passed_is_not_ok() -> None:
    report = check_store("memory://", clauses=["C02"])

    assert [result.verdict for result in report.results] == [Verdict.NOT_APPLICABLE]
    assert not report.ok


def test_no_level_is_claimed_for_what_was_not_asked() -> None:
    report = check_store("memory://", clauses=["s05"])

    assert [result.clause for result in report.results] == ["S05"]
    assert report.grade.level is None
    assert report.grade.text.startswith("no level: no fault found by S05\n")


def test_a_report_names_the_clauses_that_are_not_implemented() -> None:
    report = check_store("memory://", clauses=["S05"])

    clauses = {id_ for _, ids in LEVELS.values() for id_ in ids}
    assert set(report.grade.not_implemented) == clauses - set(IDS)
