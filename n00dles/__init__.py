"""A compact reference executor for LLM pipelines that survive a kill: it checkpoints after every node, always.

from n00dles import agent, pipeline, run

@agent(model="gpt-4o-mini")
def researcher(topic: str) -> str:
    '''Research the topic. Return 3 key facts.'''

result = run(pipeline(researcher), topic="agentic search")
"""

from __future__ import annotations

from .agent import Agent, agent
from .api import aresume, arun, resume, run
from .config import configure
from .context import PipelineContext
from .errors import (
    AgentInputError,
    AgentOutputError,
    AnswerError,
    BranchError,
    ConfigurationError,
    CorruptCheckpointError,
    InputsChangedError,
    InputsError,
    N00dlesError,
    PipelineBuildError,
    PipelineChangedError,
    PipelineFailure,
    RunLockedError,
    RunNotFoundError,
    SerializationError,
    StaleContextError,
    StateStoreError,
    StoreVersionError,
)
from .events import Event, Observer
from .idempotency import idempotency_key
from .pipeline import Branch, Parallel, Pipeline, branch, parallel, pipeline
from .providers import LLMResponse, Provider
from .result import AgentTrace, RunResult
from .retry import RetryPolicy
from .stores import InMemoryStateStore, SQLiteStateStore, StateStore

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "AgentInputError",
    "AgentOutputError",
    "AgentTrace",
    "AnswerError",
    "Branch",
    "BranchError",
    "ConfigurationError",
    "CorruptCheckpointError",
    "Event",
    "InMemoryStateStore",
    "InputsChangedError",
    "InputsError",
    "LLMResponse",
    "N00dlesError",
    "Observer",
    "Parallel",
    "Pipeline",
    "PipelineBuildError",
    "PipelineChangedError",
    "PipelineContext",
    "PipelineFailure",
    "Provider",
    "RetryPolicy",
    "RunLockedError",
    "RunNotFoundError",
    "RunResult",
    "SQLiteStateStore",
    "SerializationError",
    "StaleContextError",
    "StateStore",
    "StateStoreError",
    "StoreVersionError",
    "agent",
    "aresume",
    "arun",
    "branch",
    "configure",
    "idempotency_key",
    "parallel",
    "pipeline",
    "resume",
    "run",
]
