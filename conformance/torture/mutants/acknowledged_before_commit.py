"""A store that answers at once and writes a moment later, to be fast: what a kill meets in between is lost."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from n00dles.context import PipelineContext
from n00dles.stores.sqlite import SQLiteStateStore

from ..flow import flow

__all__ = ["flow"]

_SECONDS = 0.3

_write = SQLiteStateStore.save
_queues: dict[str, asyncio.Task[None]] = {}


async def _save(self: SQLiteStateStore, run_id: str, ctx: PipelineContext) -> None:
    written = copy.deepcopy(ctx)
    written.handle = None
    ctx.acknowledge(ctx.snapshot())
    _queues[run_id] = asyncio.create_task(_write_later(self, written, _queues.get(run_id)))


async def _write_later(store: SQLiteStateStore, ctx: PipelineContext, before: asyncio.Task[Any] | None) -> None:
    await asyncio.sleep(_SECONDS)
    if before is not None:
        await before
    await _write(store, ctx.run_id, ctx)


SQLiteStateStore.save = _save  # type: ignore[method-assign]
