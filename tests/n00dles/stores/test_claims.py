"""What a claim gives a worker: runs that are to be worked on and that nobody holds, each to one worker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from n00dles import (
    ConfigurationError,
    InMemoryStateStore,
    PipelineContext,
    PostgresStateStore,
    RedisStateStore,
    RunLockedError,
    SQLiteStateStore,
)
from n00dles.stores import Claim, Claims
from n00dles.stores.claims import check_claimable, claim_runs
from tests.n00dles.stores.each import Factory, on_store

HOUR = 3600.0


@pytest.fixture
def claims_run_by_run() -> None:
    """Asked for by tests of what may happen between two steps: of stores that lease each run in a step of its own."""


async def put(store: Any, run_id: str, status: Any = "waiting", pipeline: str | None = "flow") -> PipelineContext:
    """Store a run of this status, as the last updated one."""
    ctx = PipelineContext(run_id, {})
    ctx.status, ctx.pipeline = status, pipeline
    await store.save(run_id, ctx)
    await asyncio.sleep(0.002)  # so that no two have one time
    return ctx


async def claimed(store: Any, limit: int = 99, skip: tuple[str, ...] = (), pipelines: Any = ("flow",)) -> list[Claim]:
    return await claim_runs(store, pipelines, "worker A", HOUR, limit=limit, skip=skip)


def ids(claims: list[Claim]) -> list[str]:
    return [claim.run_id for claim in claims]


def test_waiting_and_interrupted_runs_of_known_pipelines_are_claimed_the_oldest_first(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        for run_id, status in (("w1", "waiting"), ("ok", "finished"), ("i1", "running"), ("bad", "failed")):
            await put(store, run_id, status)
        await put(store, "other", pipeline="another")
        await put(store, "nameless", "running", pipeline=None)
        await put(store, "w2")
        return await claimed(store)

    found = on_store(work, make_store)

    assert ids(found) == ["w1", "i1", "w2"]
    assert {claim.pipeline for claim in found} == {"flow"}


def test_what_is_claimed_is_leased_and_no_second_worker_gets_it(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        for number in range(5):
            await put(store, f"r{number}")
        first, second = await claimed(store, limit=2), await claimed(store, limit=9)
        with pytest.raises(RunLockedError):
            await store.acquire("r0", "worker B", HOUR)
        leases = await store.list_leases([f"r{number}" for number in range(5)])
        await store.release(first[0].lease)
        return ids(first), ids(second), {lease.holder for lease in leases}, ids(await claimed(store))

    assert on_store(work, make_store) == (["r0", "r1"], ["r2", "r3", "r4"], {"worker A"}, ["r0"])


def test_claims_at_once_share_the_runs(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        for number in range(30):
            await put(store, f"r{number}")
        return await asyncio.gather(*(claimed(store, limit=8) for _ in range(6)))

    found = [run_id for claims in on_store(work, make_store) for run_id in ids(claims)]

    assert sorted(found) == sorted(f"r{number}" for number in range(30))


def test_what_is_to_be_skipped_is_left(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        for number in range(3):
            await put(store, f"r{number}")
        return ids(await claimed(store, skip=("r0", "r2"))), await claimed(store, pipelines=())

    assert on_store(work, make_store) == (["r1"], [])


def test_a_run_whose_lease_has_expired_is_claimed(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        await put(store, "r")
        await store.acquire("r", "a worker that hangs", 1.0)
        before = await claimed(store)
        await asyncio.sleep(1.05)
        return before, ids(await claimed(store))

    assert on_store(work, make_store) == ([], ["r"])


def test_a_claim_changes_nothing_in_the_record(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        await put(store, "r")
        before = (await store.load("r")).to_dict()
        await claimed(store)
        return before, (await store.load("r")).to_dict()

    before, after = on_store(work, make_store)

    assert before == after
    assert (after["status"], after["lives"]) == ("waiting", 0)


def test_a_run_that_was_finished_before_it_was_leased_is_not_handed_out(
    make_store: Factory, claims_run_by_run: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(store: Any) -> Any:
        contexts = [await put(store, "r0"), await put(store, "r1")]
        acquire = store.acquire

        async def late(run_id: str, holder: str, ttl: float) -> Any:
            if run_id == "r0":
                contexts[0].status = "finished"
                await store.save("r0", contexts[0])
            return await acquire(run_id, holder, ttl)

        monkeypatch.setattr(store, "acquire", late)
        found = ids(await claimed(store))
        await acquire("r0", "anybody", HOUR)  # it was let go
        return found

    assert on_store(work, make_store) == ["r1"]


def test_a_claim_that_fails_half_way_leaves_no_lease(
    make_store: Factory, claims_run_by_run: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(store: Any) -> Any:
        for number in range(3):
            await put(store, f"r{number}")
        acquire = store.acquire

        async def failing(run_id: str, holder: str, ttl: float) -> Any:
            if run_id == "r1":
                raise OSError("no space left")
            return await acquire(run_id, holder, ttl)

        monkeypatch.setattr(store, "acquire", failing)
        with pytest.raises(OSError, match="no space left"):
            await claimed(store)
        monkeypatch.undo()
        return ids(await claimed(store))

    assert on_store(work, make_store) == ["r0", "r1", "r2"]


def test_two_pipelines_of_one_name_are_not_claimed_for_each_other_by_any_other_name(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        for name in ("flow", "Flow", "flow ", "flo\u0308w", "fl\u00f6w", "a\0b", "%", "x" * 5_000):
            await put(store, f"of {name}", pipeline=name)
        found = {
            name: ids(await claimed(store, pipelines=(name,))) for name in ("flo_", "flow", "%", "a\0b", "x" * 5_000)
        }
        return found, len(await claimed(store, pipelines=("flow ", "fl\u00f6w", "flow", "never")))

    found, left = on_store(work, make_store)

    assert {name: [f"of {name}"] for name in found if name != "flo_"} == {n: r for n, r in found.items() if n != "flo_"}
    assert (found["flo_"], left) == ([], 2)


def test_a_claim_that_is_cancelled_at_any_moment_leaves_no_lease(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        run_ids = [f"r{number}" for number in range(3)]
        for run_id in run_ids:
            await put(store, run_id)
        for pauses in range(8):
            call = asyncio.create_task(claimed(store))
            for _ in range(pauses):
                await asyncio.sleep(0)
            call.cancel()
            try:
                for claim in await call:  # it was through
                    await store.release(claim.lease)
            except asyncio.CancelledError:
                assert await store.list_leases(run_ids) == []
        return ids(await claimed(store))

    assert on_store(work, make_store) == ["r0", "r1", "r2"]


def test_our_stores_claim_by_themselves_and_memory_by_listing_and_leasing() -> None:
    assert isinstance(SQLiteStateStore("runs.db"), Claims)
    assert isinstance(PostgresStateStore("postgresql://host/database"), Claims)
    assert isinstance(RedisStateStore("redis://host"), Claims)
    assert not isinstance(InMemoryStateStore(), Claims)


def test_a_store_that_workers_cannot_share_is_refused_with_what_it_lacks() -> None:
    class OnlyRecords(InMemoryStateStore):
        acquire = list_runs = None  # type: ignore[assignment]

    with pytest.raises(ConfigurationError, match=r"no acquire\(\), renew\(\) and release\(\); and no claim\(\), or li"):
        check_claimable(OnlyRecords())
