"""A store with an ear: what is handed to it and what it acknowledges goes to the ledger; after a death it is fenced."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any, Protocol

from n00dles.context import PipelineContext
from n00dles.stores.base import StateStore

from .ledger import Ledger
from .store_faults import StoreFaults

__all__ = ["Fence", "RecordedStore", "SimulatedDeath", "recorded_store"]

_CAPABILITIES = ("load", "list_runs", "prune", "aclose", "acquire", "renew", "release", "list_leases")
# What a process that dies lets go of by itself: its descriptors, and the leases of its runs.
_ALSO_OF_THE_DEAD = ("aclose", "release")


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


class StoreWatcher(Protocol):
    """Who is told that a run is created, and that a save begins, with what it is the first to carry, and is done.

    `faults` are what the store does wrong, which the watcher begins as it is told of a save.
    """

    ledger: Ledger
    faults: StoreFaults

    def create_begins(self) -> None:
        """The store is about to be asked for the run, which it creates if it is not there."""

    def create_done(self) -> None:
        """The store has given the run."""

    def save_begins(self, new: list[str]) -> None:
        """`new` are the nodes whose first save this is."""

    def save_done(self, new: list[str]) -> None:
        """The store has acknowledged it."""


class RecordedStore(StateStore):
    """One life's view of a store. `saving` counts the saves that have begun and not ended."""

    def __init__(self, inner: StateStore, watcher: StoreWatcher, fence: Fence) -> None:
        self.saving = 0
        self._inner = inner
        self._watcher = watcher
        self._fence = fence
        self._carried: set[str] = set()
        self._saves = 0

    @property
    def place(self) -> Hashable:
        """That of the store itself: what a process keeps in hand is found again in another life of it."""
        return self._inner.place

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        """Ask the store, with a point before and after."""
        self._check()
        ledger = self._watcher.ledger
        ledger.write("create_start")
        self._watcher.create_begins()
        found = self._loaded(await self._inner.load_or_create(run_id, inputs))
        ledger.write("create_end")
        self._watcher.create_done()
        return found

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        """Hand it to the store, with a point before and after, and whatever fault is to happen."""
        self._fence.check()
        self.saving += 1
        try:
            await self._save(run_id, ctx)
        finally:
            self.saving -= 1

    async def _save(self, run_id: str, ctx: PipelineContext) -> None:
        ledger = self._watcher.ledger
        self._saves += 1
        number, nodes = self._saves, list(ctx.completed)
        new = [node for node in nodes if node not in self._carried]
        ledger.write("save_start", save=number, nodes=nodes, new=new)
        self._watcher.save_begins(new)
        try:
            await self._watcher.faults.save(self._inner, run_id, ctx)
        except BaseException as error:
            ledger.write("save_end", save=number, nodes=nodes, new=[], error=f"{type(error).__name__}: {error}")
            raise
        self._carried.update(new)
        # What completed while the save was waiting may be stored as well, if the store says so. Its executor does not
        # know that, and will save it again; so its crash points are those of that later save.
        late = [node for node in ctx.completed if node not in nodes and node not in ctx.unsaved]
        ledger.write("save_end", save=number, nodes=[*nodes, *late], new=new)
        self._watcher.save_done(new)

    def _loaded(self, ctx: PipelineContext) -> PipelineContext:
        self._carried.update(ctx.completed)
        return ctx

    def _check(self) -> None:
        self._fence.check()
        self._watcher.faults.check()

    async def delete(self, run_id: str) -> None:
        """Ask the store."""
        self._check()
        await self._inner.delete(run_id)

    def __repr__(self) -> str:
        return repr(self._inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def recorded_store(inner: StateStore, watcher: StoreWatcher, fence: Fence) -> RecordedStore:
    """Return `inner` for the use of one life. It has the capabilities that `inner` has, and no other."""
    return _recorded_kind(tuple(name for name in _CAPABILITIES if hasattr(inner, name)))(inner, watcher, fence)


@lru_cache
def _recorded_kind(capabilities: tuple[str, ...]) -> type[RecordedStore]:
    # Capabilities are looked for on the class, so they have to be there, not only behind __getattr__.
    return type("RecordedStore", (RecordedStore,), {name: _forward(name) for name in capabilities})


def _forward(name: str) -> Any:
    async def forward(self: RecordedStore, *args: Any, **kwargs: Any) -> Any:
        if name not in _ALSO_OF_THE_DEAD:
            self._check()
        found = await getattr(self._inner, name)(*args, **kwargs)
        return self._loaded(found) if isinstance(found, PipelineContext) else found

    forward.__name__ = name
    return forward
