"""Executors with one fault each: what a check has to catch, and no other check.

Each is the executor of n00dles behind a wrapper that does one thing wrong, and names the clause that it breaks.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import n00dles
from n00dles import PipelineContext, RunResult
from n00dles.events import Observer
from n00dles.idempotency import node_call
from n00dles.pipeline import Branch, Pipeline
from n00dles.stores.base import StateStore


class WholeStore(StateStore):
    """A correct store that keeps each record whole, so that a mutant may hand it an edited one."""

    def __init__(self) -> None:
        self.records: dict[str, dict[str, Any]] = {}

    async def load(self, run_id: str) -> PipelineContext | None:
        record = self.records.get(run_id)
        return None if record is None else PipelineContext.from_dict(copy.deepcopy(record))

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        if run_id not in self.records:
            self.records[run_id] = PipelineContext(run_id, inputs).to_dict()
        return PipelineContext.from_dict(copy.deepcopy(self.records[run_id]))

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        self.records[run_id] = ctx.to_dict()

    async def delete(self, run_id: str) -> None:
        self.records.pop(run_id, None)


class Executor:
    """The executor of n00dles. Mutants override a part of it."""

    breaks = ""

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: StateStore,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        return await n00dles.arun(pipeline, run_id=run_id, store=self.around(store), observers=observers, **inputs)

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        return await n00dles.aresume(pipeline, run_id, store=self.around(store), observers=observers)

    def around(self, store: StateStore) -> StateStore:
        """Return the store as this executor uses it."""
        return store


class Around(StateStore):
    """A store behind a wrapper."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def load(self, run_id: str) -> PipelineContext | None:
        found: PipelineContext | None = await self.inner.load(run_id)
        return found

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        found: PipelineContext = await self.inner.load_or_create(run_id, inputs)
        return found

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        await self.inner.save(run_id, ctx)

    async def delete(self, run_id: str) -> None:
        await self.inner.delete(run_id)


def without(ctx: PipelineContext, node: str) -> PipelineContext:
    """Return a copy of a context that does not know of one of its outputs."""
    record = ctx.to_dict()
    record["order"].remove(node)
    del record["completed"][node]
    return PipelineContext.from_dict(record)


class SavesWhenTheRunEnds(Executor):
    """Keeps all outputs in memory until the last: write at exit."""

    breaks = "E01"

    def around(self, store: StateStore) -> StateStore:
        class AtTheEnd(Around):
            async def save(self, run_id: str, ctx: PipelineContext) -> None:
                if ctx.status == "finished":
                    await self.inner.save(run_id, ctx)

        return AtTheEnd(store)


class ForgetsTheLastNode(Executor):
    """Resumes one node before the last acknowledged one."""

    breaks = "E02"

    def around(self, store: StateStore) -> StateStore:
        class Forgetful(Around):
            async def load(self, run_id: str) -> PipelineContext | None:
                found = await super().load(run_id)
                if found is None or found.status == "finished" or not found.order:
                    return found
                return without(found, found.order[-1])

        return Forgetful(store)


class HoldsBackTheFirstMember(Executor):
    """Saves the first member of a fan-out only together with the last."""

    breaks = "E03"

    def around(self, store: StateStore) -> StateStore:
        class HoldingBack(Around):
            async def save(self, run_id: str, ctx: PipelineContext) -> None:
                members = [node for node in ctx.order if node in ("left", "middle", "right")]
                held = without(ctx, members[0]) if 0 < len(members) < 3 else ctx
                await self.inner.save(run_id, held)

        return HoldingBack(store)


class SavesAtTheJoin(Executor):
    """Saves the members of a fan-out when all of them are done."""

    breaks = "E03"

    def around(self, store: StateStore) -> StateStore:
        class AtTheJoin(Around):
            async def save(self, run_id: str, ctx: PipelineContext) -> None:
                if len({"left", "middle", "right"} & set(ctx.order)) in (0, 3):
                    await self.inner.save(run_id, ctx)

        return AtTheJoin(store)


class DrawsANewKey(Executor):
    """Gives each life its own idempotency keys."""

    breaks = "E03"

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        with patch("n00dles.attempts.node_call", lambda run_id, node: node_call(run_id + " again", node)):
            return await super().resume(pipeline, run_id=run_id, store=store, observers=observers)


async def was_unfinished(store: Any, run_id: str) -> bool:
    found = await store.load(run_id)
    return found is not None and found.status != "finished"


class ReturnsText(Executor):
    """Returns the text of the output when it had to resume: `str(value)` somewhere on the way."""

    breaks = "E04"

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        resumed = await was_unfinished(store, run_id)
        result = await super().resume(pipeline, run_id=run_id, store=store, observers=observers)
        return replace(result, output=str(result.output) + " ") if resumed else result


class PassesDicts(Executor):
    """Passes what the store gave back, whatever the parameter is annotated with."""

    breaks = "E05"

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        declared = {agent.name: agent.annotations for agent in pipeline.agents()}
        try:
            for agent in pipeline.agents():
                agent.__dict__["annotations"] = {}
            return await super().resume(pipeline, run_id=run_id, store=store, observers=observers)
        finally:
            for agent in pipeline.agents():
                agent.__dict__["annotations"] = declared[agent.name]


class AsksAnotherQuestion(Executor):
    """Tells the model that it is resuming."""

    breaks = "E05"

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        systems = {agent.name: agent.system for agent in pipeline.agents()}
        try:
            for agent in pipeline.agents():
                agent.system += " You are resuming."
            return await super().resume(pipeline, run_id=run_id, store=store, observers=observers)
        finally:
            for agent in pipeline.agents():
                agent.system = systems[agent.name]


