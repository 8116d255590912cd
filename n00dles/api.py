"""Running and resuming pipelines."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Container, Coroutine, Hashable, Iterable, Mapping
from typing import Any

from .agent import Agent
from .calling import check_ready, checked_arguments
from .config import default_observers, default_store
from .context import PipelineContext, stored_inputs
from .errors import AgentInputError, InputsError, RunNotFoundError
from .events import Observer, Observers
from .executor import Execution
from .identity import check_inputs_unchanged, check_pipeline_unchanged
from .pipeline import Pipeline, Step, pipeline
from .result import RunResult, traces
from .stores.base import Loads, StateStore
from .stores.urls import open_store
from .wiring import wire

__all__ = ["aresume", "arun", "resume", "run"]

# Contexts whose last save failed in this process, by the place of their store and the run: what their nodes returned
# was paid for, and is not thrown away. The oldest are, should nobody ever resume them.
_held: dict[tuple[Hashable, str], PipelineContext] = {}
_MAX_HELD = 256


def run(
    target: Step,
    /,
    *,
    run_id: str | None = None,
    store: Any = None,
    observers: Iterable[Observer] = (),
    tags: Iterable[str] = (),
    timeout: float | None = None,
    **inputs: Any,
) -> RunResult:
    """Run a pipeline (or a single step) with these inputs, saving after every node, and return its result.

    With the `run_id` of a stored run, that run is carried on: completed nodes are not called, and a finished run
    returns its stored result. Without one, a new id is made; it is in the result and in every error. `store`
    overrides the configured one (see `configure`). `timeout` bounds the whole call, in seconds; a run that it ends
    can be resumed.

    Raises `InputsError` before the first call if the inputs do not fit, `PipelineFailure` if a node fails, and
    `StateStoreError` if the store does. Inside a running event loop, use `await arun(…)`.
    """
    _refuse_event_loop("run", "arun")
    options = {"run_id": run_id, "store": store, "observers": observers, "tags": tags, "timeout": timeout}
    return _run(arun(target, **options, **inputs))


async def arun(
    target: Step,
    /,
    *,
    run_id: str | None = None,
    store: Any = None,
    observers: Iterable[Observer] = (),
    tags: Iterable[str] = (),
    timeout: float | None = None,  # noqa: ASYNC109 - the same options as `run`
    **inputs: Any,
) -> RunResult:
    """Like `run`, inside an event loop."""
    chosen = _chosen_store(store)
    stored = stored_inputs(inputs)
    whole = _as_pipeline(target)
    async with asyncio.timeout(timeout):
        # A store that cannot say whether it has the run is asked by creating it, with the inputs that it would have.
        is_asked = run_id is not None and (isinstance(chosen, Loads) or not stored)
        context = await _existing(chosen, run_id) if run_id is not None and is_asked else None
        if context is None:
            _check_inputs(whole, stored)
            _check_ready(whole, ())
            context = _with_held(chosen, await chosen.load_or_create(run_id or uuid.uuid4().hex, stored))
        given = stored if stored or not context.inputs else None
        return await _carry_on(whole, context, chosen, observers, tags, given=given)


def resume(
    target: Step, run_id: str, /, *, store: Any = None, observers: Iterable[Observer] = (), tags: Iterable[str] = ()
) -> RunResult:
    """Carry a stored run on from its last checkpoint, with the inputs that it was started with.

    Completed nodes are not called; a finished run returns its stored result. Raises `RunNotFoundError` if there is no
    such run, `PipelineChangedError` if its completed part belongs to another pipeline, and what `run` raises.
    """
    _refuse_event_loop("resume", "aresume")
    return _run(aresume(target, run_id, store=store, observers=observers, tags=tags))


async def aresume(
    target: Step, run_id: str, /, *, store: Any = None, observers: Iterable[Observer] = (), tags: Iterable[str] = ()
) -> RunResult:
    """Like `resume`, inside an event loop."""
    chosen = _chosen_store(store)
    context = await _existing(chosen, run_id)
    if context is None:
        raise RunNotFoundError(
            f"no run {run_id!r} is stored in {chosen!r}; `n00dles runs list` shows those that are.", run_id=run_id
        )
    return await _carry_on(_as_pipeline(target), context, chosen, observers, tags, given=None)


async def _carry_on(
    whole: Pipeline,
    context: PipelineContext,
    store: StateStore,
    observers: Iterable[Observer],
    tags: Iterable[str],
    *,
    given: Mapping[str, Any] | None,
) -> RunResult:
    """Check that `context` is this pipeline's run, started with the inputs that are `given` now, and finish it."""
    try:
        if given is not None:
            check_inputs_unchanged(context, given)
        check_pipeline_unchanged(context, whole)
        wiring = wire(whole)
        wiring.check_inputs(context.inputs, whole.name)
        _check_ready(whole, context.completed)
        execution = Execution(whole, wiring, context, store, Observers((*default_observers(), *observers)))
        output = await execution.run()
    except (Exception, asyncio.CancelledError):
        if context.unsaved:
            _hold(store, context)
        raise
    found = traces(context)
    tokens = sum(trace.input_tokens + trace.output_tokens for trace in found)
    return RunResult(context.run_id, output, context.elapsed_ms, tokens, found, list(tags))


