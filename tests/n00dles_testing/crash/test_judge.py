"""Each clause catches the executor that breaks it, no other clause does, and the correct executor passes them all."""

from __future__ import annotations

from typing import Any

import pytest

from n00dles_testing.crash import ExplorationReport, explore
from n00dles_testing.crash.clauses import related
from n00dles_testing.verdicts import Verdict
from tests.n00dles_testing.crash import mutants, pipelines

CHAIN = (pipelines.chain, {"topic": " ways to crash "})
CONVERSATION = (pipelines.conversation, {"topic": "crashes"})
FAN = (pipelines.fan, {"text": "tea"})


def explored(executor: mutants.Executor, subject: tuple[Any, dict[str, Any]]) -> ExplorationReport:
    pipeline, inputs = subject
    return explore(pipeline, inputs, mode="in-process", store=mutants.WholeStore(), executor=executor)


def broken(report: ExplorationReport, *, besides: str = "") -> set[str]:
    """Return the broken clauses, without those that a fault of the clause `besides` breaks as well."""
    found = {clause.clause for clause in report.clauses if not clause.ok or clause.verdict is Verdict.UNKNOWN}
    return {clause for clause in found if clause == besides or not besides or not related(clause, besides)}


@pytest.mark.parametrize("subject", [CHAIN, CONVERSATION, FAN], ids=lambda subject: subject[0].name)
def test_the_correct_executor_passes_every_clause_at_every_point(subject: tuple[Any, dict[str, Any]]) -> None:
    report = explored(mutants.reference, subject)

    assert broken(report) == set()
    assert {row.verdict for row in report.rows} == {Verdict.PASS}
    tried = {clause.clause for clause in report.clauses if clause.scenarios > 0}
    assert tried >= {"E01", "E02", "E03", "E04", "E05", "E17", "E18"}


@pytest.mark.parametrize(
    ("mutant", "subject"),
    [
        (mutants.SavesWhenTheRunEnds(), CHAIN),
        (mutants.ForgetsTheLastNode(), CHAIN),
        (mutants.HoldsBackTheFirstMember(), FAN),
        (mutants.SavesAtTheJoin(), FAN),
        (mutants.DrawsANewKey(), CHAIN),
        (mutants.DrawsANewKey(), CONVERSATION),
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

    assert broken(report, besides=mutant.breaks) == {mutant.breaks}
    assert report.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("mutant", "subject", "at", "clauses"),
    [
        (mutants.CallsTwice(), CHAIN, "after-save:draft", "E03 E05"),
        (mutants.AlwaysCallsTwice(), CHAIN, "run-started", "E03 E05"),
        (mutants.NeverCountsTokens(), CONVERSATION, "run-started", "E05"),
        (mutants.ReportsSuccessWithNothingRun(), CHAIN, "after-save:draft", "E04 E05 E17"),
        (mutants.TakesTheOtherRoute(), (pipelines.fan, {"text": "assam"}), "after-save:join", "E04 E05 E17"),
        (mutants.TakesTheOtherRoute(), (pipelines.fan, {"text": "assam"}), "before:shorten", "E04 E05 E07 E17"),
        (mutants.LosesItsTraces(), CHAIN, "after-save:draft", "E05"),
        (mutants.FailsToResume(), CHAIN, "after-save:draft", "E04"),
        (mutants.ForgetsTheResult(), CHAIN, "after-save:draft", "E17"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, mutants.Executor) else "",
)
def test_every_part_of_a_check_can_fail(
    mutant: mutants.Executor, subject: tuple[Any, dict[str, Any]], at: str, clauses: str
) -> None:
    pipeline, inputs = subject

    report = explore(pipeline, inputs, mode="in-process", store=mutants.WholeStore(), executor=mutant, at=[at])

    assert broken(report) == set(clauses.split())


MESSAGES = [
    (
        mutants.SavesWhenTheRunEnds(),
        CHAIN,
        "during:edit",
        "`edit` was started in life 1 before the output of `draft` was in the store.",
    ),
    (
        mutants.ForgetsTheLastNode(),
        CONVERSATION,
        "after-save:answer",
        "`answer` was called again in life 2 (paid twice), though its save was acknowledged in life 1.",
    ),
    (
        mutants.HoldsBackTheFirstMember(),
        FAN,
        "after-save:middle",
        "`left` was called again in life 2, though it had returned in life 1 before a save that left it out.",
    ),
    (
        mutants.SavesAtTheJoin(),
        FAN,
        "during:right",
        "`left` was called again in life 2, though it had returned in life 1 and no save of it was begun, though other "
        "nodes went on.",
    ),
    (
        mutants.DrawsANewKey(),
        CONVERSATION,
        "after:ask",
        "`ask` got another idempotency key in life 2 than before.",
    ),
    (
        mutants.ReturnsText(),
        (pipelines.conversation, {"topic": "x"}),
        "after-save:ask",
        'the resumed run returned "X - signed " at output, where the undisturbed one returned "X - signed".',
    ),
    (
        mutants.PassesDicts(),
        CHAIN,
        "after-save:draft",
        "`edit` got a dict on resume (life 2, article) where it got `Article` before: annotate the parameter, or read "
        "it as a dict.",
    ),
    (
        mutants.AsksAnotherQuestion(),
        CONVERSATION,
        "after-save:ask",
        "the LLM request of `answer` differs in life 2, in its system: "
        '"Answer the question. You are resuming." instead of "Answer the question.".',
    ),
    (
        mutants.ForgetsTheCost(),
        CONVERSATION,
        "after-save:ask",
        "`ask` has 0 input_tokens in the result, where its calls make 10.",
    ),
    (
        mutants.RunsAgain(),
        CHAIN,
        "after-save:draft",
        "the run was finished, and life 3 called `draft`, `edit`, `publish` again.",
    ),
    (
        mutants.FailsToResume(),
        CHAIN,
        "after-save:draft",
        "the resumed run failed: KeyError: 'worker-1'.",
    ),
]


@pytest.mark.parametrize(("mutant", "subject", "at", "message"), MESSAGES, ids=[type(m[0]).__name__ for m in MESSAGES])
def test_a_finding_says_in_one_sentence_what_happened_to_which_node(
    mutant: mutants.Executor, subject: tuple[Any, dict[str, Any]], at: str, message: str
) -> None:
    pipeline, inputs = subject

    report = explore(pipeline, inputs, mode="in-process", store=mutants.WholeStore(), executor=mutant, at=[at])

    assert message in [finding.message for finding in report.findings]


def test_a_server_that_is_paid_more_often_than_it_was_asked_breaks_e03() -> None:
    counts = iter([0, 2, 0, 2, 0, 2, 0, 7])

    report = explore(
        pipelines.conversation,
        {"topic": "x"},
        mode="in-process",
        executor=mutants.reference,
        paid=lambda scenario: next(counts),
        at=["after-save:ask"],
    )

    assert broken(report) == {"E03"}
    assert "was paid for 7 calls, though the nodes sent only 2 requests" in report.findings[0].message
