"""The suite's own test: each clause catches its broken stores, no other one does, and correct stores pass."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from n00dles_testing.conformance import StoreReport, check_store, grade, implemented
from n00dles_testing.conformance.contract import LEVELS
from n00dles_testing.conformance.mutants import Mutant, all_mutants, correct_stores, left_out
from n00dles_testing.verdicts import ClauseResult, Verdict

HERE = Path(__file__).parent
MUTANTS = all_mutants()
IDS = [clause.id for clause in implemented()]
"""The clauses that have a check, in the order of the contract."""
MACHINE = "S17"
"""It does what every other clause does, so it may see what any of them sees; only its own mutants are tried with it."""
ALL_BUT_THE_MACHINE = [id_ for id_ in IDS if id_ != MACHINE]
PLAIN = f"{HERE / 'plain_store.py'}:open_store"
SKIPPED = [pytest.param(store, marks=pytest.mark.skip(reason=reason)) for store, reason in left_out().items()]


def verdicts(report: StoreReport) -> dict[str, Verdict]:
    return {result.clause: result.verdict for result in report.results}


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.target.rpartition(":")[2] for mutant in MUTANTS])
def test_a_mutant_fails_its_own_clause_and_no_other(mutant: Mutant) -> None:
    report = check_store(mutant.target, clauses=() if mutant.breaks == MACHINE else ALL_BUT_THE_MACHINE, seed=1)

    failed = {clause for clause, verdict in verdicts(report).items() if verdict is not Verdict.PASS}
    assert failed == {mutant.breaks, *mutant.also_breaks}
    assert not report.ok
    assert report.grade.level is None
    assert report.grade.text.startswith(
        f"no level: the store breaks {', '.join(sorted(failed, key=list(verdicts(report)).index))}\n"
    )
    [result] = [result for result in report.results if result.clause == mutant.breaks]
    tells_what_was_called_allowed_and_came(result, mutant)


def tells_what_was_called_allowed_and_came(result: ClauseResult, mutant: Mutant) -> None:
    finding = result.findings[0]
    assert result.verdict is Verdict.FAIL
    assert result.reason.startswith(finding.message)
    labels = [line.split()[0] for line in finding.story]
    assert labels[0] == "scenario"
    # A call that raised, and may not, has the line that raised instead.
    assert labels[-3:] == ["allowed", "came", "why"] or (labels[-1] == "raised" and " raised " in finding.message)
    assert any("load_or_create(" in line and "→" in line for line in finding.story)
    assert finding.replay is not None
    if mutant.breaks == MACHINE:
        assert finding.replay.startswith("n00dles-testing replay s1")
    else:
        assert finding.replay == f"n00dles-testing check {mutant.target} --clause {mutant.breaks} --seed 1"


def test_every_clause_has_a_mutant() -> None:
    broken = {mutant.breaks for mutant in MUTANTS}

    assert broken == set(IDS)


def test_every_clause_has_a_mutant_that_only_it_catches() -> None:
    # The test above has shown that such a mutant fails its own clause and passes all others.
    alone = {mutant.breaks for mutant in MUTANTS if not mutant.also_breaks}

    assert alone == set(IDS)


def test_the_form_for_programs_claims_no_level_that_was_checked_in_part() -> None:
    form = check_store("memory://", clauses=["S01", "S02", "S05"]).to_dict()

    assert form["level"] is None
    assert "level_so_far" not in form
    assert form["grade"].endswith("so no level is given")
    assert "P01" in form["not_implemented"]


def name_of(target: object) -> str:
    return str(target).rpartition(":")[2]


@pytest.mark.parametrize("target", [*correct_stores(), *SKIPPED, PLAIN], ids=name_of)
def test_a_correct_store_passes(target: str) -> None:
    report = check_store(target)

    assert verdicts(report) == dict.fromkeys(IDS, Verdict.PASS)
    assert report.grade.level is None
    assert all(result.scenarios >= 2 for result in report.results)


@pytest.mark.parametrize("target", correct_stores(), ids=name_of)
def test_a_correct_store_passes_with_other_values_drawn(target: str) -> None:
    report = check_store(target, clauses=[id_ for id_ in IDS if id_.startswith("S")], seed=2)

    assert set(verdicts(report).values()) == {Verdict.PASS}


def test_no_fault_is_found_in_the_sqlite_store_of_the_project(tmp_path: Path) -> None:
    report = check_store(f"sqlite:///{tmp_path}/runs.db")

    assert set(verdicts(report).values()) == {Verdict.PASS}
    assert report.grade.text.startswith(f"no fault found by {', '.join(IDS)}\nnot checked by this release: ")
    assert report.grade.text.endswith(f", and more, {36 - len(IDS)} of 36 clauses; so no level is given")


def test_the_memory_store_proves_that_clauses_about_crashes_are_not_for_it() -> None:
    report = check_store("memory://")

    not_for_memory = [id_ for id_ in IDS if id_.startswith("C") or id_ == "S10"]
    assert verdicts(report) == {id_: Verdict.NOT_APPLICABLE if id_ in not_for_memory else Verdict.PASS for id_ in IDS}
    for reason in {result.reason for result in report.results if result.clause in not_for_memory}:
        assert "not found in this one, and that process opened no file" in reason
    assert report.ok
    words = "; ".join(f"{id_} NOT APPLICABLE" for id_ in not_for_memory)
    passed = ", ".join(id_ for id_ in IDS if id_ not in not_for_memory)
    assert report.grade.text.startswith(f"no fault found by {passed}; {words}\n")


def test_a_store_without_revisions_is_told_so() -> None:
    [result] = check_store(PLAIN, clauses=["S02"]).results

    assert (result.verdict, result.reason) == (
        Verdict.PASS,
        "the store keeps no revision: S08 tells what a stale save does",
    )


def test_a_report_in_which_nothing_passed_is_not_ok() -> None:
    report = check_store("memory://", clauses=["C02"])

    assert [result.verdict for result in report.results] == [Verdict.NOT_APPLICABLE]
    assert not report.ok


def test_no_level_is_claimed_for_what_was_not_asked() -> None:
    report = check_store("memory://", clauses=["s05"])

    assert [result.clause for result in report.results] == ["S05"]
    assert report.grade.level is None
    assert report.grade.text.startswith("no fault found by S05\n")


def test_a_report_names_the_clauses_that_are_not_implemented() -> None:
    report = check_store("memory://", clauses=["S05"])

    clauses = {id_ for _, ids in LEVELS.values() for id_ in ids}
    assert set(report.grade.not_implemented) == clauses - set(IDS)


def passed(ids: Iterable[str]) -> list[ClauseResult]:
    return [ClauseResult(id_, "x", Verdict.PASS, scenarios=1) for id_ in ids]


@pytest.mark.parametrize(
    ("ids", "level"),
    [
        ((), None),
        (LEVELS[1][1][:-1], None),
        (LEVELS[2][1], None),
        (LEVELS[1][1], 1),
        (LEVELS[1][1] + LEVELS[2][1][1:], 1),
        (LEVELS[1][1] + LEVELS[2][1], 2),
    ],
)
def test_a_level_is_given_only_if_every_clause_of_it_has_passed(ids: tuple[str, ...], level: int | None) -> None:
    assert grade(passed(ids)).level == level


def test_what_showed_nothing_is_not_called_a_fault() -> None:
    vacuous = ClauseResult("C02", "x", Verdict.VACUOUS)

    assert grade([vacuous]).text.startswith("nothing was shown; C02 VACUOUS\n")
