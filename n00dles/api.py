"""Running and resuming pipelines."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Container, Coroutine, Hashable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from .calling import check_ready, checked_arguments
from .config import default_observers, default_store
from .context import PipelineContext, stored_inputs
from .errors import AgentInputError, InputsError, RunNotFoundError, StaleContextError
from .events import Observer, Observers
from .executor import Execution
from .identity import check_inputs_unchanged, check_pipeline_unchanged
from .leasing import Holding, check_wait
from .pipeline import Pipeline, Step, pipeline
from .result import RunResult, traces
from .stores.adapt import as_context
from .stores.base import Closable, Loads, StateStore
from .stores.claims import Claim
from .stores.urls import open_store
from .wiring import wire

__all__ = [
    "aresume",
    "arun",
    "as_pipeline",
    "carry_on_claimed",
    "check_new_inputs",
    "check_ready_to_call",
    "opened_store",
    "refuse_event_loop",
    "resume",
    "run",
]

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
    wait: float = 0,
    **inputs: Any,
) -> RunResult:
    """Run a pipeline (or a single step) with these inputs, saving after every node, and return its result.

    With the `run_id` of a stored run, that run is carried on: completed nodes are not called, and a finished run
    returns its stored result. Without one, a new id is made; it is in the result and in every error. `store`
    overrides the configured one (see `configure`). `timeout` bounds the whole call, in seconds; a run that it ends
    can be resumed; the `TimeoutError` names it. `wait` bounds how long another worker that holds the run is
    waited for, in seconds.

    Raises `InputsError` before the first call if the inputs do not fit, `RunLockedError` if another worker holds the
    run, `PipelineFailure` if a node fails, and `StateStoreError` if the store does. Inside a running event loop, use
    `await arun(…)`.
    """
    refuse_event_loop("run", "arun")
    options = {"run_id": run_id, "store": store, "observers": observers, "tags": tags, "timeout": timeout, "wait": wait}
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
    wait: float = 0,
    **inputs: Any,
) -> RunResult:
    """Like `run`, inside an event loop."""
    stored = stored_inputs(inputs)
    whole = as_pipeline(target)
    identity = uuid.uuid4().hex if run_id is None else run_id
    check_wait(wait)
    if run_id is None:
        # Nobody else knows the run yet, so there is nothing to look at first.
        _check_new(whole, stored)
    async with (
        opened_store(store) as chosen,
        _time_limit(timeout, identity),
        Holding(chosen, identity, wait) as holding,
    ):
        # A store that cannot say whether it has the run is asked to create it, with the inputs that it would have.
        known = stored if stored or isinstance(chosen, Loads) else None
        refusal = None if run_id is None else _refusal(whole, known)
        context = None
        if refusal is not None or holding.is_refused:
            context = await _loaded(chosen, identity)
            holding.admit(context, whole)
            if context is None and refusal is not None:
                raise refusal
        if context is None:
            context = await _created(chosen, identity, stored)
        given = stored if stored or not context.inputs else None
        return await _carry_on(whole, context, chosen, observers, tags, given=given)


def resume(
    target: Step,
    run_id: str,
    /,
    *,
    store: Any = None,
    observers: Iterable[Observer] = (),
    tags: Iterable[str] = (),
    timeout: float | None = None,
    wait: float = 0,
) -> RunResult:
    """Carry a stored run on from its last checkpoint, with the inputs that it was started with.

    Completed nodes are not called; a finished run returns its stored result. `wait` bounds how long another worker
    that holds the run is waited for, in seconds. Raises `RunNotFoundError` if there is no such run,
    `PipelineChangedError` if its completed part belongs to another pipeline, and what `run` raises.
    """
    refuse_event_loop("resume", "aresume")
    return _run(aresume(target, run_id, store=store, observers=observers, tags=tags, timeout=timeout, wait=wait))


async def aresume(
    target: Step,
    run_id: str,
    /,
    *,
    store: Any = None,
    observers: Iterable[Observer] = (),
    tags: Iterable[str] = (),
    timeout: float | None = None,  # noqa: ASYNC109 - the same options as `resume`
    wait: float = 0,
) -> RunResult:
    """Like `resume`, inside an event loop."""
    whole = as_pipeline(target)
    check_wait(wait)
    async with (
        opened_store(store) as chosen,
        _time_limit(timeout, run_id),
        Holding(chosen, run_id, wait) as holding,
    ):
        context = await _loaded(chosen, run_id)
        holding.admit(context, whole)
        if context is None and not isinstance(chosen, Loads):
            context = await _created(chosen, run_id, {})
            if not context.inputs and wire(whole).required:
                # Asking has made an empty run. It is left: another worker's run may look the same in its first node.
                context = None
        if context is None:
            raise RunNotFoundError(
                f"no run {run_id!r} is stored in {chosen!r}; `n00dles runs list` shows those that are.", run_id=run_id
            )
        return await _carry_on(whole, context, chosen, observers, tags, given=None)


async def carry_on_claimed(
    whole: Pipeline,
    claim: Claim,
    store: StateStore,
    observers: Iterable[Observer],
    place: Callable[[PipelineContext], AbstractAsyncContextManager[None]],
) -> RunResult:
    """Like `aresume`, for a worker that has claimed the run: its lease is renewed, and released at the end.

    Nothing is called or saved before the run has its `place`.
    """
    run_id = claim.run_id
    async with Holding(store, run_id, 0, claim.lease):
        context = await _loaded(store, run_id)
        if context is None:
            raise RunNotFoundError(f"run {run_id!r} was deleted after it was claimed.", run_id=run_id)
        async with place(context):
            return await _carry_on(whole, context, store, observers, (), given=None, outlives_exits=True)


async def _carry_on(
    whole: Pipeline,
    context: PipelineContext,
    store: StateStore,
    observers: Iterable[Observer],
    tags: Iterable[str],
    *,
    given: Mapping[str, Any] | None,
    outlives_exits: bool = False,
) -> RunResult:
    """Check that `context` is this pipeline's run, started with the inputs that are `given` now, and finish it."""
    context = _with_held(store, context)
    try:
        if given is not None:
            check_inputs_unchanged(context, given)
        check_pipeline_unchanged(context, whole)
        wiring = wire(whole)
        wiring.check_inputs(context.inputs, whole.name, has_begun=bool(context.completed))
        if not context.is_new:  # else that was seen before it was stored
            check_ready_to_call(whole, context.completed)
        told = Observers((*default_observers(), *observers))
        execution = Execution(whole, wiring, context, store, told, outlives_exits=outlives_exits)
        output = await execution.run()
    except (Exception, asyncio.CancelledError) as error:
        # What a stale context holds belongs to a run that has gone on without it.
        if context.unsaved and not isinstance(error, StaleContextError):
            _hold(store, context)
        raise
    found = traces(context)
    tokens = sum(trace.input_tokens + trace.output_tokens for trace in found)
    return RunResult(
        context.run_id, output, context.elapsed_ms, tokens, found, [tags] if isinstance(tags, str) else list(tags)
    )


