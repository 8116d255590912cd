"""The store in memory; what it shares with the others is in `test_common.py`."""

from __future__ import annotations

import asyncio
import threading

from n00dles import InMemoryStateStore, PipelineContext


def test_two_objects_share_nothing() -> None:
    one, other = InMemoryStateStore(), InMemoryStateStore()

    asyncio.run(one.load_or_create("r", {"x": 1}))

    assert asyncio.run(other.load("r")) is None


def test_an_object_is_shared_by_event_loops_and_threads() -> None:
    store = InMemoryStateStore()
    barrier = threading.Barrier(8)

    async def work(number: int) -> None:
        ctx = await store.load_or_create(f"r{number}", {"x": number})
        for step in range(20):
            ctx.checkpoint(f"n{step}", number)
            await store.save(ctx.run_id, ctx)

    def main(number: int) -> None:
        barrier.wait(20)
        asyncio.run(work(number))

    threads = [threading.Thread(target=main, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    found = [asyncio.run(store.load(f"r{number}")) for number in range(8)]
    assert [ctx.inputs["x"] for ctx in found if isinstance(ctx, PipelineContext)] == list(range(8))
    assert all(ctx is not None and len(ctx.completed) == 20 for ctx in found)
