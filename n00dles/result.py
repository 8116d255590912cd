"""What a run returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .context import PipelineContext

__all__ = ["AgentTrace", "RunResult"]


@dataclass(slots=True)
class AgentTrace:
    """What one node has cost, over all lives. `error` is the last failed attempt's, if there was one."""

    name: str
    status: str
    duration_ms: float
    input_tokens: int = 0
    output_tokens: int = 0
    attempts: int = 1
    error: str | None = None


@dataclass(slots=True)
class RunResult:
    """The result of a finished run; the same in every life, however often it was killed.

    `output` is of the last agent's declared type. `duration_ms` and `total_tokens` add up over all lives, as far as
    they were saved. `agent_traces` has one entry a node, in order of completion.
    """

    run_id: str
    output: Any
    duration_ms: float = 0.0
    total_tokens: int = 0
    agent_traces: list[AgentTrace] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)


def traces(context: PipelineContext) -> list[AgentTrace]:
    """Return one trace for each completed node."""
    records = ((node, context.record(node)) for node in context.order)
    return [
        AgentTrace(node, "ok", r.duration_ms, r.input_tokens, r.output_tokens, r.attempts, r.error)
        for node, r in records
    ]
