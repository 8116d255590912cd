"""A store without leases: what is left is the fence of its revision."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from n00dles import PipelineContext, StateStore

__all__ = ["UnleasedStore"]


class UnleasedStore(StateStore):
    """Hands on the three methods and `load` of another store, and nothing else."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @property
    def place(self) -> Hashable:
        place: Hashable = self.inner.place
        return place

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        context: PipelineContext = await self.inner.load_or_create(run_id, inputs)
        return context

    async def load(self, run_id: str) -> PipelineContext | None:
        context: PipelineContext | None = await self.inner.load(run_id)
        return context

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        await self.inner.save(run_id, ctx)

    async def delete(self, run_id: str) -> None:
        await self.inner.delete(run_id)
