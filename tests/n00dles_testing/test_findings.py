"""One root cause is told once, however many crash points show it."""

from __future__ import annotations

from n00dles_testing.findings import few
from n00dles_testing.verdicts import Finding


def test_faults_that_differ_in_numbers_and_values_are_told_once_by_the_shortest_story() -> None:
    long = Finding("E02", "`a` was called again in life 2.", ("one", "two"))
    short = Finding("E02", "`a` was called again in life 3.", ("one",))
    other = Finding("E02", "`b` was called again in life 2.", ("one", "two", "three"))

    assert few([long, short, other]) == ([short, other], 1)


def test_at_most_three_kinds_are_told_and_the_rest_is_counted() -> None:
    findings = [Finding("E02", f"`{name}` was called again in life 2.") for name in "abcde"]

    told, left = few(findings)

    assert [finding.message[1] for finding in told] == ["a", "b", "c"]
    assert left == 2
