"""The level, and what stops the next one, in words that claim no more than was tried."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from n00dles_testing.conformance.contract import LEVELS
from n00dles_testing.conformance.grade import grade, settled, spans
from n00dles_testing.conformance.sentences import SENTENCES
from n00dles_testing.verdicts import ClauseResult, Verdict

S, C, P, W = (LEVELS[level][1] for level in LEVELS)
ALL = (*S, *C, *P, *W)
NOT_FOR_IT = Verdict.NOT_APPLICABLE
UNKNOWN = [
    "level 3 (power-safe) and level 4 (shared): not checked by this release",
    "nothing is known of a power loss (P01–P03), a second worker (W01–W09)",
]


@pytest.fixture(autouse=True)
def _levels_1_and_2_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    checked_are(monkeypatch, S + C)


def checked_are(monkeypatch: pytest.MonkeyPatch, ids: Iterable[str]) -> None:
    module = importlib.import_module("n00dles_testing.conformance.grade")
    monkeypatch.setattr(module, "implemented", lambda: [SimpleNamespace(id=id_) for id_ in ids])


def results(ids: Iterable[str], **others: Verdict) -> list[ClauseResult]:
    verdicts = {**dict.fromkeys(ids, Verdict.PASS), **others}
    return [
        ClauseResult(id_, "x", verdict, f"the reason of {id_}; and a note", scenarios=1)
        for id_, verdict in verdicts.items()
    ]


@pytest.mark.parametrize(
    ("ids", "level"),
    [((), None), (S[:-1], None), (C, None), (S, 1), (S + C[1:], 1), (S + C, 2)],
)
def test_a_level_is_given_only_if_every_clause_of_it_has_passed(ids: tuple[str, ...], level: int | None) -> None:
    assert grade(results(ids)).level == level


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.VACUOUS, Verdict.UNKNOWN, Verdict.NOT_RUN])
@pytest.mark.parametrize(("clause", "level"), [("S09", None), ("C03", 1)])
def test_one_clause_that_has_not_passed_stops_its_level(verdict: Verdict, clause: str, level: int | None) -> None:
    found = grade(results(S + C, **{clause: verdict}))

    assert found.level == level
    assert f"not reached: {clause} {verdict.value}" in found.text


def test_a_store_without_records_on_disk_may_reach_level_1_and_no_more() -> None:
    aside = dict.fromkeys(("S10", "S16", *C), Verdict.NOT_APPLICABLE)

    found = grade(results(S, **aside))

    assert found.level == 1
    assert found.text.splitlines() == [
        "level 1 (contract): every clause of it passed; S10, S16 do not apply",
        "level 2 (crash-safe) does not apply: the reason of C01",
        *UNKNOWN,
    ]


@pytest.mark.parametrize(("clause", "level"), [("C04", 1), ("P02", 2), ("W03", 3), ("W05", 4), ("W07", 4), ("W09", 4)])
def test_what_does_not_apply_stops_a_level_unless_a_store_may_be_without_it(
    monkeypatch: pytest.MonkeyPatch, clause: str, level: int
) -> None:
    checked_are(monkeypatch, ALL)

    found = grade(results(ALL, **{clause: NOT_FOR_IT}))

    assert found.level == level


def test_a_store_whose_data_lies_with_a_server_reaches_level_4_without_level_3(monkeypatch: pytest.MonkeyPatch) -> None:
    checked_are(monkeypatch, ALL)

    found = grade(results(ALL, **dict.fromkeys(P, NOT_FOR_IT)))

    assert found.level == 4
    assert found.text.splitlines() == [
        "level 4 (shared): every clause of levels 1, 2 and 4 passed",
        "level 3 (power-safe) is the server's: the reason of P01",
    ]


def test_a_store_on_a_server_is_told_what_stops_level_4(monkeypatch: pytest.MonkeyPatch) -> None:
    checked_are(monkeypatch, ALL)

    found = grade(results(ALL, **dict.fromkeys(P, NOT_FOR_IT), W02=Verdict.FAIL, W07=NOT_FOR_IT))

    assert found.level == 2
    assert found.text.splitlines() == [
        "level 2 (crash-safe): every clause of levels 1 and 2 passed; the store breaks W02",
        "level 3 (power-safe) is the server's: the reason of P01",
        "level 4 (shared) not reached: W02 FAIL",
    ]


def test_a_store_of_files_reaches_level_4_without_a_server_to_lose(monkeypatch: pytest.MonkeyPatch) -> None:
    checked_are(monkeypatch, ALL)

    found = grade(results(ALL, W05=NOT_FOR_IT, W06=NOT_FOR_IT))

    assert found.text == "level 4 (shared): every clause of levels 1 to 4 passed; W05, W06 do not apply"


def test_a_store_that_is_not_shared_stays_below_level_4(monkeypatch: pytest.MonkeyPatch) -> None:
    checked_are(monkeypatch, ALL)

    found = grade(results(ALL, **dict.fromkeys(W, NOT_FOR_IT)))

    assert found.level == 3
    assert found.text.splitlines()[1] == "level 4 (shared) does not apply: the reason of W01"


def test_clauses_that_all_do_not_apply_reach_no_level() -> None:
    assert grade(results((), **dict.fromkeys(S, Verdict.NOT_APPLICABLE))).level is None


def test_level_2_says_what_is_above_it() -> None:
    assert grade(results(S + C)).text.splitlines() == [
        "level 2 (crash-safe): every clause of levels 1 and 2 passed",
        *UNKNOWN,
    ]


def test_a_failure_stands_in_the_first_line_whatever_level_was_reached() -> None:
    assert grade(results(S + C, C03=Verdict.FAIL)).text.splitlines() == [
        "level 1 (contract): every clause of it passed; the store breaks C03",
        "level 2 (crash-safe) not reached: C03 FAIL",
        *UNKNOWN,
    ]
    assert grade(results(S + C, S05=Verdict.FAIL, C03=Verdict.FAIL)).text.splitlines()[:2] == [
        "no level: the store breaks S05, C03",
        "level 1 (contract) not reached: S05 FAIL",
    ]


def test_what_was_not_run_says_what_to_do() -> None:
    assert grade(results(S + C, S13=Verdict.NOT_RUN)).text.splitlines()[1:3] == [
        "level 1 (contract) not reached: S13 NOT RUN",
        "  S13 was not run: the reason of S13",
    ]


def test_what_was_not_asked_for_is_no_pass() -> None:
    assert grade(results(("S01", "S05"))).text.splitlines()[:2] == [
        "no level: no fault found by S01, S05",
        "level 1 (contract) not reached: S02–S04, S06–S18 not asked for",
    ]


def test_what_has_no_check_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    checked_are(monkeypatch, [*S, "C01", "C02"])

    found = grade(results([*S, "C01", "C02"]))

    assert found.text.splitlines() == [
        "level 1 (contract): every clause of it passed",
        "level 2 (crash-safe) not reached: C03–C06 not checked by this release",
        *UNKNOWN,
    ]
    assert found.not_implemented == (*C[2:], *LEVELS[3][1], *LEVELS[4][1])


def test_what_lies_beyond_the_next_level_is_named_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    checked_are(monkeypatch, [*S[:-1], "C01"])

    lines = grade(results([*S[:-1], "C01"])).text.splitlines()

    assert lines[1] == "level 1 (contract) not reached: S18 not checked by this release"
    assert lines[3] == (
        "nothing is known of a kill inside a save (C03), faults (C04, C05), a power loss (P01–P03), "
        "a second worker (W01–W09), C02, C06"
    )


def test_what_showed_nothing_is_not_called_a_fault() -> None:
    assert grade(results((), C02=Verdict.VACUOUS)).text.startswith("no level: nothing was shown\n")


def test_a_run_of_ids_is_written_short() -> None:
    assert spans(["S01", "S02", "S03", "S05", "S06", "S08", "C01"]) == "S01–S03, S05, S06, S08, C01"
    assert spans([]) == ""


def test_each_clause_of_a_level_has_its_sentence() -> None:
    assert {id_ for _, ids in LEVELS.values() for id_ in ids} <= set(SENTENCES)


def left_out(**others: Verdict) -> list[ClauseResult]:
    return [replace(each, untried=("a delete",)) if each.clause == "C03" else each for each in results(S + C, **others)]


def test_what_was_left_out_for_a_fault_that_no_other_clause_has_found_is_unknown() -> None:
    [c03] = [each for each in settled(left_out(S10=Verdict.NOT_APPLICABLE)) if each.clause == "C03"]

    assert c03.verdict is Verdict.UNKNOWN
    assert c03.reason.startswith("a delete came out wrong undisturbed, which no other clause has seen")
    assert grade(left_out()).level == 1


@pytest.mark.parametrize(
    "found",
    [left_out(S07=Verdict.FAIL), left_out(C02=Verdict.VACUOUS), [each for each in left_out() if each.clause == "C03"]],
)
def test_what_was_left_out_for_a_fault_that_is_told_or_not_asked_for_leaves_a_pass(found: list[ClauseResult]) -> None:
    assert settled(found) == tuple(found)
