"""Storing a run for whichever worker is free to start it."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from .api import as_pipeline, check_new_inputs, opened_store, refuse_event_loop
from .checkpointing import Checkpointer
from .context import PipelineContext, stored_inputs
from .errors import StaleContextError
from .events import Observers
from .identity import check_inputs_unchanged, check_pipeline_unchanged
from .pipeline import Pipeline, Step
from .stores.base import Loads, StateStore
from .stores.claims import check_claimable

__all__ = ["asubmit", "submit"]


def submit(target: Step, /, *, run_id: str | None = None, store: Any = None, **inputs: Any) -> str:
    """Store a run of a pipeline with these inputs, without starting it, and return its id.

    It waits, durably, until a worker of this pipeline (`n00dles worker`) or a call of `resume` starts it. Without a
    `run_id`, a new one is made. With one, a submission may be repeated when its outcome is not known: the same run is
    stored once, whatever has become of it since.

    Raises `InputsError` before anything is stored if the inputs do not fit, `InputsChangedError` or
    `PipelineChangedError` if another run is stored under this id, `ConfigurationError` for a store that workers cannot
    share, and `StateStoreError` if it fails. Inside a running event loop, use `await asubmit(…)`.
    """
    refuse_event_loop("submit", "asubmit")
    return asyncio.run(asubmit(target, run_id=run_id, store=store, **inputs))


async def asubmit(target: Step, /, *, run_id: str | None = None, store: Any = None, **inputs: Any) -> str:
    """Like `submit`, inside an event loop."""
    whole, stored = as_pipeline(target), stored_inputs(inputs)
    check_new_inputs(whole, stored)
    context = PipelineContext(uuid.uuid4().hex if run_id is None else run_id, stored)
    context.status, context.pipeline, context.signature = "waiting", whole.name, whole.signature()
    async with opened_store(store) as chosen:
        check_claimable(chosen)
        if not await _is_stored(chosen, context, whole):
            try:
                await Checkpointer(chosen, context, Observers()).save()
            except StaleContextError:
                # Somebody else has stored a run of this id in between.
                if not await _is_stored(chosen, context, whole):
                    raise
    return context.run_id


async def _is_stored(store: StateStore, context: PipelineContext, whole: Pipeline) -> bool:
    """Whether this run is stored already. Raises what `run` does if another one is stored under its id."""
    found = await store.load(context.run_id) if isinstance(store, Loads) else None
    if found is None:
        return False
    check_inputs_unchanged(found, context.inputs)
    check_pipeline_unchanged(found, whole)
    return True
