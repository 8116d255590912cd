"""Stand-ins for agents and pipelines in tests: no call of a model, no API key, no body that does something.

    from n00dles.testing import mock_agent, mock_pipeline

    def test_the_writer_gets_the_facts():
        with mock_agent(researcher, returns="three facts"), mock_agent(writer, returns={"title": "Facts"}):
            result = run(content_pipeline, topic="agentic search", store="memory://")
        assert result.output.title == "Facts"

    @mock_pipeline(content_pipeline, returns={"title": "Facts"})
    def test_the_endpoint_answers(client): ...

A mocked agent takes the place of its model or its body and of nothing else: arguments, retries, fallback, checks,
events and checkpoints are those of a real run, also in nested pipelines, fan-outs and branches. Both are context
managers and decorators, and the mock that they give counts its calls. For replies that differ from call to call, and
for what goes wrong between a client and its provider, use the fixture `mock_llm` of `n00dles_testing`.
"""

from __future__ import annotations

from typing import Any

from ..agent import Agent
from ..pipeline import Pipeline, Step
from .agents import AgentMock, is_mocked
from .mock import Mock, Raises
from .pipelines import PipelineMock, mocked_pipelines

__all__ = ["Mock", "mock_agent", "mock_pipeline", "mocked_in"]


def mock_agent(agent: Agent, *, returns: Any = None, raises: Raises = None) -> AgentMock:
    """Have this agent return `returns`, or raise `raises`, instead of calling its model or its body.

    `returns` is held against the agent's declared type as a real answer is, and at once: a dict will do for a Pydantic
    model, and what does not fit is an `AgentOutputError` (or a `SerializationError`) where the mock begins. A list is
    an output that is a list, not a series of answers. `raises` is raised by each attempt, and goes through the agent's
    retries and its fallback; the waits between attempts are slept, unless the fixture `no_sleep` is there. No tokens
    are counted.

    The agent is this one alone, wherever it stands: a copy by `named()` is an agent of its own. Only this process knows
    of the mock; what `crash_safety` kills does not, unless in `mode="in-process"`. Raises `TypeError` for anything but
    an agent.
    """
    if isinstance(agent, Pipeline):
        raise TypeError(f"{agent!r} is a pipeline; use mock_pipeline, or mock_agent for one of its agents.")
    if isinstance(agent, Step) and not isinstance(agent, Agent):
        raise TypeError(f"{agent.name} is a {type(agent).__name__.lower()} of steps; mock its agents one by one.")
    if not isinstance(agent, Agent):
        raise TypeError(f"{agent!r} is no agent; mock_agent takes what @agent has made of a function.")
    return AgentMock(agent, returns, raises)


def mock_pipeline(pipeline: Pipeline, *, returns: Any = None, raises: Raises = None) -> PipelineMock:
    """Have this pipeline give `returns`, or fail with `raises`, without calling any of its agents.

    For tests of what calls a pipeline: an endpoint, a job, another pipeline in which it is a step. Inputs are checked
    as ever. `returns` is held against the declared type of its last step: of a fan-out, a dict by member; of a branch,
    what one of its routes returns. `raises` is not tried again: `run` raises a `PipelineFailure` with it as the cause,
    after `on_error`. In the record of the run, one node that is named after the pipeline stands for all of its nodes,
    so it cannot be resumed once the mock has ended.

    Raises `TypeError` for anything but a pipeline.
    """
    if isinstance(pipeline, Agent):
        raise TypeError(f"{pipeline!r} is an agent; use mock_agent({pipeline.name}, …).")
    if not isinstance(pipeline, Pipeline):
        raise TypeError(f"{pipeline!r} is no pipeline; mock_pipeline takes a pipeline(…), mock_agent takes an agent.")
    return PipelineMock(pipeline, returns, raises)


def mocked_in(step: Step) -> list[str]:
    """Return the names of what is mocked now in `step`, nested pipelines and fallbacks included."""
    agents = [candidate for agent in step.agents() for candidate in agent.lineup()]
    return list(dict.fromkeys([*mocked_pipelines(step), *(agent.name for agent in agents if is_mocked(agent))]))
