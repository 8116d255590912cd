"""Runs as another executor hands them to a store: plain objects, the outputs as the nodes have returned them.

n00dles never does that: its context converts each output, or refuses it, before a store is called. A store that takes
only such contexts refuses a raw run, and nothing raw can be tried on it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from n00dles.context import PipelineContext
from n00dles.stores.adapt import as_store

from ..factories import call_either
from .expect import BrokenClause
from .records import Record, show
from .scenario import Handle, Scenario
from .subject import StoreSubject

__all__ = ["load_raw", "save_raw", "takes_raw_runs"]

_OUTPUT = {"facts": ["purr", 1, None]}


@dataclass
class _RawRun:
    """The four fields that every store must keep, and nothing else."""

    run_id: str
    inputs: dict[str, Any]
    completed: dict[str, Any] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)


async def takes_raw_runs(subject: StoreSubject) -> bool:
    """Find out, once for all clauses, whether the store saves a run that is no context of n00dles."""
    return await subject.once("takes raw runs", lambda: _probe(subject))


async def _probe(subject: StoreSubject) -> bool:
    async with subject.probe("does the store take a run that is no context of n00dles?") as s:
        handle = await s.create()
        is_taken = await save_raw(s, handle, {"node": _OUTPUT})
        return is_taken and (await load_raw(s, handle)).completed == {"node": _OUTPUT}
    return False


async def save_raw(s: Scenario, handle: Handle, outputs: Mapping[str, Any]) -> bool:
    """Save a run of plain parts, with what is in `handle` and these outputs; return False if the store raised."""
    completed = {**copy.deepcopy(handle.record.completed), **outputs}
    run = _RawRun(handle.run_id, copy.deepcopy(handle.record.inputs), completed, [*handle.record.order, *outputs])
    saving = as_store(s.raw).save(handle.run_id, cast(PipelineContext, run))
    try:
        await s.call(
            f"save({handle.run_id!r}) of a raw run with {show(dict(outputs))}", saving, lambda _: "acknowledged"
        )
    except BrokenClause as broken:
        if not isinstance(broken.__cause__, Exception):
            raise
        return False
    return True


async def load_raw(s: Scenario, handle: Handle) -> Record:
    """Load a run and return what the store gave, without a look at whether n00dles could work on it."""

    async def load() -> Record:
        return Record.read(await call_either(s.raw.load_or_create, handle.run_id, copy.deepcopy(handle.record.inputs)))

    return await s.call(f"load_or_create({handle.run_id!r}, {show(handle.record.inputs)})", load(), str)
