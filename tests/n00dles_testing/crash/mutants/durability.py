"""E01, E02, E03, E17, E18: what is stored too late, forgotten, called again, or resumed only once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from n00dles import PipelineContext, RunResult
from n00dles.checkpointing import Checkpointer
from n00dles.executor import Execution
from n00dles.idempotency import node_call
from n00dles.pipeline import Pipeline
from tests.n00dles_testing.crash.mutants.base import RESUMES, Around, Executor, Life, flat_fan_outs, forgetting


class SavesWhenTheRunEnds(Executor):
    """Keeps all outputs in memory until the last: write at exit."""

    breaks = "E01"
    also = frozenset({"E03", "E11"})  # what is stored at the exit waits for more than one save, attempts included

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return saving_when(lambda context: context.status != "running" or not context.unsaved)


class ForgetsTheLastNode(Executor):
    """Resumes one node before the last acknowledged one."""

    breaks = "E02"

    def around(self, store: Any) -> Any:
        class Forgetful(Around):
            def loaded(self, found: PipelineContext) -> PipelineContext:
                return found if found.status == "finished" else forgetting(found, found.order[-1:])

        return Forgetful.put(store)


class HoldsBackTheFirstMember(Executor):
    """Saves the member of a fan-out that is done first only together with the last."""

    breaks = "E03"
    also = frozenset({"E11"})  # what has completed nothing in the store looks to it as if it had

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return holding_back_the_first(flat_fan_outs(life.pipeline))


class SavesAtTheJoin(Executor):
    """Saves the members of a fan-out when all of them are done: seen where at least three take turns."""

    breaks = "E03"
    also = frozenset({"E11"})  # an attempt that fails meanwhile is not saved either

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        flat = flat_fan_outs(life.pipeline)
        return saving_when(lambda context: not any(_is_partial(context, members) for members in flat))


class DrawsANewKey(Executor):
    """Gives each life its own idempotency keys."""

    breaks = "E03"

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        if life.inputs is not None:
            return nullcontext()
        return patch(
            "n00dles.attempts.node_call", lambda run_id, node, agent: node_call(run_id + " again", node, agent)
        )


class GivesAllNodesOneKey(Executor):
    """Makes the idempotency key from the run alone."""

    breaks = "E03"

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return patch("n00dles.attempts.node_call", lambda run_id, node, agent: node_call(run_id, "", agent))


class CallsTwice(Executor):
    """Calls each node once more than it needs, after a resume, and counts one."""

    breaks = "E03 E05"

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return calling_twice(life.pipeline) if life.inputs is None else nullcontext()


class AlwaysCallsTwice(Executor):
    """Calls each node once more than it needs in every life, and counts one."""

    breaks = "E03 E05"

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return calling_twice(life.pipeline)


class RunsAgain(Executor):
    """Runs a finished run from the start."""

    breaks = "E17"
    also = RESUMES

    async def live(self, life: Life) -> RunResult:
        found = await life.record()
        if found is not None and found.status == "finished":
            await life.store.delete(life.run_id)
            return await super().live(replace(life, inputs=found.inputs))
        return await super().live(life)


class ForgetsTheResult(Executor):
    """Returns nothing for a finished run."""

    breaks = "E17"
    also = RESUMES

    async def live(self, life: Life) -> RunResult:
        found = await life.record()
        result = await super().live(life)
        return replace(result, output=None) if found is not None and found.status == "finished" else result


class ResumesOnlyOnce(Executor):
    """Cannot read what a resumed run has written."""

    breaks = "E18"
    also = RESUMES

    def around(self, store: Any) -> Any:
        class Once(Around):
            def loaded(self, found: PipelineContext) -> PipelineContext:
                if found.status == "running" and found.lives > 1:
                    raise KeyError("worker-1")
                return found

        return Once.put(store)


@contextmanager
def saving_when(is_time: Callable[[PipelineContext], bool]) -> Iterator[None]:
    """Have checkpoints saved only when `is_time` says so of what is to be saved."""

    class Later(Checkpointer):
        async def save(self) -> None:
            if is_time(self._context):
                await super().save()

    with patch("n00dles.executor.Checkpointer", Later):
        yield


def _is_partial(context: PipelineContext, members: set[str]) -> bool:
    return context.status == "running" and 0 < len(members & set(context.completed)) < len(members)


class _HoldingBack(PipelineContext):
    """A context that keeps the first output of each of its groups from the record until the last one comes."""

    groups: list[set[str]]
    held: dict[str, Any]

    def checkpoint_stored(self, node: str, stored: Any) -> None:
        members = next((group for group in self.groups if node in group), {node})
        done = {member for member in members if member in self.completed or member in self.held}
        if not done and len(members) > 1:
            self.held[node] = stored
            return
        if done | {node} == members:
            for member in members & self.held.keys():
                super().checkpoint_stored(member, self.held.pop(member))
        super().checkpoint_stored(node, stored)


@contextmanager
def holding_back_the_first(groups: list[set[str]]) -> Iterator[None]:
    """Have every run that is carried on meanwhile hold back the first output of each of `groups`."""
    begin = Execution.__init__

    def begin_holding(self: Execution, *rest: Any, **options: Any) -> None:
        begin(self, *rest, **options)
        self._context.__class__ = _HoldingBack
        self._context.__dict__.update(groups=groups, held={})

    with patch.object(Execution, "__init__", begin_holding):
        yield


@contextmanager
def calling_twice(pipeline: Pipeline) -> Iterator[None]:
    """Have each body called twice while inside."""
    bodies = {agent.name: agent.fn for agent in pipeline.agents()}
    try:
        for agent in pipeline.agents():
            agent.fn = _twice(agent.fn)
        yield
    finally:
        for agent in pipeline.agents():
            agent.fn = bodies[agent.name]


def _twice(body: Any) -> Any:
    async def called_twice(**arguments: Any) -> Any:
        for _ in range(2):
            output = body(**arguments)
            output = await output if inspect.isawaitable(output) else output
        return output

    return called_twice
