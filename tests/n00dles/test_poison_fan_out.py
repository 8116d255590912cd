"""A run that has killed too many processes fails, and calls no member of a fan-out, however slow its store is."""

from __future__ import annotations

import asyncio

import pytest

from n00dles import InMemoryStateStore, PipelineContext, PipelineFailure, agent, arun, pipeline
from n00dles.executor import MAX_STALLED_LIVES


class SlowStore(InMemoryStateStore):
    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        await super().save(run_id, ctx)


calls: list[str] = []


@agent
async def left(x: str) -> str:
    calls.append("left")
    return x


@agent
async def right(x: str) -> str:
    calls.append("right")
    return x


def test_no_member_is_called_once_the_run_has_failed_for_its_dead_lives() -> None:
    async def run() -> None:
        store, both = SlowStore(), pipeline(left | right)
        context = await store.load_or_create("r", {"x": "x"})
        context.stalled = MAX_STALLED_LIVES
        await store.save("r", context)
        await arun(both, run_id="r", store=store, x="x")

    with pytest.raises(PipelineFailure, match="lives in a row"):
        asyncio.run(run())

    assert calls == []
