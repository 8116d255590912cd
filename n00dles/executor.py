"""One life of one run: walk the pipeline, skip what is complete, call the rest, save after every node."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine
from typing import Any, cast

from .agent import Agent
from .attempts import Settings, StoppedError, Worker
from .calling import check_output
from .checkpointing import Checkpointer
from .context import PipelineContext
from .errors import BranchError, PipelineFailure, StateStoreError, described, message_of
from .events import BranchRouted, GroupJoined, Observers, RunFailed, RunFinished, RunStarted
from .pipeline import Branch, Parallel, Pipeline, Step
from .serialization import JSONValue, restore
from .stores.base import StateStore
from .threads import wait_out
from .wiring import Wiring

__all__ = ["MAX_STALLED_LIVES", "Execution"]

MAX_STALLED_LIVES = 5
"""Lives in a row that may end without a completed node; the next one fails the run instead of calling a node."""

SECONDS_TO_NOTE_THE_END = 5.0

IsLast = Callable[[], bool]

_log = logging.getLogger("n00dles")


class Execution:
    """Carries one run on, from wherever `context` says it is, to its end or its failure.

    Only nodes have records. What a group, a branch or a nested pipeline gave follows from those, so there is nothing
    that could be saved a step later than they are.

    A body that calls sys.exit() ends the process, as it does elsewhere; with `outlives_exits`, as in a worker that has
    other runs, it is an error of its node.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        wiring: Wiring,
        context: PipelineContext,
        store: StateStore,
        observers: Observers,
        *,
        outlives_exits: bool = False,
    ) -> None:
        self._pipeline = pipeline
        self._wiring = wiring
        self._context = context
        self._observers = observers
        self._store = store
        self._checkpointer = Checkpointer(store, context, observers)
        self._worker = Worker(context, self._checkpointer, observers, wiring, outlives_exits=outlives_exits)
        self._composites: dict[str, JSONValue] = {}
        self._routes: dict[Branch, Step] = {}
        self._opening = asyncio.Lock()
        self._is_open = False

    async def run(self) -> Any:
        """Run to the end, and return the output in the last agent's declared type.

        Raises `PipelineFailure` for a node, `StateStoreError` for the store. However it ends, nothing is running or
        saving afterwards.
        """
        context, observers = self._context, self._observers
        observers.emit(
            RunStarted(
                run_id=context.run_id,
                pipeline=self._pipeline.name,
                life=context.lives if context.is_new else context.lives + 1,
                completed=tuple(context.order),
                store=repr(self._store),
                incarnation=context.incarnation,
            )
        )
        try:
            output = await self._pipeline_step(self._pipeline, None, Settings(), lambda: True)
            if context.status != "finished" or context.unsaved:
                # Nothing was called that would have saved it: a foreign record, one whose last steps were removed, or
                # one whose last save failed in an earlier life of this process.
                context.status = "finished"
                await self._checkpointer.save()
        except Exception as error:
            node = error.node_name if isinstance(error, PipelineFailure) else None
            observers.emit(RunFailed(run_id=context.run_id, node=node, error=message_of(error)))
            raise
        except asyncio.CancelledError:
            observers.emit(RunFailed(run_id=context.run_id, node=None, error="cancelled"))
            await self._note_orderly_end()
            raise
        finally:
            self._worker.close()
        observers.emit(RunFinished(run_id=context.run_id, calls=self._worker.calls))
        return self._typed(self._pipeline, output)

    def _step(
        self, step: Step, previous: JSONValue, settings: Settings, is_last: IsLast
    ) -> Coroutine[Any, Any, JSONValue]:
        if isinstance(step, Agent):
            return self._agent_step(step, previous, settings, is_last)
        if isinstance(step, Parallel):
            return self._parallel_step(step, previous, settings, is_last)
        if isinstance(step, Branch):
            return self._branch_step(step, previous, settings, is_last)
        return self._pipeline_step(cast(Pipeline, step), previous, settings, is_last)

    async def _agent_step(self, agent: Agent, previous: JSONValue, settings: Settings, is_last: IsLast) -> JSONValue:
        context = self._context
        if context.is_complete(agent.name):
            return context.completed[agent.name]
        self._worker.check_going()
        if not self._is_open:
            await self._open(agent)
        output = await self._worker.output_of(agent, self._arguments(agent, previous), settings)
        context.checkpoint_stored(agent.name, output)
        context.stalled = 0
        if is_last():
            context.status = "finished"
        await self._checkpointer.save()
        _go_on_with_cancellation()
        return output

    async def _pipeline_step(
        self, pipeline: Pipeline, previous: JSONValue, settings: Settings, is_last: IsLast
    ) -> JSONValue:
        settings = settings.narrowed(pipeline.timeout, pipeline.retry)
        final = len(pipeline.steps) - 1
        try:
            for index, step in enumerate(pipeline.steps):
                previous = await self._step(step, previous, settings, is_last if index == final else _never)
        except PipelineFailure as failure:
            await _call_on_error(pipeline, failure)
            raise
        self._composites[pipeline.name] = previous
        return previous

    async def _parallel_step(
        self, group: Parallel, previous: JSONValue, settings: Settings, is_last: IsLast
    ) -> JSONValue:
        places = asyncio.Semaphore(group.max_concurrency or len(group.members))
        pending = set(group.members)

        async def member_output(member: Step) -> JSONValue:
            async with places:
                try:
                    output = await self._step(member, previous, settings, lambda: pending == {member} and is_last())
                except BaseException:
                    self._worker.stop()
                    raise
                pending.discard(member)
                return output

        outputs = await _all([member_output(member) for member in group.members])
        self._observers.emit(
            GroupJoined(run_id=self._context.run_id, group=group.name, members=tuple(m.name for m in group.members))
        )
        return {member.name: output for member, output in zip(group.members, outputs, strict=True)}

    async def _branch_step(self, branch: Branch, previous: JSONValue, settings: Settings, is_last: IsLast) -> JSONValue:
        key = previous.get("category") if isinstance(previous, dict) else previous
        route = branch.routes.get(key) if isinstance(key, str) else None
        route = route or branch.default
        if route is None:
            error = BranchError(branch.name, key)
            failure = PipelineFailure(self._context.run_id, branch.name, error)
            await self._checkpointer.save_failure(failure)
            raise failure from error
        self._routes[branch] = route
        self._observers.emit(BranchRouted(run_id=self._context.run_id, branch=branch.name, key=key, route=route.name))
        return await self._step(route, previous, settings, is_last)

    async def _open(self, agent: Agent) -> None:
        """Save that a new life works on the run, before its first call: a node that kills every process is found so."""
        context = self._context
        async with self._opening:
            if self._is_open:
                return
            self._worker.check_going()  # a sibling may have found, while this one waited, that the run has failed
            if not context.is_new:
                context.begin_life()
            context.status, context.error = "running", None
            context.pipeline, context.signature = self._pipeline.name, self._pipeline.signature()
            if context.stalled > MAX_STALLED_LIVES:
                cause = RuntimeError(
                    f"{MAX_STALLED_LIVES} lives in a row have ended without a completed node and without an error: see "
                    f"what {agent.name!r} does to its process (memory, signals), then resume"
                )
                failure = PipelineFailure(context.run_id, agent.name, cause)
                await self._checkpointer.save_failure(failure)
                raise failure
            # A store that has created the run has also stored that its first life has begun.
            if context.unsaved or not (context.is_new and context.revision > 0):
                await self._save_opening()
            self._is_open = True

    async def _note_orderly_end(self) -> None:
        """Take back that this life may have died, so that five deploys in a row are not five deaths."""
        if not self._is_open or self._context.stalled == 0:
            return
        self._context.stalled -= 1
        try:
            async with asyncio.timeout(SECONDS_TO_NOTE_THE_END):
                await self._checkpointer.save()
        except (TimeoutError, StateStoreError):
            _log.warning("run %r was cancelled, and the store did not take note of it", self._context.run_id)

    async def _save_opening(self) -> None:
        try:
            await self._checkpointer.save()
        except StateStoreError:
            # The store took no note of this life, and it has not died either.
            if not self._context.is_new:
                self._context.lives -= 1
                self._context.stalled -= 1
            raise

    def _arguments(self, agent: Agent, previous: JSONValue) -> dict[str, JSONValue]:
        """Return what the wiring says, in stored form; a parameter that is left to its default is not in it."""
        context, arguments = self._context, dict[str, JSONValue]()
        for name, source in self._wiring.sources[agent.name].items():
            if source.kind == "previous":
                arguments[name] = previous
            elif source.kind == "input":
                if source.name in context.inputs:
                    arguments[name] = context.inputs[source.name]
            elif context.is_complete(source.name):
                arguments[name] = context.completed[source.name]
            elif source.name in self._composites:
                arguments[name] = self._composites[source.name]
        return arguments

    def _typed(self, step: Step, stored: JSONValue) -> Any:
        """Return a step's output in the type that its last agent declares."""
        if isinstance(step, Pipeline):
            return self._typed(step.steps[-1], stored)
        if isinstance(step, Branch):
            return self._typed(self._routes[step], stored)
        if isinstance(step, Parallel):
            outputs = cast(dict[str, JSONValue], stored)
            return {member.name: self._typed(member, outputs[member.name]) for member in step.members}
        agent = cast(Agent, step)
        check_output(agent, stored, stored)
        return restore(stored, agent.returns)