async def _loaded(store: StateStore, run_id: str) -> PipelineContext | None:
    """Return the stored run; None if there is none, or if the store cannot be asked without creating it."""
    found = await store.load(run_id) if isinstance(store, Loads) else None
    return None if found is None else _as_context(found, run_id)


async def _created(store: StateStore, run_id: str, stored: dict[str, Any]) -> PipelineContext:
    """Return the stored run, or a new one with these inputs."""
    context = _as_context(await store.load_or_create(run_id, stored), run_id)
    if not isinstance(store, Loads) and not (context.inputs or context.completed or context.lives):
        # An empty run, which asking a store without `load` has left behind: no worker has ever begun it.
        context.inputs = stored
    return context


def _as_context(found: Any, run_id: str) -> PipelineContext:
    return found if isinstance(found, PipelineContext) else as_context(found, run_id)


@asynccontextmanager
async def opened_store(store: Any) -> AsyncIterator[StateStore]:
    """Give the store that is meant, and close it again if it was opened here, from its URL."""
    chosen = default_store() if store is None else open_store(store)
    try:
        yield chosen
    finally:
        if isinstance(store, str) and isinstance(chosen, Closable):
            await chosen.aclose()


@asynccontextmanager
async def _time_limit(seconds: float | None, run_id: str) -> AsyncIterator[None]:
    if seconds is not None and not seconds > 0:
        raise ValueError(f"timeout={seconds!r} is not a positive number of seconds.")
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise TimeoutError(
            f"run {run_id!r} was not done within {seconds:g} s. Its completed nodes are stored; "
            f"resume(pipeline, {run_id!r}) goes on from them."
        ) from error


