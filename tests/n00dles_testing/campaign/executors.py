"""Executors for campaigns that are wrong in every life alike, or hardly run at all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import n00dles
from n00dles import RunResult
from n00dles.events import Observer
from n00dles.pipeline import Parallel, Pipeline
from n00dles.stores.base import StateStore


class Executor:
    """The executor of n00dles, as an object of this module."""

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: StateStore,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        return await n00dles.arun(pipeline, run_id=run_id, store=store, observers=observers, **inputs)

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        return await n00dles.aresume(pipeline, run_id, store=store, observers=observers)


class AlwaysReturnsText(Executor):
    """Returns the text of every output, in every life: what it does undisturbed is no measure."""

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: StateStore,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        result = await super().run(pipeline, run_id=run_id, store=store, observers=observers, inputs=inputs)
        return replace(result, output=f"{result.output}!")

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        result = await super().resume(pipeline, run_id=run_id, store=store, observers=observers)
        return replace(result, output=f"{result.output}!")


class AlwaysDropsTheLastMember(Executor):
    """Runs each fan-out without its last member, and answers for it with nothing."""

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: StateStore,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        for step in pipeline.steps:
            if isinstance(step, Parallel):
                for agent in step.members[-1].agents():
                    agent.fn = _nothing
        return await super().run(pipeline, run_id=run_id, store=store, observers=observers, inputs=inputs)


class TellsNobody(Executor):
    """Tells no observer anything, so that most moments are never passed."""

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: StateStore,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        return await super().run(pipeline, run_id=run_id, store=store, observers=(), inputs=inputs)

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        return await super().resume(pipeline, run_id=run_id, store=store, observers=())


class ForgetsWhatWasStored(Executor):
    """Runs a run that died from its start."""

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        context = await store.load_or_create(run_id, {})
        if context.status != "running":
            return await super().resume(pipeline, run_id=run_id, store=store, observers=observers)
        inputs = context.inputs
        await store.delete(run_id)
        return await self.run(pipeline, run_id=run_id, store=store, observers=observers, inputs=inputs)


class ReturnsNone(Executor):
    """Returns no result."""

    async def run(self, *args: Any, **kwargs: Any) -> RunResult:
        return None  # type: ignore[return-value]


class Exits(Executor):
    """Ends the process."""

    async def run(self, *args: Any, **kwargs: Any) -> RunResult:
        raise SystemExit(3)


class Hangs(Executor):
    """Waits for ever."""

    async def run(self, *args: Any, **kwargs: Any) -> RunResult:
        await asyncio.Event().wait()
        raise AssertionError


class TakesNoObservers:
    """Cannot be called as an executor is: it has no parameter for the observers."""

    async def run(self, pipeline: Pipeline, *, run_id: str, store: StateStore, inputs: Mapping[str, Any]) -> RunResult:
        return await n00dles.arun(pipeline, run_id=run_id, store=store, **inputs)

    async def resume(self, pipeline: Pipeline, *, run_id: str, store: StateStore) -> RunResult:
        return await n00dles.aresume(pipeline, run_id, store=store)


class PassesOnTheWrongWay:
    """Takes anything, and calls another with it that does not."""

    async def run(self, *args: Any, **kwargs: Any) -> RunResult:
        return await TakesNoObservers().run(*args, **kwargs)

    async def resume(self, *args: Any, **kwargs: Any) -> RunResult:
        return await TakesNoObservers().resume(*args, **kwargs)


class IsNotAsync:
    """Has methods that nobody can await."""

    def run(self, pipeline: Pipeline, *, run_id: str, store: Any, observers: Any, inputs: Any) -> RunResult:
        return RunResult(run_id, None)

    def resume(self, pipeline: Pipeline, *, run_id: str, store: Any, observers: Any) -> RunResult:
        return RunResult(run_id, None)


class BlocksItsLoop(IsNotAsync):
    """Has a plain `run`, which starts an event loop of its own inside the one that is there."""

    def run(self, pipeline: Pipeline, *, run_id: str, store: Any, observers: Any, inputs: Any) -> RunResult:
        return n00dles.run(pipeline, run_id=run_id, store=store, observers=observers, **inputs)


class CallsTheBodiesOfModels(Executor):
    """Calls the function of a model's agent, and not its provider."""

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: StateStore,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        for agent in pipeline.agents():
            agent.model = None
        return await super().run(pipeline, run_id=run_id, store=store, observers=observers, inputs=inputs)

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        for agent in pipeline.agents():
            agent.model = None
        return await super().resume(pipeline, run_id=run_id, store=store, observers=observers)


async def _nothing(**arguments: Any) -> None:
    await asyncio.sleep(0)


reference = Executor()
forgets_what_was_stored = ForgetsWhatWasStored()
not_an_executor = object()
