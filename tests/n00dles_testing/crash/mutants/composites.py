"""E06, E07, E08, E14: fan-outs and branches that are resumed, limited, named or left in the wrong way."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

from n00dles import PipelineContext
from n00dles.agent import Agent
from n00dles.executor import Execution
from n00dles.pipeline import Branch, Parallel, Pipeline, Step
from tests.n00dles_testing.crash.mutants.base import Around, Executor, Life, fan_outs, forgetting, routed, single


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
    also = frozenset({"E17"})

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return other_routes(life.pipeline) if life.inputs is None else nullcontext()


class ForgetsTheRoutedNode(Executor):
    """Lets a branch record that it is done a step after its node: a kill in between runs the node again."""

    breaks = "E07"
    also = frozenset({"E10", "E14"})

    def __init__(self) -> None:
        self._routed: set[str] = set()

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        self._routed = routed(life.pipeline)
        return nullcontext()

    def around(self, store: Any) -> Any:
        nodes = self._routed

        class Late(Around):
            def loaded(self, found: PipelineContext) -> PipelineContext:
                return found if found.status == "finished" else forgetting(found, nodes & set(found.order[-1:]))

        return Late.put(store)


class KeepsGroupsAmongNodes(Executor):
    """Records what a group, a branch and a nested pipeline gave under their names, beside the nodes."""

    breaks = "E08"

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return keeping_groups()


class AbandonsSiblings(Executor):
    """Raises what the first failing member raised, and lets its siblings go on behind the caller's back."""

    breaks = "E14"

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return patch("n00dles.executor._all", _first_error)


async def _first_error(members: list[Coroutine[Any, Any, Any]]) -> list[Any]:
    return list(await asyncio.gather(*members))


@contextmanager
def keeping_groups() -> Iterator[None]:
    """Have every group, branch and nested pipeline put its output beside those of the nodes while inside."""
    step_of = Execution._step

    async def step(self: Execution, step: Step, *rest: Any) -> Any:
        output = await step_of(self, step, *rest)
        if not isinstance(step, Agent) and not self._context.is_complete(step.name):
            self._context.checkpoint_stored(step.name, output)
        return output

    with patch.object(Execution, "_step", step), patch("n00dles.api.check_pipeline_unchanged", lambda *compared: None):
        yield


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


@contextmanager
def other_routes(pipeline: Pipeline) -> Iterator[None]:
    """Have each branch take the route after the one that is due while inside."""
    branches = [step for step in _steps(pipeline) if isinstance(step, Branch)]
    kept = [(dict(branch.routes), branch.default) for branch in branches]
    try:
        for branch in branches:
            children = branch.children
            after = dict(zip(children, (*children[1:], children[0]), strict=True))
            branch.routes.update({key: after[step] for key, step in branch.routes.items()})
            branch.default = None if branch.default is None else after[branch.default]
        yield
    finally:
        for branch, (routes, default) in zip(branches, kept, strict=True):
            branch.routes.update(routes)
            branch.default = default


def _steps(step: Step) -> Iterator[Step]:
    yield step
    for child in step.children:
        yield from _steps(child)
