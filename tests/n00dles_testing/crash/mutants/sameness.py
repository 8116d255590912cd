"""E04, E05: what differs in a resumed run, in what it returns, asks, passes on, or says that it has cost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from n00dles import RunResult
from n00dles.pipeline import Pipeline
from tests.n00dles_testing.crash.mutants.base import RESUMES, Executor, Life


class ReturnsText(Executor):
    """Returns the text of the output when it had to resume: `str(value)` somewhere on the way."""

    breaks = "E04"
    also = RESUMES

    async def live(self, life: Life) -> RunResult:
        is_resume = life.inputs is None and await life.is_unfinished()
        result = await super().live(life)
        return replace(result, output=str(result.output) + " ") if is_resume else result


class FailsToResume(Executor):
    """Cannot read its own record."""

    breaks = "E04"
    also = RESUMES

    async def live(self, life: Life) -> RunResult:
        if life.inputs is None and await life.is_unfinished():
            raise KeyError("worker-1")
        return await super().live(life)


class HangsOnResume(Executor):
    """Waits for ever for somebody who died with the first life."""

    breaks = "E04"

    async def live(self, life: Life) -> RunResult:
        if life.inputs is None and await life.is_unfinished():
            await asyncio.Event().wait()
        return await super().live(life)


class ReportsSuccessWithNothingRun(Executor):
    """Drops what it does not know after a resume, and says that all is well."""

    breaks = "E04 E05 E17"

    async def live(self, life: Life) -> RunResult:
        if life.inputs is None and await life.is_unfinished():
            return RunResult(life.run_id, None)
        return await super().live(life)


class PassesDicts(Executor):
    """Passes what the store gave back, whatever the parameter is annotated with."""

    breaks = "E05"
    also = RESUMES

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        if life.inputs is not None:
            return nullcontext()
        return patch("n00dles.attempts.checked_arguments", lambda agent, stored: dict(stored))


class AsksAnotherQuestion(Executor):
    """Tells the model that it is resuming."""

    breaks = "E05"

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return telling_that_it_resumes(life.pipeline) if life.inputs is None else nullcontext()


class ForgetsTheCost(Executor):
    """Counts only the tokens of the last life."""

    breaks = "E05"

    async def live(self, life: Life) -> RunResult:
        before = (await life.record() if life.inputs is None else None) or None
        result = await super().live(life)
        traces = [
            replace(trace, input_tokens=0, output_tokens=0) if before and trace.name in before.order else trace
            for trace in result.agent_traces
        ]
        return replace(result, agent_traces=traces, total_tokens=sum(t.input_tokens + t.output_tokens for t in traces))


class NeverCountsTokens(Executor):
    """Reports no tokens in any life."""

    breaks = "E05"

    async def live(self, life: Life) -> RunResult:
        result = await super().live(life)
        traces = [replace(trace, input_tokens=0, output_tokens=0) for trace in result.agent_traces]
        return replace(result, total_tokens=0, agent_traces=traces)


class LosesItsTraces(Executor):
    """Traces only what the last life did."""

    breaks = "E05"

    async def live(self, life: Life) -> RunResult:
        before = await life.record() if life.inputs is None else None
        result = await super().live(life)
        return replace(
            result, agent_traces=[t for t in result.agent_traces if not before or t.name not in before.order]
        )


@contextmanager
def telling_that_it_resumes(pipeline: Pipeline) -> Iterator[None]:
    """Have each system prompt say that this is a resume while inside."""
    systems = {agent.name: agent.system for agent in pipeline.agents()}
    try:
        for agent in pipeline.agents():
            agent.system += " You are resuming."
        yield
    finally:
        for agent in pipeline.agents():
            agent.system = systems[agent.name]
