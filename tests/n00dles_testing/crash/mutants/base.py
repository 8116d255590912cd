"""What mutants are made of: the executor of n00dles, with places where one thing can go wrong."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import n00dles
from n00dles import PipelineContext, RunResult
from n00dles.events import Observer
from n00dles.pipeline import Pipeline
from n00dles.stores.base import StateStore
from n00dles_testing.crash.shape import Group, Shape, describe_shape

__all__ = [
    "RESUMES",
    "Around",
    "Executor",
    "Life",
    "WholeStore",
    "fan_outs",
    "flat_fan_outs",
    "forgetting",
    "routed",
    "single",
    "without",
]

RESUMES = frozenset({"E08", "E09", "E10", "E11", "E15"})
"""Clauses that are tried by resuming, one way or another: all of them see a resume that is wrong altogether."""

_LEASES = ("acquire", "renew", "release")


@dataclass(frozen=True, slots=True)
class Life:
    """One life that an executor is asked for; without `inputs` it is a resume."""

    pipeline: Pipeline
    run_id: str
    store: Any
    observers: Sequence[Observer]
    inputs: Mapping[str, Any] | None = None

    async def go(self) -> RunResult:
        """Live it as the executor of n00dles does."""
        if self.inputs is None:
            return await n00dles.aresume(self.pipeline, self.run_id, store=self.store, observers=self.observers)
        return await n00dles.arun(
            self.pipeline, run_id=self.run_id, store=self.store, observers=self.observers, **self.inputs
        )

    async def is_unfinished(self) -> bool:
        """Whether there is something of an earlier life to go on with."""
        found = await self.record()
        return found is not None and found.status != "finished"

    async def record(self) -> PipelineContext | None:
        """Return what is stored of the run."""
        found: PipelineContext | None = await self.store.load(self.run_id)
        return found


class Executor:
    """The executor of n00dles. Mutants override a part of it, and name the clause that they break.

    `also` are clauses that suffer from the same fault, besides those that the contract relates to it.
    """

    breaks = ""
    also: frozenset[str] = frozenset()

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: StateStore,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        return await self.live(Life(pipeline, run_id, store, observers, inputs))

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        return await self.live(Life(pipeline, run_id, store, observers))

    async def live(self, life: Life) -> RunResult:
        """Live one life."""
        with self.changes(life):
            return await replace(life, store=self.around(life.store)).go()

    def around(self, store: Any) -> Any:
        """Return the store as this executor uses it."""
        return store

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        """Return what is otherwise than it should be during `life`."""
        return nullcontext()

    def __repr__(self) -> str:
        return type(self).__name__


class WholeStore(StateStore):
    """A correct store that keeps each record whole, so that a mutant may hand it an edited one."""

    def __init__(self) -> None:
        self.records: dict[str, dict[str, Any]] = {}

    async def load(self, run_id: str) -> PipelineContext | None:
        record = self.records.get(run_id)
        return None if record is None else PipelineContext.from_dict(copy.deepcopy(record))

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        if run_id not in self.records:
            self.records[run_id] = PipelineContext(run_id, inputs).to_dict()
        return PipelineContext.from_dict(copy.deepcopy(self.records[run_id]))

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        self.records[run_id] = ctx.to_dict()

    async def delete(self, run_id: str) -> None:
        self.records.pop(run_id, None)


class Around(StateStore):
    """A store behind a wrapper; `Around.put` gives it the leases that the store has."""

    @classmethod
    def put(cls, inner: Any) -> Around:
        """Return `inner` behind a wrapper of this kind. Capabilities are looked for on the class."""
        leases = {name: _forward(name) for name in _LEASES if hasattr(inner, name)}
        kind: type[Around] = type(cls.__name__, (cls,), leases)
        return kind(inner)

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def load(self, run_id: str) -> PipelineContext | None:
        found: PipelineContext | None = await self.inner.load(run_id)
        return None if found is None else self.loaded(found)

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        found: PipelineContext = await self.inner.load_or_create(run_id, inputs)
        return found

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        await self.inner.save(run_id, ctx)

    async def delete(self, run_id: str) -> None:
        await self.inner.delete(run_id)

    @property
    def place(self) -> Any:
        return self.inner.place

    def loaded(self, found: PipelineContext) -> PipelineContext:
        """Return what the executor gets to see of a stored run that it resumes."""
        return found


def _forward(name: str) -> Any:
    async def forward(self: Around, *args: Any, **kwargs: Any) -> Any:
        return await getattr(self.inner, name)(*args, **kwargs)

    return forward


class _Forgetful(PipelineContext):
    """A context that does not know that some of its nodes are complete, until they have run again."""

    forgotten: set[str]

    def is_complete(self, node: str) -> bool:
        return node not in self.forgotten and super().is_complete(node)

    def checkpoint_stored(self, node: str, stored: Any) -> None:
        self.forgotten.discard(node)
        super().checkpoint_stored(node, stored)


def forgetting(ctx: PipelineContext, nodes: Iterable[str]) -> PipelineContext:
    """Return the context of a stored run as one that has forgotten some of its nodes; the store has not."""
    ctx.__class__ = _Forgetful
    ctx.__dict__["forgotten"] = set(nodes)
    return ctx


def without(ctx: PipelineContext, *nodes: str) -> PipelineContext:
    """Return a copy of a context that does not know of some of its outputs."""
    record = ctx.to_dict()
    for node in nodes:
        record["order"].remove(node)
        del record["completed"][node]
    return PipelineContext.from_dict(record)


def fan_outs(pipeline: Pipeline) -> list[Group]:
    """Return the fan-outs of a pipeline that have at least two members which are nodes."""
    groups = Shape.of(describe_shape(pipeline)).groups
    return [group for group in groups if len(single(group)) > 1]


def flat_fan_outs(pipeline: Pipeline) -> list[set[str]]:
    """Return the members of each fan-out that are all nodes, and that is in no chain inside another fan-out."""
    groups = fan_outs(pipeline)
    chained = {node for group in groups for nodes in group.members.values() if len(nodes) > 1 for node in nodes}
    flat = [set(single(group)) for group in groups if len(single(group)) == len(group.members)]
    return [members for members in flat if not members & chained]


def single(group: Group) -> list[str]:
    """Return the members of a fan-out that are nodes."""
    return [member for member, nodes in group.members.items() if nodes == (member,)]


def routed(pipeline: Pipeline) -> set[str]:
    """Return all nodes on routes of branches."""
    branches = Shape.of(describe_shape(pipeline)).branches
    return {node for branch in branches for nodes in branch.routes.values() for node in nodes}
