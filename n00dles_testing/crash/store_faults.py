"""A store that fails as real ones do: it refuses a save, or commits it and its reply is lost, or takes its time."""

from __future__ import annotations

import asyncio
import copyreg
from typing import Any

from n00dles.context import PipelineContext
from n00dles.records import SaveBatch
from n00dles.stores.base import StateStore

from .points import How

__all__ = ["SLOW_SECONDS", "StoreFaults", "UnreachableStoreError"]

SLOW_SECONDS = 0.02
"""How long a slow save waits before it begins: long enough for all else that is ready to go on meanwhile."""


class UnreachableStoreError(ConnectionError):
    """The store cannot be reached: put in by n00dles-testing, to see what the executor makes of it."""


class StoreFaults:
    """What the store of one life does wrong, once `begin` says so, beginning with the save at hand."""

    def __init__(self) -> None:
        self.happened = False
        self._next: How | None = None
        self._lasting: How | None = None

    def begin(self, how: How) -> None:
        """Have the save that is being handed over fail as `how` says; if that lasts, the ones after it as well."""
        self._next = how
        self._lasting = how if how.stays else None

    def check(self) -> None:
        """Raise `UnreachableStoreError` if nothing reaches the store any more, not even a question."""
        if self._lasting is How.REPLY_LOST and self.happened:
            raise UnreachableStoreError("the store cannot be reached (put in by n00dles-testing)")

    async def save(self, store: StateStore, run_id: str, ctx: PipelineContext) -> None:
        """Save, as well as this store can now. Raises `UnreachableStoreError`."""
        how, self._next = self._next, None
        if how is None:
            self.check()
            how = self._lasting
        if how is None:
            await store.save(run_id, ctx)
            return
        self.happened = True
        if how is How.SLOW:
            await asyncio.sleep(SLOW_SECONDS)
            await store.save(run_id, ctx)
        elif how in (How.REPLY_LOST, How.REPLY_LOST_ONCE):
            await store.save(run_id, _deaf(ctx))
            raise UnreachableStoreError("the store does not reply to this save (put in by n00dles-testing)")
        else:
            raise UnreachableStoreError("the store refuses this save (put in by n00dles-testing)")


class _Deaf(PipelineContext):
    """A context that hands its content over to a store, and does not hear that it has arrived.

    That the store recognises an earlier save, whose reply was lost before, is part of this save, and not news of it.
    """

    # Outside of the state that it shares with the context of the executor.
    __slots__ = ("_doubted",)
    _doubted: str | None

    def acknowledge(self, batch: SaveBatch) -> None:
        if batch.save_id == self._doubted:
            super().acknowledge(batch)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A store that pickles what it is given keeps an ordinary context.
        return copyreg.__newobj__, (PipelineContext,), self.__getstate__()  # type: ignore[attr-defined]


def _deaf(ctx: PipelineContext) -> PipelineContext:
    if not isinstance(ctx, PipelineContext):
        return ctx  # another executor's own: it has nothing to be told
    deaf = object.__new__(_Deaf)
    deaf.__dict__ = ctx.__dict__
    deaf._doubted = None if ctx.in_doubt is None else ctx.in_doubt.save_id
    return deaf