class ForgetsTheCost(Executor):
    """Counts only the tokens of the last life."""

    breaks = "E05"

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        before = await store.load(run_id)  # type: ignore[attr-defined]
        result = await super().resume(pipeline, run_id=run_id, store=store, observers=observers)
        traces = [
            replace(trace, input_tokens=0, output_tokens=0) if trace.name in before.order else trace
            for trace in result.agent_traces
        ]
        return replace(result, agent_traces=traces, total_tokens=sum(t.input_tokens + t.output_tokens for t in traces))


class RunsAgain(Executor):
    """Runs a finished run from the start."""

    breaks = "E17"

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        if await was_unfinished(store, run_id):
            return await super().resume(pipeline, run_id=run_id, store=store, observers=observers)
        inputs = (await store.load_or_create(run_id, {})).inputs
        await store.delete(run_id)
        return await self.run(pipeline, run_id=run_id, store=store, observers=observers, inputs=inputs)


class CallsTwice(Executor):
    """Calls each node once more than it needs, after a resume, and counts one."""

    breaks = "E03 E05"

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        with calling_twice(pipeline):
            return await super().resume(pipeline, run_id=run_id, store=store, observers=observers)


class AlwaysCallsTwice(CallsTwice):
    """Calls each node once more than it needs in every life, and counts one."""

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: StateStore,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        with calling_twice(pipeline):
            return await Executor.run(self, pipeline, run_id=run_id, store=store, observers=observers, inputs=inputs)


class NeverCountsTokens(Executor):
    """Reports no tokens in any life."""

    breaks = "E05"

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
        return self._without_tokens(result)

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        return self._without_tokens(await super().resume(pipeline, run_id=run_id, store=store, observers=observers))

    def _without_tokens(self, result: RunResult) -> RunResult:
        traces = [replace(trace, input_tokens=0, output_tokens=0) for trace in result.agent_traces]
        return replace(result, total_tokens=0, agent_traces=traces)


@contextmanager
def calling_twice(pipeline: Pipeline) -> Iterator[None]:
    """Have each body called twice while inside."""
    bodies = {agent.name: agent.fn for agent in pipeline.agents()}
    try:
        for agent in pipeline.agents():
            agent.fn = twice(agent.fn)
        yield
    finally:
        for agent in pipeline.agents():
            agent.fn = bodies[agent.name]


def twice(body: Any) -> Any:
    async def called_twice(**arguments: Any) -> Any:
        for _ in range(2):
            output = body(**arguments)
            output = await output if inspect.isawaitable(output) else output
        return output

    return called_twice


class ReportsSuccessWithNothingRun(Executor):
    """Drops what it does not know after a resume, and says that all is well."""

    breaks = "E04 E05 E17"

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        if await was_unfinished(store, run_id):
            return RunResult(run_id, None)
        return await super().resume(pipeline, run_id=run_id, store=store, observers=observers)


class TakesTheOtherRoute(Executor):
    """Evaluates the branch again after a resume, by another input."""

    breaks = "E04 E05 E17"

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        routes = next(step.routes for step in pipeline.steps if isinstance(step, Branch))
        kept = dict(routes)
        try:
            routes.clear()
            return await super().resume(pipeline, run_id=run_id, store=store, observers=observers)
        finally:
            routes.update(kept)


class LosesItsTraces(Executor):
    """Traces only what the last life did."""

    breaks = "E05"

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        before = await store.load(run_id)  # type: ignore[attr-defined]
        result = await super().resume(pipeline, run_id=run_id, store=store, observers=observers)
        return replace(result, agent_traces=[t for t in result.agent_traces if t.name not in before.order])


class FailsToResume(Executor):
    """Cannot read its own record."""

    breaks = "E04"

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        if await was_unfinished(store, run_id):
            raise KeyError("worker-1")
        return await super().resume(pipeline, run_id=run_id, store=store, observers=observers)


class ForgetsTheResult(Executor):
    """Returns nothing for a finished run."""

    breaks = "E17"

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        unfinished = await was_unfinished(store, run_id)
        result = await super().resume(pipeline, run_id=run_id, store=store, observers=observers)
        return result if unfinished else replace(result, output=None)


class HangsOnResume(Executor):
    """Waits for ever for somebody who died with the first life."""

    breaks = "E04"

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        if await was_unfinished(store, run_id):
            await asyncio.Event().wait()
        return await super().resume(pipeline, run_id=run_id, store=store, observers=observers)


class SaysNothing(Executor):
    """Stops telling observers after the undisturbed runs, so that no crash point is ever passed."""

    breaks = "VACUOUS"

    def __init__(self) -> None:
        self.runs = 0

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: StateStore,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        self.runs += 1
        told = observers if self.runs <= 4 else ()
        return await super().run(pipeline, run_id=run_id, store=store, observers=told, inputs=inputs)


class OffersNoKey(Executor):
    """Calls its nodes without an idempotency key, so that a request cannot be told from a sibling's."""

    breaks = "VACUOUS"

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: StateStore,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        with patch("n00dles.attempts.node_call", lambda run_id, node: nullcontext()):
            return await super().run(pipeline, run_id=run_id, store=store, observers=observers, inputs=inputs)


reference = Executor()
offers_no_key = OffersNoKey()
forgets_the_last_node = ForgetsTheLastNode()
hangs_on_resume = HangsOnResume()
