"""E06, E07, E08, E14: fan-outs and branches that are resumed, limited, named or left in the wrong way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

from n00dles import PipelineContext, RunResult
from n00dles.attempts import Settings
from n00dles.events import BranchRouted
from n00dles.executor import Execution
from n00dles.pipeline import Branch, Parallel, Pipeline, Step
from tests.n00dles_testing.crash.mutants.base import (
    RESUMES,
    Around,
    Executor,
    Life,
    fan_outs,
    forgetting,
    routed,
    single,
)


class RunsAllMembersAgain(Executor):
    """Knows of a fan-out only that it is done or not: a resume runs every member of one that is not."""

    breaks = "E06"
    also = frozenset({"E10", "E14"})

    def __init__(self) -> None:
        self._members: list[list[str]] = []

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        self._members = [single(group) for group in fan_outs(life.pipeline)]
        return nullcontext()

    def around(self, store: Any) -> Any:
        groups = self._members

        class Whole(Around):
            def loaded(self, found: PipelineContext) -> PipelineContext:
                done = [[member for member in members if found.is_complete(member)] for members in groups]
                again = [some for some, members in zip(done, groups, strict=True) if len(some) < len(members)]
                return forgetting(found, {member for some in again for member in some})

        return Whole.put(store)


class IgnoresTheLimit(Executor):
    """Runs all members of a fan-out at once, whatever `max_concurrency` says."""

    breaks = "E06"

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return without_limits(life.pipeline)


class ForgetsTheLimit(Executor):
    """Keeps `max_concurrency` in the first life, and runs all that is left at once in a resumed one."""

    breaks = "E06"

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return without_limits(life.pipeline) if life.inputs is None else nullcontext()


class TakesTheOtherRoute(Executor):
    """Evaluates a branch again after a resume, by another input."""

    breaks = "E07"
    also = frozenset({"E01", "E17"}) | RESUMES  # what follows the other route has what it needs from none

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return patch.object(Execution, "_branch_step", _next_route) if life.inputs is None else nullcontext()


class ForgetsTheRoutedNode(Executor):
    """Records that a branch is done a save after its node: a kill in between runs the node again."""

    breaks = "E07"
    also = frozenset({"E10", "E14"})

    def __init__(self) -> None:
        self._routed: set[str] = set()

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        self._routed = routed(life.pipeline)
        branch_step = Execution._branch_step

        async def not_the_last(self: Execution, branch: Branch, previous: Any, settings: Settings, _: Any) -> Any:
            return await branch_step(self, branch, previous, settings, lambda: False)

        return patch.object(Execution, "_branch_step", not_the_last)

    def around(self, store: Any) -> Any:
        nodes = self._routed

        class Late(Around):
            def loaded(self, found: PipelineContext) -> PipelineContext:
                return found if found.status == "finished" else forgetting(found, nodes & set(found.order[-1:]))

        return Late.put(store)


class TakesANodeForThePipeline(Executor):
    """Asks whether the run is done by the pipeline's name, among the records of its nodes."""

    breaks = "E08"

    async def live(self, life: Life) -> RunResult:
        found = await life.record()
        if found is not None and found.is_complete(life.pipeline.name):
            return RunResult(life.run_id, found.completed[life.pipeline.name])
        return await super().live(life)


class AbandonsSiblings(Executor):
    """Raises what the first failing member raised, and lets its siblings go on behind the caller's back."""

    breaks = "E14"

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return patch("n00dles.executor._all", _first_error)


async def _first_error(members: list[Coroutine[Any, Any, Any]]) -> list[Any]:
    return list(await asyncio.gather(*members))


@contextmanager
def without_limits(pipeline: Pipeline) -> Iterator[None]:
    """Have every fan-out run all its members at once while inside."""
    groups = [step for step in _steps(pipeline) if isinstance(step, Parallel)]
    limits = [group.max_concurrency for group in groups]
    try:
        for group in groups:
            group.max_concurrency = None
        yield
    finally:
        for group, limit in zip(groups, limits, strict=True):
            group.max_concurrency = limit


async def _next_route(
    execution: Execution, branch: Branch, previous: Any, settings: Settings, is_last: Callable[[], bool]
) -> Any:
    """Take the route after the one that is due; instead of `Execution._branch_step`."""
    key = previous.get("category") if isinstance(previous, dict) else previous
    due = (branch.routes.get(key) if isinstance(key, str) else None) or branch.default
    children = branch.children
    route = children[(children.index(due) + 1) % len(children)] if due is not None else children[0]
    execution._routes[branch] = route
    context, observers = execution._context, execution._observers
    observers.emit(BranchRouted(run_id=context.run_id, branch=branch.name, key=key, route=route.name))
    return await execution._step(route, previous, settings, is_last)


def _steps(step: Step) -> Iterator[Step]:
    yield step
    for child in step.children:
        yield from _steps(child)
