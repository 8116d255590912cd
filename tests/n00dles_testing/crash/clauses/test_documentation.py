"""One registry knows all clauses of the executor, and what a reader wants to know of each."""

from __future__ import annotations

import re

import pytest

from n00dles_testing.crash.case import Clause
from n00dles_testing.crash.clauses import CLAUSES, JUDGED, related
from n00dles_testing.crash.clauses.documentation import documented
from tests.n00dles_testing.crash.mutants import MUTANTS

REPORT = re.compile(r"[\w.-]+/[\w.-]+ (PR )?#\d+")


def test_the_registry_has_every_clause_of_the_contract_in_order() -> None:
    assert [clause.id for clause in CLAUSES] == [f"E{number:02}" for number in range(1, 19)]
    assert {clause.id for clause in CLAUSES} - {clause.id for clause in JUDGED} == {"E08", "E09", "E16"}


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.id)
def test_each_clause_says_what_it_means_where_it_was_seen_and_how_to_keep_it(clause: Clause) -> None:
    assert not clause.title.endswith(".")
    assert "" not in (clause.title, clause.meaning, clause.fix, clause.without)
    assert [report for report in clause.seen_in if not REPORT.match(report)] == []
    assert clause.seen_in
    assert set(clause.sharpens) <= {each.id for each in CLAUSES} - {clause.id}


def test_a_docstring_is_read_as_title_meaning_reports_and_fix() -> None:
    doc = """E99: it works.

    Each time.
    Always.

    Also on Sundays.

    Seen in: a/b #1 (it did not; it never does); c/d PR #2.

    Fix: try
    again.
    """

    clause = documented(doc, without="never")

    assert (clause.id, clause.title) == ("E99", "it works")
    assert clause.meaning == "Each time. Always.\n\nAlso on Sundays."
    assert clause.seen_in == ("a/b #1 (it did not; it never does)", "c/d PR #2")
    assert clause.fix == "try again."


def test_a_clause_without_a_fix_is_refused() -> None:
    with pytest.raises(ValueError, match="E99"):
        documented("E99: it works.\n\nEach time.", without="never")


def test_a_special_case_is_related_to_its_general_clause_and_to_itself() -> None:
    assert [related("E06", other) for other in ("E06", "E02", "E12")] == [True, True, False]
    assert related("E02", "E06")


def test_each_clause_has_a_mutant() -> None:
    assert {mutant.breaks for mutant in MUTANTS} == {clause.id for clause in CLAUSES}