async def _existing(store: StateStore, run_id: str) -> PipelineContext | None:
    """Return the stored run, or None."""
    context = await (store.load(run_id) if isinstance(store, Loads) else _asked_for(store, run_id))
    return context and _with_held(store, context)


def _with_held(store: StateStore, context: PipelineContext) -> PipelineContext:
    """Return a stored run with what its nodes have returned since, when an earlier save in this process failed."""
    held = _held.pop((store.place, context.run_id), None)
    if held is None:
        return context
    # A store that keeps four fields gives every context that it makes a new incarnation.
    is_same_run = held.incarnation == context.incarnation or held.revision == context.revision == 0
    in_doubt = held.in_doubt.stored_revision.revision if held.in_doubt else held.revision
    is_ahead = context.revision in (held.revision, in_doubt) and context.completed.keys() <= held.completed.keys()
    return held if is_same_run and is_ahead and held.inputs == context.inputs else context


async def _asked_for(store: StateStore, run_id: str) -> PipelineContext | None:
    """Ask a store without `load`, which cannot be asked without making a run: an empty one was made by asking."""
    context = await store.load_or_create(run_id, {})
    if context.inputs or context.completed or context.nodes or context.lives > 1:
        return context
    await store.delete(run_id)
    return None


def _hold(store: StateStore, context: PipelineContext) -> None:
    _held[store.place, context.run_id] = context
    if len(_held) > _MAX_HELD:
        _held.pop(next(iter(_held)), None)


def _check_inputs(whole: Pipeline, stored: Mapping[str, Any]) -> None:
    """Refuse inputs that do not fit, before anything is stored or called."""
    wiring = wire(whole)
    wiring.check_inputs(stored, whole.name)
    for agent in whole.agents():
        read = {
            name: stored[source.name]
            for name, source in wiring.sources[agent.name].items()
            if source.kind == "input" and source.name in stored
        }
        try:
            if read:
                checked_arguments(agent, read)
        except AgentInputError as error:
            raise InputsError(f"an input does not fit pipeline {whole.name!r}: {error} No node was called.") from error


def _check_ready(whole: Pipeline, completed: Container[str]) -> None:
    for agent in whole.agents():
        candidate: Agent | None = agent if agent.name not in completed else None
        while candidate is not None:
            check_ready(candidate)
            candidate = candidate.fallback


def _as_pipeline(target: Step) -> Pipeline:
    if isinstance(target, Pipeline):
        return target
    if isinstance(target, Step):
        return pipeline(target)
    raise TypeError(f"{target!r} cannot be run; give a pipeline(…), or an @agent.")


def _chosen_store(store: Any) -> StateStore:
    return default_store() if store is None else open_store(store)


def _run(work: Coroutine[Any, Any, RunResult]) -> RunResult:
    # The result does not become that of a task: asyncio takes the repr of its main task while it sets up signals, which
    # is as long as the output.
    results: list[RunResult] = []

    async def main() -> None:
        results.append(await work)

    asyncio.run(main())
    return results[0]


def _refuse_event_loop(called: str, instead: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        f"{called}() was called inside a running event loop (a web handler, a notebook, an async test), which it would "
        f"block. Use `await {instead}(…)` there."
    )
