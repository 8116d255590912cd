"""A run that dies where a plan says, in this process: a small second opinion on what the crash package does."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from n00dles import InMemoryStateStore, PipelineContext, aresume, arun
from n00dles.agent import Agent
from n00dles.events import Event
from n00dles.providers import LLMResponse
from n00dles_testing.crash.points import Kind, Occurrences, Point, points_of
from n00dles_testing.strategies import AttemptsInMemory, PipelineSpec, build, counted_by


class Death(BaseException):
    """Stands for a SIGKILL."""


class Mortal:
    """One life, which ends at `point`; afterwards it is `dead`, and nothing of it reaches the store."""

    def __init__(self, point: Point | None) -> None:
        self.dead = False
        self._point = point
        self._passed = Occurrences()

    def passes(self, points: list[Point]) -> None:
        for point in points:
            if self.dead or self._passed.number(point) == self._point:
                self.dead = True
                raise Death

    def observe(self, event: Event) -> None:
        self.passes(points_of(event.name, vars(event)))

    def inhabit(self, agent: Agent) -> None:
        """Have the calls of `agent` and its fallbacks pass the point in their middle."""
        during, each = Point(Kind.DURING, agent.name), agent
        while True:
            if each.model is not None:
                each.provider = _MortalProvider(each.resolve_provider(), lambda: self.passes([during]))
            else:
                each.fn = _mortal_body(each.fn, lambda: self.passes([during]))
            if each.fallback is None:
                return
            each = each.fallback


def _mortal_body(body: Callable[..., Any], passes: Callable[[], None]) -> Callable[..., Any]:
    async def mortal_async(**arguments: Any) -> Any:
        passes()
        return await body(**arguments)

    def mortal(**arguments: Any) -> Any:
        passes()
        return body(**arguments)

    return functools.wraps(body)(mortal_async if inspect.iscoroutinefunction(body) else mortal)


class _MortalProvider:
    def __init__(self, inner: Any, passes: Callable[[], None]) -> None:
        self._inner = inner
        self._passes = passes

    async def complete(self, prompt: str, system: str, **kwargs: Any) -> LLMResponse:
        try:
            response: LLMResponse = await self._inner.complete(prompt, system, **kwargs)
        finally:
            self._passes()
        return response


class _MortalStore(InMemoryStateStore):
    """A view of `kept` by one life: a dead one reads and writes nothing."""

    def __init__(self, kept: InMemoryStateStore, life: Mortal) -> None:
        super().__init__()
        self._kept = kept
        self._life = life
        self._carried: set[str] = set()

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        return self._loaded(await self._kept.load_or_create(run_id, inputs))

    async def load(self, run_id: str) -> PipelineContext | None:
        found = await self._kept.load(run_id)
        return None if found is None else self._loaded(found)

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        new = [node for node in ctx.completed if node not in self._carried]
        self._life.passes(points_of("save_start", {"new": new}))
        await self._kept.save(run_id, ctx)
        self._carried.update(new)
        self._life.passes(points_of("save_end", {"new": new}))

    def _loaded(self, ctx: PipelineContext) -> PipelineContext:
        self._carried.update(ctx.completed)
        return ctx


def played(spec: PipelineSpec, plan: tuple[Point, ...]) -> tuple[Any, list[Point]]:
    """Run `spec`, kill it as planned, resume it; return the last life's output, and the deaths that did not happen."""
    kept, missed = InMemoryStateStore(), list[Point]()
    output: Any = None
    with counted_by(AttemptsInMemory()):
        for point in (*plan, None):
            life = Mortal(point)
            try:
                output = asyncio.run(_life(spec, kept, life))
            except Death:
                continue
            if point is not None:
                missed.append(point)
    return output, missed


async def _life(spec: PipelineSpec, kept: InMemoryStateStore, life: Mortal) -> Any:
    pipeline = build(spec)
    for agent in pipeline.agents():
        life.inhabit(agent)
    store = _MortalStore(kept, life)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    if await kept.load("r") is None:
        result = await arun(pipeline, run_id="r", store=store, observers=[life.observe], **spec.input_values())
    else:
        result = await aresume(pipeline, "r", store=store, observers=[life.observe])
    return result.output
