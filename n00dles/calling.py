"""One call of one node: its function's body or its model, and the check of what comes back."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from .agent import Agent
from .errors import AgentInputError, AgentOutputError, AnswerError, ConfigurationError, SerializationError
from .serialization import JSONValue, adapter, check_declared, dumps, restore, to_stored
from .threads import call_in_thread

if TYPE_CHECKING:
    from .providers import LLMResponse

__all__ = [
    "BodyThreads",
    "Usage",
    "answer_from",
    "call",
    "check_output",
    "check_ready",
    "checked_arguments",
    "stored_output",
    "user_prompt",
]

_MAX_THREADS = 256


@dataclass(slots=True)
class Usage:
    """The tokens of one call; filled in even if the answer then turns out to be unusable, since it was paid."""

    input_tokens: int = 0
    output_tokens: int = 0

    def add(self, paid: LLMResponse | AnswerError) -> None:
        """Count what an answer has cost, also one that was cut off or refused."""
        self.input_tokens += paid.input_tokens
        self.output_tokens += paid.output_tokens


class BodyThreads:
    """The threads that sync bodies run in, made when the first one is needed. One set a life of a run."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    @property
    def executor(self) -> ThreadPoolExecutor:
        """The pool; never so small that a fan-out waits for it."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="n00dles-node")
        return self._executor

    def close(self) -> None:
        """End the threads; all bodies have returned by then."""
        if self._executor is not None:
            self._executor.shutdown()


def checked_arguments(agent: Agent, stored: Mapping[str, JSONValue]) -> dict[str, Any]:
    """Return a node's arguments in their declared types, made fresh from their stored form.

    A parameter that is annotated with a model gets the model, in every life. Raises `AgentInputError`.
    """
    arguments = {}
    for name, value in stored.items():
        try:
            arguments[name] = restore(value, agent.annotations.get(name, Any))
        except ValidationError as error:
            raise AgentInputError(agent.name, name, value, error) from error
    return arguments


async def call(
    agent: Agent,
    stored: Mapping[str, JSONValue],
    arguments: Mapping[str, Any],
    usage: Usage,
    threads: BodyThreads,
) -> JSONValue:
    """Call a node once and return its output in stored form, checked against the declared type.

    Raises whatever the body or the provider raises, `AgentOutputError`, or `SerializationError`.
    """
    if agent.model is not None:
        output = await _ask_model(agent, stored, usage)
    elif agent.is_async:
        output = await agent.fn(**arguments)
    else:
        output = await call_in_thread(threads.executor, partial(agent.fn, **arguments), keep_result=True)
        if inspect.isawaitable(output):
            output = await output
    return stored_output(agent, output)


def stored_output(agent: Agent, output: Any) -> JSONValue:
    """Return what a node has returned in stored form. Raises `AgentOutputError`, or `SerializationError`."""
    try:
        converted = to_stored(output)
    except SerializationError as error:
        raise SerializationError(error.path, error.why, node=agent.name) from None
    check_output(agent, converted, output)
    return converted


def check_output(agent: Agent, stored: JSONValue, output: Any) -> None:
    """Raise `AgentOutputError` if an output, in stored form, does not fit the type that `agent` declares."""
    try:
        restore(stored, agent.returns)
    except ValidationError as error:
        raise AgentOutputError(agent.name, repr(output), error) from error


async def _ask_model(agent: Agent, stored: Mapping[str, JSONValue], usage: Usage) -> Any:
    settings = {
        "model": agent.model,
        "temperature": agent.temperature,
        "max_tokens": agent.max_tokens,
        "schema": agent.schema,
    }
    options = {name: value for name, value in settings.items() if value is not None}
    system = agent.system or f"You are {agent.name}."
    try:
        response: LLMResponse = await agent.resolve_provider().complete(
            user_prompt(_with_defaults(agent, stored)), system, **options
        )
    except AnswerError as error:
        usage.add(error)
        raise
    usage.add(response)
    return answer_from(agent, response.content)


def answer_from(agent: Agent, content: str) -> Any:
    """Return what a model's text says, as the agent declares it. Raises `AgentOutputError`."""
    if agent.returns is str:
        return content
    declared = adapter(agent.returns)
    try:
        answer = declared.validate_json(_without_fence(content), by_alias=True, by_name=True)
    except ValidationError as error:
        raise AgentOutputError(agent.name, content, error) from error
    # A model can only answer in JSON, and its declared type brings a date or an enum back from that.
    return answer if isinstance(answer, BaseModel) else declared.dump_python(answer, mode="json")


def _with_defaults(agent: Agent, stored: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    """Return what a model is told: the arguments, and the defaults of the other parameters, save for None."""
    told: dict[str, JSONValue] = {}
    for name, parameter in agent.parameters.items():
        if name in stored:
            told[name] = stored[name]
        elif parameter.default is not None and parameter.default is not parameter.empty:
            told[name] = to_stored(parameter.default, f"the default of {name!r}")
    return told


def user_prompt(stored: Mapping[str, JSONValue]) -> str:
    """Return the user's message for a model: a single text as it is, anything else as JSON in a fixed form."""
    if len(stored) == 1:
        (value,) = stored.values()
        return value if isinstance(value, str) else dumps(value)
    return dumps(dict(stored))


def _without_fence(text: str) -> str:
    """Drop the Markdown fence that some models put around JSON."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```"):
        return stripped[3:-3].removeprefix("json").strip()
    return stripped


def check_ready(agent: Agent) -> None:
    """Raise `ConfigurationError` if an annotation cannot be checked, or an SDK or a key is missing, before any call."""
    for declared in (*agent.annotations.values(), agent.returns):
        try:
            check_declared(declared)
        except ConfigurationError as error:
            raise ConfigurationError(f"agent {agent.name!r}: {error} No node was called.") from error
    if agent.model is None:
        return
    check = getattr(agent.resolve_provider(), "check", None)
    if callable(check):
        try:
            check()
        except ConfigurationError as error:
            raise ConfigurationError(f"agent {agent.name!r} ({agent.model}): {error} No node was called.") from error