def _with_held(store: StateStore, context: PipelineContext) -> PipelineContext:
    """Return a stored run with what its nodes have returned since, when an earlier save in this process failed."""
    held = _held.pop((store.place, context.run_id), None) if _held else None
    if held is None:
        return context
    # A store that keeps four fields gives every context that it makes a new incarnation.
    is_same_run = held.incarnation == context.incarnation or held.revision == context.revision == 0
    in_doubt = held.in_doubt.stored_revision.revision if held.in_doubt else held.revision
    is_ahead = context.revision in (held.revision, in_doubt) and context.completed.keys() <= held.completed.keys()
    return held if is_same_run and is_ahead and held.inputs == context.inputs else context


def _hold(store: StateStore, context: PipelineContext) -> None:
    _held[store.place, context.run_id] = context
    if len(_held) > _MAX_HELD:
        _held.pop(next(iter(_held)), None)


def _check_new(whole: Pipeline, stored: Mapping[str, Any] | None) -> None:
    """Refuse to start a run whose inputs do not fit, or whose nodes cannot be called; `None` are inputs not known."""
    if stored is not None:
        check_new_inputs(whole, stored)
    check_ready_to_call(whole, ())


def _refusal(whole: Pipeline, stored: Mapping[str, Any] | None) -> Exception | None:
    """Return why a run of these inputs could not be started, which does not matter to one that is stored already."""
    try:
        _check_new(whole, stored)
    except Exception as error:
        return error
    return None


def check_new_inputs(whole: Pipeline, stored: Mapping[str, Any]) -> None:
    """Refuse inputs that do not fit, before anything is stored or called."""
    wiring = wire(whole)
    wiring.check_inputs(stored, whole.name)
    readers = {node for name in stored for node in wiring.readers[name]}
    for agent in whole.agents() if readers else ():
        if agent.name not in readers:
            continue
        read = {
            name: stored[source.name]
            for name, source in wiring.sources[agent.name].items()
            if source.kind == "input" and source.name in stored
        }
        try:
            checked_arguments(agent, read)
        except AgentInputError as error:
            raise InputsError(f"an input does not fit pipeline {whole.name!r}: {error} No node was called.") from error


def check_ready_to_call(whole: Pipeline, completed: Container[str] = ()) -> None:
    """Raise `ConfigurationError` if a node that is not complete could not be called: a key or an SDK is missing."""
    for agent in whole.agents():
        if agent.name not in completed:
            for candidate in agent.lineup():
                check_ready(candidate)


def as_pipeline(target: Step) -> Pipeline:
    """Return a pipeline as it is, and an agent as a pipeline of one step. Raises `TypeError` for anything else."""
    if isinstance(target, Pipeline):
        return target
    if isinstance(target, Step):
        return pipeline(target)
    raise TypeError(f"{target!r} cannot be run; give a pipeline(…), or an @agent.")


def _run(work: Coroutine[Any, Any, RunResult]) -> RunResult:
    # The result does not become that of a task: asyncio takes the repr of its main task while it sets up signals, which
    # is as long as the output.
    results: list[RunResult] = []

    async def main() -> None:
        results.append(await work)

    asyncio.run(main())
    return results[0]


def refuse_event_loop(called: str, instead: str) -> None:
    """Raise `RuntimeError` inside a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        f"{called}() was called inside a running event loop (a web handler, a notebook, an async test), which it would "
        f"block. Use `await {instead}(…)` there."
    )
