"""Stores that fail, wait or lose their reply where a test says so; what they have acknowledged is kept all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from n00dles import InMemoryStateStore, PipelineContext, StateStore

__all__ = ["Fault", "FaultyStore", "GatedStore"]

Fault = Literal["none", "before", "after"]


class FaultyStore(StateStore):
    """Fails its n-th save as the n-th fault says: `before` anything was written, or `after` all of it was.

    Beyond the list, `then` holds. `saves` lists the nodes that each attempted save carried.
    """

    def __init__(
        self,
        faults: Iterable[Fault] = (),
        *,
        then: Fault = "none",
        inner: StateStore | None = None,
        error: Callable[[], Exception] = lambda: OSError("no space left"),
    ) -> None:
        self.inner: Any = inner or InMemoryStateStore()
        self.faults = list(faults)
        self.then = then
        self.error = error
        self.saves: list[tuple[str, ...]] = []

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        context: PipelineContext = await self.inner.load_or_create(run_id, inputs)
        return context

    async def load(self, run_id: str) -> PipelineContext | None:
        context: PipelineContext | None = await self.inner.load(run_id)
        return context

    async def delete(self, run_id: str) -> None:
        await self.inner.delete(run_id)

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        self.saves.append(ctx.unsaved)
        fault = self.faults.pop(0) if self.faults else self.then
        if fault == "before":
            raise self.error()
        if fault == "after":
            await self.inner.save(run_id, _without_reply(ctx))
            raise self.error()
        await self.inner.save(run_id, ctx)


def _without_reply(ctx: PipelineContext) -> PipelineContext:
    """Return a stand-in that hands its content over to a store, and does not hear that it has arrived."""

    class Deaf:
        def __getattr__(self, name: str) -> Any:
            return getattr(ctx, name)

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(ctx, name, value)

        def acknowledge(self, batch: Any) -> None:
            # Recognising an earlier save is part of this one; the news of this one is what gets lost.
            if batch.save_id == earlier_id or batch is not ctx.in_doubt:
                ctx.acknowledge(batch)

    earlier = ctx.in_doubt
    earlier_id = None if earlier is None else earlier.save_id
    deaf: Any = Deaf()
    return deaf  # type: ignore[no-any-return]


class GatedStore(InMemoryStateStore):
    """Does not answer a save until `gate` is open; `saves` lists the nodes that each one carried."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.entered = asyncio.Event()
        self.saves: list[tuple[str, ...]] = []

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        self.saves.append(ctx.unsaved)
        await super().save(run_id, ctx)
        self.entered.set()
        await self.gate.wait()
