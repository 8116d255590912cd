"""The parts that every check trusts: exact comparison, the registry, the proof of a kill."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance import Clause, clause, select
from n00dles_testing.conformance.clauses import c02_kill
from n00dles_testing.conformance.elsewhere import Elsewhere
from n00dles_testing.conformance.expect import MisuseError, NotApplicableError, VacuousCheck
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.conformance.nursery import Nursery
from n00dles_testing.conformance.processes import describe_exit
from n00dles_testing.conformance.records import Record, UnreadableReplyError, difference
from n00dles_testing.conformance.subject import StoreSubject
from n00dles_testing.conformance.target import StoreTarget
from n00dles_testing.conformance.worker import _judged
from n00dles_testing.verdicts import ClauseResult, Verdict


@pytest.mark.parametrize(
    ("wanted", "came", "found"),
    [
        (1, True, "x is True (bool), not 1 (int)"),
        (1, 1.0, "x is 1.0 (float), not 1 (int)"),
        (0.0, -0.0, "x is -0.0, not 0.0"),
        ("a\n", "a", r"x is 'a', not 'a\n'"),
        ("caf\u00e9", "cafe\u0301", r"x is 'cafe\u0301', not 'caf\xe9'"),
        (2**53 + 1, 2**53, "x is 9007199254740992, not 9007199254740993"),
        ([], {}, "x is {} (dict), not [] (list)"),
        (None, "", "x is '' (str), not None (NoneType)"),
        ({"a": {"b": [1, None]}}, {"a": {"b": [1, {}]}}, "x['a']['b'][1] is {} (dict), not None (NoneType)"),
        ({"a": None}, {}, "x['a'] is missing; it should be None"),
        ({}, {"a": None}, "x['a'] is None, and should not be there"),
        (["a", "b"], ["b", "a"], "x[0] is 'b', not 'a'"),
        (["a"], ["a", "a"], "x is ['a', 'a'], not ['a']"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, None),
    ],
)
def test_values_are_compared_exactly(wanted: Any, came: Any, found: str | None) -> None:
    assert difference(wanted, came, "x") == found


def test_records_differ_in_the_order_of_completion() -> None:
    wanted = Record({"topic": "x"}).after({"writer": 1}).after({"editor": 2})

    assert difference(wanted, Record({"topic": "x"}, {"writer": 1, "editor": 2}, ("editor", "writer"))) == (
        "order[0] is 'editor', not 'writer'"
    )


def test_records_by_name_do_not_differ_in_the_order_of_completion() -> None:
    one = Record({"topic": "x"}).after({"writer": 1}).after({"editor": 2})
    other = Record({"topic": "x"}).after({"editor": 2}).after({"writer": 1})

    assert one.by_name() == other.by_name()
    assert (one.by_name().order, one.order) == (("editor", "writer"), ("writer", "editor"))


def test_a_record_is_a_copy() -> None:
    reply: dict[str, Any] = {"inputs": {"a": [1]}, "completed": {"n": {"b": 2}}, "order": ["n"]}

    record = Record.read(reply)
    reply["inputs"]["a"].append(2)

    assert record == Record({"a": [1]}, {"n": {"b": 2}}, ("n",))


@pytest.mark.parametrize("reply", [None, {}, {"inputs": {}, "completed": [], "order": []}, 3])
def test_a_reply_that_is_no_run_cannot_be_read(reply: Any) -> None:
    with pytest.raises(UnreadableReplyError):
        Record.read(reply)


def test_a_clause_must_be_in_the_contract_and_documented() -> None:
    async def documented(subject: StoreSubject) -> None:
        """Say something."""

    for id_, level, check, complaint in (
        ("S99", 1, documented, "has no clause 'S99'"),
        ("S03", 2, documented, "has no clause 'S03' at level 2"),
        ("S05", 1, documented, "S05 has a check already"),
    ):
        select()
        with pytest.raises(ValueError, match=complaint):
            clause(id_, level=level, title="x")(check)


def test_a_clause_without_documentation_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(subject: StoreSubject) -> None: ...

    select()
    monkeypatch.delitem(clause.__globals__["_clauses"], "W01")
    with pytest.raises(ValueError, match="no docstring"):
        clause("W01", level=4, title="x")(silent)


def test_an_unknown_clause_is_refused_by_name() -> None:
    with pytest.raises(KeyError, match="no check for W10, X1; this release checks S01"):
        select(["s01", "W10", "X1"])


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "ended with exit status 0"),
        (-9, "was killed by SIGKILL"),
        (None, "did not end"),
        (-99, "was killed by signal 99"),
    ],
)
def test_an_exit_is_told_in_words(status: int | None, words: str) -> None:
    assert describe_exit(status) == words


class _Nobody:
    def scenario(self, number: int, title: str) -> None: ...

    def step(self, number: int, text: str) -> None: ...


def subject_of(clause_id: str, folder: Path, nursery: Nursery | None = None) -> StoreSubject:
    target = StoreTarget.parse(correct_stores()[0])
    return StoreSubject(
        target,
        folder,
        clause=clause_id,
        seed=0,
        nonce="test",
        listener=_Nobody(),
        memory={"durability": (True, [], True), "nursery": nursery},
    )


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    nursery = Nursery(correct_stores()[0])
    yield nursery
    nursery.close()


def test_a_kill_that_did_not_happen_is_vacuous(
    tmp_path: Path, nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = Elsewhere._exchange

    async def without_the_kill(self: Elsewhere, message: dict[str, Any], *step: int) -> dict[str, Any] | None:
        return await exchange(self, {**message, "die": False}, *step)

    monkeypatch.setattr(Elsewhere, "_exchange", without_the_kill)
    monkeypatch.setattr("n00dles_testing.conformance.elsewhere._TIME_TO_DIE", 0.1)

    with pytest.raises(VacuousCheck, match="that was to die by SIGKILL after its acknowledgement did not end"):
        asyncio.run(c02_kill.kept_after_kill(subject_of("C02", tmp_path, nursery)))


def test_an_end_by_anything_but_signal_9_is_vacuous(
    tmp_path: Path, nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = Elsewhere._exchange

    async def a_graceful_end(self: Elsewhere, message: dict[str, Any], *step: int) -> dict[str, Any] | None:
        reply = await exchange(self, {**message, "die": False}, *step)
        if message.get("die"):
            os.kill(self._process.pid, signal.SIGTERM)
        return reply

    monkeypatch.setattr(Elsewhere, "_exchange", a_graceful_end)

    with pytest.raises(VacuousCheck, match="was killed by SIGTERM, so nothing was shown"):
        asyncio.run(c02_kill.kept_after_kill(subject_of("C02", tmp_path, nursery)))


def judged(check: Any, folder: Path) -> tuple[Verdict, str]:
    return asyncio.run(_judged(Clause("S05", 1, "x", check), subject_of("S05", folder)))


async def _vacuous(subject: StoreSubject) -> None:
    raise VacuousCheck("nobody died")


async def _not_applicable(subject: StoreSubject) -> None:
    raise NotApplicableError("it keeps nothing")


async def _misused(subject: StoreSubject) -> None:
    raise MisuseError("no location")


async def _broken(subject: StoreSubject) -> None:
    raise KeyError("oops")


async def _interrupted(subject: StoreSubject) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("check", "verdict", "reason"),
    [
        (_vacuous, Verdict.VACUOUS, "nobody died"),
        (_not_applicable, Verdict.NOT_APPLICABLE, "it keeps nothing"),
        (_misused, Verdict.NOT_RUN, "no location"),
        (_broken, Verdict.VACUOUS, "the check itself broke, please report it: KeyError: 'oops'"),
    ],
)
def test_every_end_of_a_check_has_its_verdict(check: Any, verdict: Verdict, reason: str, tmp_path: Path) -> None:
    came, said = judged(check, tmp_path)

    assert came is verdict
    assert said.startswith(reason)


def test_an_interrupt_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        judged(_interrupted, tmp_path)


def test_a_check_that_tried_nothing_shows_nothing() -> None:
    result = ClauseResult("S05", "x", Verdict.PASS, scenarios=0)

    assert result.verdict is Verdict.VACUOUS
