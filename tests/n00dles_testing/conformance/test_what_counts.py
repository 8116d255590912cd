"""Nothing counts that could not have failed: scenarios without an expectation, edits without effect."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from n00dles_testing.conformance import Clause, check_store
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.conformance.scenario import Scenario
from n00dles_testing.conformance.spoil import spoil_run
from n00dles_testing.conformance.subject import StoreSubject
from n00dles_testing.conformance.target import StoreTarget
from n00dles_testing.conformance.worker import result_of
from n00dles_testing.verdicts import ClauseResult, Verdict

HERE = Path(__file__).parent


class Nobody:
    def scenario(self, number: int, title: str) -> None: ...

    def step(self, number: int, text: str) -> None: ...


def subject_in(folder: Path, target: str = correct_stores()[0]) -> StoreSubject:
    return StoreSubject(
        StoreTarget.parse(target), folder, clause="S05", seed=0, nonce="test", listener=Nobody(), memory={}
    )


def judged(check: Any, folder: Path) -> ClauseResult:
    return asyncio.run(result_of(Clause("S05", 1, "x", check), subject_in(folder)))


async def _opens_and_leaves(subject: StoreSubject) -> None:
    async with subject.scenario("leaves early") as s:
        await s.create()


async def _asks_and_never_compares(subject: StoreSubject) -> None:
    async with subject.scenario("forgets to compare") as s:
        s.expect(await s.create())


async def _one_of_three(subject: StoreSubject) -> None:
    await _opens_and_leaves(subject)
    async with subject.scenario("compares, twice") as s:
        run_id = (await s.create()).run_id
        await s.expect_acknowledged(run_id, because="it was created")
        await s.expect_acknowledged(run_id, because="it was created")
    async with subject.probe("counts for nothing") as s:
        await s.expect_acknowledged((await s.create()).run_id, because="it was created")


@pytest.mark.parametrize("check", [_opens_and_leaves, _asks_and_never_compares])
def test_a_check_that_compares_nothing_is_vacuous(check: Any, tmp_path: Path) -> None:
    result = judged(check, tmp_path)

    assert (result.verdict, result.scenarios) == (Verdict.VACUOUS, 0)
    assert result.reason == "no scenario came as far as an expectation, so nothing was shown"


def test_only_scenarios_with_an_expectation_count_and_each_once(tmp_path: Path) -> None:
    result = judged(_one_of_three, tmp_path)

    assert (result.verdict, result.scenarios) == (Verdict.PASS, 1)


def test_a_scenario_that_is_judged_by_other_means_than_a_comparison_counts_once(tmp_path: Path) -> None:
    async def check(subject: StoreSubject) -> None:
        async with subject.scenario("measures") as s:
            s.judged()
            s.judged()
        async with subject.probe("counts for nothing") as s:
            s.judged()

    result = judged(check, tmp_path)

    assert (result.verdict, result.scenarios) == (Verdict.PASS, 1)


def test_a_scenario_in_which_the_store_raises_counts(tmp_path: Path) -> None:
    async def check(subject: StoreSubject) -> None:
        async with subject.scenario("a save that raises") as s:
            handle = await s.create()
            s.raw.path = None  # calling it raises in the store
            await s.save(handle, {"node": 1})

    result = judged(check, tmp_path)

    assert (result.verdict, result.scenarios) == (Verdict.FAIL, 1)


def test_a_store_that_cannot_be_opened_refuses_neither_an_id_nor_a_save(tmp_path: Path) -> None:
    subject = subject_in(tmp_path, f"{HERE / 'hostile_stores.py'}:raises")
    loaded: Any = None  # nothing can be
    calls: dict[str, Callable[[Scenario], Awaitable[Any]]] = {
        "an id": lambda s: s.creates_or_refuses({"topic": "cats"}, "run-a"),
        "a save": lambda s: s.saves_or_refuses(loaded, {"node": 1}),
        "a late save": lambda s: s.late_save(loaded, {"node": 1}),
    }

    async def check() -> None:
        for title, call in calls.items():
            async with subject.scenario(title) as s:
                await call(s)

    asyncio.run(check())

    assert [finding.message for finding in subject.findings] == ["open raised RuntimeError: no database today"] * 3


class Frozen:
    """A run that hands out copies: whatever is done to them, nothing comes of it."""

    inputs = MappingProxyType({"topic": "cats"})

    @property
    def completed(self) -> dict[str, Any]:
        return {"researcher": {"facts": ["a"]}}

    @property
    def order(self) -> list[str]:
        return ["researcher"]


@pytest.mark.parametrize(
    ("run", "edits"),
    [
        (Frozen(), 0),
        (MappingProxyType({"inputs": (), "completed": None, "order": "text"}), 0),
        (MappingProxyType({"inputs": {"facts": ["a"]}, "completed": MappingProxyType({}), "order": ()}), 2),
        ({"inputs": {}, "completed": {"a": {"b": 1}}, "order": ["a"]}, 5),
    ],
)
def test_only_edits_that_took_effect_are_counted(run: Any, edits: int) -> None:
    assert spoil_run(run) == edits


def test_scenarios_in_which_nothing_could_be_edited_do_not_count() -> None:
    [result] = check_store(f"{HERE / 'hostile_stores.py'}:HandsOutCopiesOfCopies", clauses=["S05"]).results

    assert result.verdict is Verdict.PASS
    assert result.scenarios == 3
    assert "could not be edited, so that was not tried: " in result.reason


def test_our_own_context_can_be_edited_where_it_holds_containers() -> None:
    [result] = check_store("memory://", clauses=["S05"]).results

    assert (result.verdict, result.scenarios) == (Verdict.PASS, 8)
