"""Leases of our stores: one holder at a time, until it releases the run or its time is over."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from n00dles import InMemoryStateStore, RunLockedError, SQLiteStateStore, StateStore
from n00dles.stores import Lease, Leases, ListsLeases, as_store, leases, sqlite_leases
from tests.n00dles.stores.each import Factory, on_store

HOUR = 3600.0


class Clock:
    """The clocks of the stores, which a test moves: `now` never steps, `wall` may."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.wall = 1_700_000_000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.wall

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(leases, "time", clock)
    monkeypatch.setattr(sqlite_leases, "time", clock)
    return clock


def test_a_run_that_is_held_is_refused_to_others_and_another_run_is_not(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        first = await store.acquire("r", "worker A", 30)
        other = await store.acquire("R", "worker B", 30)
        with pytest.raises(RunLockedError) as caught:
            await store.acquire("r", "worker B", 30)
        return first, other, caught.value

    first, other, error = on_store(work, make_store)

    assert (first.run_id, first.holder, other.run_id) == ("r", "worker A", "R")
    assert first.expires_at - first.since == pytest.approx(30)
    assert (error.run_id, error.holder) == ("r", "worker A")
    assert "run 'r' is held by worker A" in str(error)
    assert "Nothing was called or changed. Wait for it to end" in str(error)


def test_a_released_run_is_free_and_may_be_released_again(make_store: Factory) -> None:
    async def work(store: Any) -> Lease:
        first = await store.acquire("r", "A", 30)
        await store.release(first)
        await store.release(first)
        second: Lease = await store.acquire("r", "B", 30)
        return second

    assert on_store(work, make_store).holder == "B"


def test_an_expired_run_is_taken_over_and_its_first_holder_is_told(make_store: Factory, clock: Clock) -> None:
    async def work(store: Any) -> Any:
        first = await store.acquire("r", "A", 30)
        clock.now += 29.9
        with pytest.raises(RunLockedError):
            await store.acquire("r", "B", 30)
        clock.now += 0.2
        second = await store.acquire("r", "B", 30)
        with pytest.raises(RunLockedError) as caught:
            await store.renew(first, 30)
        await store.release(first)
        return second, caught.value, await store.list_leases(["r"])

    second, error, held = on_store(work, make_store)

    assert error.holder == "B"
    assert "run 'r' was taken over by B" in str(error)
    assert held == [second]


def test_a_lease_that_is_renewed_lasts_from_then_on(make_store: Factory, clock: Clock) -> None:
    async def work(store: Any) -> Any:
        first = await store.acquire("r", "A", 30)
        clock.now += 20
        clock.wall += 20
        renewed = await store.renew(first, 30)
        clock.now += 20
        with pytest.raises(RunLockedError):
            await store.acquire("r", "B", 30)
        return first, renewed

    first, renewed = on_store(work, make_store)

    assert (renewed.token, renewed.since) == (first.token, first.since)
    assert renewed.expires_at == first.expires_at + 20


def test_an_expired_lease_that_nobody_has_taken_can_be_renewed(make_store: Factory, clock: Clock) -> None:
    async def work(store: Any) -> Any:
        first = await store.acquire("r", "A", 30)
        clock.now += HOUR
        gone = await store.list_leases(["r"])
        renewed = await store.renew(first, 30)
        return gone, renewed, await store.list_leases(["r"])

    gone, renewed, held = on_store(work, make_store)

    assert gone == []
    assert held == [renewed]


def test_a_lease_that_another_has_had_meanwhile_cannot_be_renewed(make_store: Factory, clock: Clock) -> None:
    async def work(store: Any) -> Any:
        first = await store.acquire("r", "A", 30)
        clock.now += HOUR
        await store.release(await store.acquire("r", "B", 30))
        with pytest.raises(RunLockedError) as caught:
            await store.renew(first, 30)
        return caught.value

    error = on_store(work, make_store)

    assert error.holder is None
    assert "run 'r' is no longer held by this worker: its lease had expired" in str(error)


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_step_of_the_wall_clock_gives_no_second_holder_and_keeps_none_out(
    make_store: Factory, clock: Clock, step: float
) -> None:
    async def work(store: Any) -> Any:
        await store.acquire("r", "A", 30)
        clock.wall += step
        with pytest.raises(RunLockedError):
            await store.acquire("r", "B", 30)
        clock.now += 31
        return await store.acquire("r", "B", 30)

    assert on_store(work, make_store).holder == "B"


def test_a_deleted_run_is_free_and_its_holder_is_told(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        await store.load_or_create("r", {})
        first = await store.acquire("r", "A", 30)
        await store.delete("r")
        second = await store.acquire("r", "B", 30)
        with pytest.raises(RunLockedError):
            await store.renew(first, 30)
        return second, await store.list_leases(["r"])

    second, held = on_store(work, make_store)

    assert [lease.token for lease in held] == [second.token]


def test_only_leases_that_are_held_now_are_listed(make_store: Factory, clock: Clock) -> None:
    async def work(store: Any) -> Any:
        held = [await store.acquire(run_id, "A", 60) for run_id in ("a", "b")]
        await store.acquire("short", "A", 1)
        await store.release(await store.acquire("gone", "A", 60))
        clock.now += 2
        return held, await store.list_leases(["b", "a", "short", "gone", "never"]), await store.list_leases([])

    held, listed, none = on_store(work, make_store)

    assert sorted(listed, key=lambda lease: lease.run_id) == held
    assert none == []


@pytest.mark.parametrize("run_id", ["a" * 10_000, "ü\N{PILE OF POO}\n\t\"'\\", "../x", "a\x00b", " "])
def test_any_run_id_can_be_held(make_store: Factory, run_id: str) -> None:
    async def work(store: Any) -> Any:
        await store.acquire(run_id, "A", 30)
        with pytest.raises(RunLockedError):
            await store.acquire(run_id, "B", 30)
        return await store.list_leases([run_id])

    assert [lease.run_id for lease in on_store(work, make_store)] == [run_id]


@pytest.mark.parametrize("holder", ["", "h" * 5_000, "\N{PILE OF POO}" * 500, "a\nb\x00", '"{}"'])
def test_any_text_names_a_holder(make_store: Factory, holder: str) -> None:
    async def work(store: Any) -> Any:
        lease = await store.acquire("r", holder, 30)
        return await store.renew(lease, 30), await store.list_leases(["r"])

    renewed, listed = on_store(work, make_store)

    assert [lease.token for lease in listed] == [renewed.token]


def test_our_stores_offer_leases_and_a_plain_one_does_not() -> None:
    class Plain:
        async def load_or_create(self, run_id: str, inputs: Any) -> Any: ...
        async def save(self, run_id: str, ctx: Any) -> None: ...
        async def delete(self, run_id: str) -> None: ...

    class WithLeases(Plain):
        def acquire(self, run_id: str, holder: str, ttl: float) -> str:
            return f"{run_id} for {holder}"

        def renew(self, lease: str, ttl: float) -> str:
            return f"{lease} again"

        def release(self, lease: str) -> None: ...

    plain, leased = as_store(Plain()), as_store(WithLeases())
    lease: Any = asyncio.run(leased.acquire("r", "A", 30)) if isinstance(leased, Leases) else None

    assert not isinstance(plain, Leases)
    assert lease == "r for A"
    assert not isinstance(leased, ListsLeases)
    assert all(isinstance(store, Leases) and isinstance(store, ListsLeases) for store in _ours())


def _ours() -> list[StateStore]:
    return [InMemoryStateStore(), SQLiteStateStore(Path("unused.db"))]