def _go_on_with_cancellation() -> None:
    """Raise `CancelledError` if a cancellation has waited for a sync body to return, and for the save of its output."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _never() -> bool:
    return False


async def _all(members: list[Coroutine[Any, Any, JSONValue]]) -> list[JSONValue]:
    """Return the outputs of all members.

    If one fails, calls that are running are awaited, since they are paid for, and no other is made. If this task is
    cancelled, or one ends by more than an `Exception`, all are cancelled, and awaited too.
    """
    tasks = [asyncio.ensure_future(member) for member in members]
    try:
        running = set(tasks)
        while running:
            ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
            for task in ended:
                error = _error_of(task)
                if error is not None and not isinstance(error, Exception):
                    raise error
    finally:
        for task in tasks:
            task.cancel()
        await wait_out(*tasks)
    errors = [error for error in map(_error_of, tasks) if error is not None and not isinstance(error, StoppedError)]
    if errors:
        for other in errors[1:]:
            errors[0].add_note(f"and in the same fan-out: {other}")
        raise errors[0]
    return [task.result() for task in tasks]


def _error_of(task: asyncio.Future[JSONValue]) -> BaseException | None:
    return asyncio.CancelledError() if task.cancelled() else task.exception()


async def _call_on_error(pipeline: Pipeline, failure: PipelineFailure) -> None:
    if pipeline.on_error is None:
        return
    try:
        outcome = pipeline.on_error(failure)
        if inspect.isawaitable(outcome):
            await outcome
    except Exception as error:
        failure.add_note(f"and on_error of pipeline {pipeline.name!r} failed: {described(error)}")
