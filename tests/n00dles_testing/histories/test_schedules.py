"""Small fixed schedules: every order is tried, once, and a store that looks and then writes is caught in some."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from n00dles import InMemoryStateStore
from n00dles.context import PipelineContext
from n00dles.errors import StaleContextError
from n00dles.stores.sqlite import SQLiteStateStore
from n00dles_testing.histories import History, judge
from n00dles_testing.histories.schedules import every_schedule


class LooksThenWrites(InMemoryStateStore):
    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        stored = await self.load(run_id)
        if stored is None or stored.revision != ctx.revision:
            raise StaleContextError("stale", run_id=run_id)
        await asyncio.sleep(0)
        ctx.revision = (await self.load_or_create(run_id, {})).revision
        await super().save(run_id, ctx)


class HasALock(InMemoryStateStore):
    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Lock()

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        async with self.lock:
            await asyncio.sleep(0)
            await super().save(run_id, ctx)


class AsksForItsTurn(InMemoryStateStore):
    saving = ""

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        while self.saving:
            await asyncio.sleep(0)
        self.saving = run_id
        try:
            await asyncio.sleep(0)
            await super().save(run_id, ctx)
        finally:
            self.saving = ""


def recorded(stores: Any, folder: Path, most: int = 500) -> list[History]:
    async def every() -> list[History]:
        return [history async for history in every_schedule(stores, folder, most=most)]

    return asyncio.run(every())


def order_of(history: History) -> str:
    """Return who began and ended what, in the order in which that came."""
    begun = [(call.invoked, f"{call.client} {call.operation}s") for call in history.calls[:-1]]
    ended = [(call.returned or 0, f"{call.client} has {call.outcome}") for call in history.calls[:-1]]
    return ", ".join(text for _, text in sorted(begun + ended))


def kinds(histories: Sequence[History]) -> Counter[str]:
    return Counter(judge(history).kind for history in histories)


def test_a_store_that_never_awaits_has_six_orders_each_tried_once(tmp_path: Path) -> None:
    histories = recorded(InMemoryStateStore(), tmp_path)

    assert len({order_of(history) for history in histories}) == len(histories) == 6
    assert set(kinds(histories)) == {"VACUOUS"}  # no two calls overlap, and none is wrong


def test_somebody_between_the_look_and_the_write_loses_an_update(tmp_path: Path) -> None:
    histories = recorded(LooksThenWrites(), tmp_path)

    found = kinds(histories)
    assert len({order_of(history) for history in histories}) == len(histories) == 20
    assert (found["FAIL(LOST_UPDATE)"], len(histories) - found["FAIL(LOST_UPDATE)"]) == (12, 8)


def test_two_store_objects_may_share_the_runs(tmp_path: Path) -> None:
    stores = [SQLiteStateStore(tmp_path / "runs.db") for _ in range(2)]

    found = kinds(recorded(stores, tmp_path))

    assert found.total() >= 6
    assert set(found) <= {"PASS", "VACUOUS"}


def test_who_waits_for_a_lock_is_passed_over(tmp_path: Path) -> None:
    async def within_one_loop() -> list[History]:
        return [history async for history in every_schedule(HasALock(), tmp_path)]

    histories = asyncio.run(within_one_loop())

    assert kinds(histories)["PASS"] >= 1
    assert set(kinds(histories)) <= {"PASS", "VACUOUS"}
    assert len(histories) < 30


def test_who_asks_for_a_turn_again_and_again_is_made_to_wait_for_the_other(tmp_path: Path) -> None:
    histories = recorded(AsksForItsTurn(), tmp_path, most=8)

    assert len(histories) == 8
    assert set(kinds(histories)) <= {"PASS", "VACUOUS"}
