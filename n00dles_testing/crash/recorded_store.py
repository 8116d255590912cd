"""A store with an ear: what is handed to it and what it acknowledges goes to the ledger; after a death it is fenced."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from n00dles.context import PipelineContext
from n00dles.stores.base import StateStore

from .ledger import LedgerWriter

__all__ = ["Fence", "SimulatedDeath", "recorded_store"]

_CAPABILITIES = ("load", "list_runs", "prune", "aclose")


class SimulatedDeath(BaseException):
    """What stands for SIGKILL in a process that has to live on. No `except Exception` stops it."""


class Fence:
    """Between a life and its store. Once `down`, nothing reaches the store: the dead do not save.

    Without it a sibling task that survives a simulated death would save after it, and hide the fault.
    """

    def __init__(self) -> None:
        self.down = False

    def check(self) -> None:
        """Raise `SimulatedDeath` if the process is dead."""
        if self.down:
            raise SimulatedDeath


class _RecordedStore(StateStore):
    """One life's view of a store."""

    def __init__(self, inner: StateStore, ledger: LedgerWriter, fence: Fence) -> None:
        self._inner = inner
        self._ledger = ledger
        self._fence = fence

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        self._fence.check()
        return await self._inner.load_or_create(run_id, inputs)

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        self._fence.check()
        # What is complete now is surely part of this save; what completes while it waits may be.
        nodes = list(ctx.completed)
        self._ledger.write("save_start", nodes=nodes)
        try:
            await self._inner.save(run_id, ctx)
        except BaseException as error:
            self._ledger.write("save_end", nodes=nodes, error=f"{type(error).__name__}: {error}")
            raise
        self._ledger.write("save_end", nodes=nodes)

    async def delete(self, run_id: str) -> None:
        self._fence.check()
        await self._inner.delete(run_id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def recorded_store(inner: StateStore, ledger: LedgerWriter, fence: Fence) -> StateStore:
    """Return `inner` for the use of one life. It has the capabilities that `inner` has, and no other."""
    return _recorded_kind(tuple(name for name in _CAPABILITIES if hasattr(inner, name)))(inner, ledger, fence)


@lru_cache
def _recorded_kind(capabilities: tuple[str, ...]) -> type[_RecordedStore]:
    # Capabilities are looked for on the class, so they have to be there, not only behind __getattr__.
    return type("RecordedStore", (_RecordedStore,), {name: _forward(name) for name in capabilities})


def _forward(name: str) -> Any:
    async def forward(self: _RecordedStore, *args: Any, **kwargs: Any) -> Any:
        self._fence.check()
        return await getattr(self._inner, name)(*args, **kwargs)

    forward.__name__ = name
    return forward
