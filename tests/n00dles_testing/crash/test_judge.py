"""Each clause catches the executor that breaks it, no other clause does, and the correct executor passes them all."""

from __future__ import annotations

from typing import Any

import pytest

from n00dles_testing.crash import ExplorationReport, explore
from n00dles_testing.verdicts import Verdict
from tests.n00dles_testing.crash import mutants, pipelines

CHAIN = (pipelines.chain, {"topic": " ways to crash "})
CONVERSATION = (pipelines.conversation, {"topic": "crashes"})
FAN = (pipelines.fan, {"text": "tea"})


def explored(executor: mutants.Executor, subject: tuple[Any, dict[str, Any]]) -> ExplorationReport:
    pipeline, inputs = subject
    return explore(pipeline, inputs, mode="in-process", store=mutants.WholeStore(), executor=executor)


def broken(report: ExplorationReport) -> set[str]:
    return {clause.clause for clause in report.clauses if clause.verdict is not Verdict.PASS}


@pytest.mark.parametrize("subject", [CHAIN, CONVERSATION, FAN], ids=lambda subject: subject[0].name)
def test_the_correct_executor_passes_every_clause_at_every_point(subject: tuple[Any, dict[str, Any]]) -> None:
    report = explored(mutants.reference, subject)

    assert broken(report) == set()
    assert {row.verdict for row in report.rows} == {Verdict.PASS}
    assert all(clause.scenarios >= len(report.rows) > 0 for clause in report.clauses)


@pytest.mark.parametrize(
    ("mutant", "subject"),
    [
        (mutants.SavesWhenTheRunEnds(), CHAIN),
        (mutants.ForgetsTheLastNode(), CHAIN),
        (mutants.HoldsBackTheFirstMember(), FAN),
        (mutants.ReturnsText(), CHAIN),
        (mutants.PassesDicts(), CHAIN),
        (mutants.AsksAnotherQuestion(), CONVERSATION),
        (mutants.ForgetsTheCost(), CONVERSATION),
        (mutants.RunsAgain(), CHAIN),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, mutants.Executor) else "",
)
def test_a_broken_executor_is_caught_by_the_clause_that_it_breaks_and_by_no_other(
    mutant: mutants.Executor, subject: tuple[Any, dict[str, Any]]
) -> None:
    report = explored(mutant, subject)

    assert broken(report) == {mutant.breaks}
    assert report.verdict is Verdict.FAIL
    assert {finding.clause for finding in report.findings} == {mutant.breaks}
