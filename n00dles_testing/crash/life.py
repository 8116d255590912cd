"""One life of a run: look at what the store holds, run or resume, write down how it ended."""

from __future__ import annotations

import asyncio
import re
import sysconfig
import time
import traceback
import zlib
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import n00dles
from n00dles import checkpointing
from n00dles.context import PipelineContext
from n00dles.errors import PipelineFailure, StateStoreError
from n00dles.events import Observer
from n00dles.pipeline import Pipeline
from n00dles.result import RunResult
from n00dles.retry import RetryPolicy
from n00dles.stores.base import Loads, StateStore

from .disturbance import Awaits
from .instrument import Trigger, instrumented
from .ledger import Ledger
from .points import How
from .recorded_store import Fence, RecordedStore, recorded_store
from .remains import Remains
from .scenario import LifeRequest
from .typed import encode

__all__ = ["Executor", "ExecutorUnderTest", "ReferenceExecutor", "SelfContained", "live", "write_failure"]

_NOT_THEIRS = (
    str(Path(n00dles.__file__).parent),
    str(Path(__file__).parents[1]),
    *(str(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
)
"""Where code lies that is not the user's."""
_ADVICE = re.compile(
    r" (Completed nodes are kept; |What the nodes returned is kept in this process; )?resume\(pipeline, .+"
)
"""What an error of n00dles says at its end of how to go on: nobody can, with a run that is gone after the scenario."""


class ExecutorUnderTest(Protocol):
    """What is asked of an executor to be judged: to run a pipeline, and to resume a run. Both end in a result or raise.

    It owes three things:

    - It calls a node as `agent.fn(**arguments)`, or its model by `agent.resolve_provider().complete(…)`, and looks both
      up at each call: that is where calls are seen, whatever it says of them.
    - It saves through the `store` that it is given, and through no other, which is where saves are seen.
    - It tells its `observers` what it does, as it does it: each is called with an event of `n00dles.events`, in the
      order of that module. That is where its lives can be ended: without `NodeStarted` there is no `before:NODE`, and
      without `NodeReturned` no `after:NODE`. A `BaseException` of an observer must get through.

    Each life is a process of its own, so nothing is known in it but what the store says.
    """

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: StateStore,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        """Run `pipeline` under `run_id`; a run that is stored is continued."""

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        """Continue the stored run `run_id`."""


Executor = ExecutorUnderTest


@runtime_checkable
class SelfContained(Protocol):
    """An executor that comes with what it runs, and keeps its checkpoints itself: a program, seen as an executor.

    `pipeline` holds the nodes, so that their calls are seen. `describe` says what a judge has to know, in JSON types:
    `name`; `nodes`, with `model` (None) and `needs` (all that have to be stored before) by node; `untold`, the clauses
    that cannot be told and why; `sees_saves`, whether its saves go through the store; `notes` for the reader; and `how`
    it can be disturbed. `open_store` gives the store of the run at a location, a folder: `load` has to say what is
    stored there, the rest is the executor's affair.
    """

    pipeline: Pipeline

    def describe(self) -> dict[str, Any]:
        """Return what a judge has to know."""

    def open_store(self, location: str) -> StateStore:
        """Return the store of the run whose own folder is `location`."""


class ReferenceExecutor:
    """The one of n00dles."""

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: StateStore,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        """Run with `arun`."""
        return await n00dles.arun(pipeline, run_id=run_id, store=store, observers=observers, **inputs)

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        """Resume with `aresume`."""
        return await n00dles.aresume(pipeline, run_id, store=store, observers=observers)


async def live(
    request: LifeRequest,
    pipeline: Pipeline,
    executor: Executor,
    *,
    store: StateStore,
    trigger: Trigger,
    fence: Fence,
) -> bool:
    """Live one life, and return whether the run returned a result. Errors of the run are written down, not raised."""
    ledger = trigger.ledger
    ledger.write(
        "life_start",
        point=None if request.point is None else str(request.point),
        again=request.again,
        same_process=request.same_process,
    )
    # Only a stored run can be resumed. Where it may not be, as after a kill before there was a record, it is run again.
    is_stored = request.life > 1 and await _look(store, request, ledger)
    goes_on = "run" if _is_run_again(request, executor) else "resume"
    ways = ["resume", "run"] if request.again else [goes_on if is_stored else "run"]
    ok = True
    with instrumented(pipeline, trigger), _no_waits():
        for how in ways:
            start = executor.resume if how == "resume" else partial(executor.run, inputs=request.scenario.inputs)
            seen_store = recorded_store(store, trigger, fence)
            work = start(pipeline, run_id=request.scenario.run_id, store=seen_store, observers=(trigger.observe,))
            ok = await _ended(work, how, request, trigger, seen_store) and ok
    if request.again and ok and request.scenario.forget:
        await store.delete(request.scenario.run_id)
    return ok


def _is_run_again(request: LifeRequest, executor: Executor) -> bool:
    """Whether this life carries the stored run on with `run`, as who starts a job anew does: every third one.

    How the lives before it end decides that alone: a replay does the same, and a plan that also ends this life, at a
    moment that was seen in it, meets that moment again.
    """
    if isinstance(executor, SelfContained):
        return False  # a program is started in one way only
    plan = request.scenario.plan[: request.life - 1]
    return zlib.crc32(f"{request.life} {', '.join(map(str, plan))}".encode()) % _RUN_AGAIN == 0


_RUN_AGAIN = 3


async def _ended(
    work: Coroutine[Any, Any, RunResult], how: str, request: LifeRequest, trigger: Trigger, store: RecordedStore
) -> bool:
    """Have the executor do its work, write down how that ended and what is left, and return whether it had a result."""
    ledger, disturbance = trigger.ledger, trigger.disturbance
    remains = Remains(trigger, store) if request.point is not None and request.point.how is not How.KILL else None
    counted = Awaits(work, trigger.gives_way, time.monotonic)
    try:
        result = await (disturbance.around(counted) if disturbance.is_from_outside else counted)
    except Exception as error:
        write_failure(ledger, how, error)
        ok = False
    except (asyncio.CancelledError, KeyboardInterrupt) as error:
        if not (trigger.delivered and disturbance.is_from_outside) or _is_being_cancelled():
            raise
        write_failure(ledger, how, error)
        ok = False
    else:
        ledger.write("outcome", how=how, ok=True, **_result(result))
        ok = True
    if remains is not None:
        ledger.write("left", delivered=trigger.delivered, **remains.now())
        await remains.linger()
    elif not request.again:
        ledger.write("awaits", count=counted.count, until=counted.until)
    return ok


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@contextmanager
def _no_waits() -> Iterator[None]:
    """Have no wait between two attempts of a node, or of a save: it changes nothing that a disturbance could lose."""
    policy: Any = RetryPolicy
    before = policy.delay, checkpointing._FIRST_DELAY
    policy.delay, checkpointing._FIRST_DELAY = _at_once, 0.0
    try:
        yield
    finally:
        policy.delay, checkpointing._FIRST_DELAY = before


async def _look(store: StateStore, request: LifeRequest, ledger: Ledger) -> bool:
    """Write down what the store holds between two lives, and return whether it is known to have the run.

    A store without `load` can only be asked as the next life will ask it, by creating the run with its inputs; if an
    empty one comes back, it may have been made just now.
    """
    scenario = request.scenario
    knows = isinstance(store, Loads)
    try:
        context: PipelineContext | None
        if isinstance(store, Loads):
            context = await store.load(scenario.run_id)
        else:
            context = await store.load_or_create(scenario.run_id, scenario.inputs)
    except Exception as error:
        ledger.write("disk", error=f"{type(error).__name__}: {error}")
        return True
    if context is None:
        ledger.write("disk", exists=False, nodes=[])
        return False
    status = getattr(context, "status", None)
    ledger.write(
        "disk",
        exists=True,
        nodes=list(context.order),
        counted=all(node in context.nodes for node in context.order),
        status=status,
        revision=context.revision,
        known=getattr(context, "is_known", True),
    )
    return knows or bool(context.completed)


def _at_once(policy: RetryPolicy, failed_attempts: int, error: BaseException | None = None) -> float:
    return 0.0


def write_failure(ledger: Ledger, how: str, error: BaseException) -> None:
    """Write down an error that ends a life, and whose it is."""
    message = _ADVICE.sub("", str(error))
    ledger.write("outcome", how=how, ok=False, error=type(error).__name__, message=message, **_blame(error))


def _blame(error: BaseException) -> dict[str, str]:
    """Say whether a node or the store is at fault (`blame`), and, of a node, what it raised, and where."""
    if isinstance(error, PipelineFailure):
        cause = error.cause
        own = [
            frame for frame in traceback.extract_tb(cause.__traceback__) if not frame.filename.startswith(_NOT_THEIRS)
        ]
        place = f" ({own[-1].filename}, line {own[-1].lineno}, in {own[-1].name})" if own else ""
        text = str(cause).rstrip(".")
        hint = f" {error.hint}" if error.hint else ""
        return {
            "blame": "node",
            "cause": f"node {error.node_name!r} raised {type(cause).__name__}: {text}{place}.{hint}",
        }
    frames = traceback.extract_tb(error.__traceback__)
    in_store = any(f.filename == recorded_store.__code__.co_filename or f.name == "scenario_store" for f in frames)
    return {"blame": "store" if in_store or isinstance(error, StateStoreError) else ""}


def _result(result: RunResult) -> dict[str, Any]:
    traces = [
        {
            "name": trace.name,
            "status": trace.status,
            "input_tokens": trace.input_tokens,
            "output_tokens": trace.output_tokens,
            "attempts": trace.attempts,
        }
        for trace in result.agent_traces
    ]
    return {"output": encode(result.output), "tokens": result.total_tokens, "traces": traces}
