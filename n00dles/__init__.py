"""A compact reference executor for LLM pipelines that survive a kill: it checkpoints after every node, always.

from n00dles import agent, pipeline, run

@agent(model="gpt-4o-mini")
def researcher(topic: str) -> str:
    '''Research the topic. Return 3 key facts.'''

result = run(pipeline(researcher), topic="agentic search")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .agent import Agent, agent
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
    ReadOnlyStoreError,
    RunLockedError,
    RunNotFoundError,
    SerializationError,
    StaleContextError,
    StateStoreError,
    StoreVersionError,
)
from .idempotency import idempotency_key
from .pipeline import Branch, Parallel, Pipeline, branch, parallel, pipeline
from .providers import Provider
from .retry import RetryPolicy

if TYPE_CHECKING:
    from .api import aresume, arun, resume, run
    from .config import configure
    from .context import PipelineContext
    from .events import Event, Observer
    from .providers import LLMResponse
    from .result import AgentTrace, RunResult
    from .stores import InMemoryStateStore, SQLiteStateStore, StateStore
    from .stores.postgres import PostgresStateStore
    from .stores.redis import RedisStateStore
    from .submitting import asubmit, submit

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
    "PostgresStateStore",
    "Provider",
    "ReadOnlyStoreError",
    "RedisStateStore",
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
    "asubmit",
    "branch",
    "configure",
    "idempotency_key",
    "parallel",
    "pipeline",
    "resume",
    "run",
    "submit",
]

# A module that only defines pipelines does not pay for the event loop and the database: these come with their first use
# (PEP 562).
_HOMES = {
    "AgentTrace": "result",
    "Event": "events",
    "InMemoryStateStore": "stores",
    "LLMResponse": "providers",
    "Observer": "events",
    "PipelineContext": "context",
    "PostgresStateStore": "stores.postgres",
    "RedisStateStore": "stores.redis",
    "RunResult": "result",
    "SQLiteStateStore": "stores",
    "StateStore": "stores",
    "aresume": "api",
    "arun": "api",
    "asubmit": "submitting",
    "configure": "config",
    "resume": "api",
    "run": "api",
    "submit": "submitting",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
