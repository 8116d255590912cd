"""Mocks of agents: what stands in the place of a model or of a body."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from ..agent import Agent
from ..calling import answer_from, stored_output
from ..errors import AgentOutputError, SerializationError
from ..providers import LLMResponse, Provider, provider_for
from ..serialization import dumps, loads, restore, to_stored
from .mock import Mock, Raises

__all__ = ["AgentMock", "is_mocked"]


class AgentMock(Mock):
    """A mock of one agent."""

    def __init__(self, agent: Agent, returns: Any, raises: Raises) -> None:
        super().__init__(returns, raises)
        self._agent = agent
        self._output: Any = None

    def _begin(self) -> None:
        if self._raises is None:
            self._output = _prepared(self._agent, self._returns)
        _stand_in_for(self._agent).mocks.append(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _stand_in_for(self._agent).remove(self)

    def answer(self) -> Any:
        """Return the text of the model, or a fresh value from the body; or raise."""
        self.note_call()
        return self._output if self._agent.model is not None else _fresh(self._agent, self._output)


def is_mocked(agent: Agent) -> bool:
    """Whether a mock of this agent is in force."""
    return agent in _stand_ins


def _prepared(agent: Agent, returns: Any) -> Any:
    """Return what the stand-in gives: a model's text, or a body's output in stored form. Raises as a real call does."""
    try:
        if agent.model is None:
            stored = stored_output(agent, returns)
            try:
                # As if the body had returned the model: with its defaults, and by field names.
                return stored_output(agent, restore(stored, agent.returns))
            except SerializationError:  # a date, which a body has to return as text
                return stored
        text = _as_text(agent, returns)
        stored_output(agent, answer_from(agent, text))
    except (AgentOutputError, SerializationError) as error:
        if returns is None:
            error.add_note(f"the mock of {agent.name!r} was given neither returns= nor raises=, so it returns None")
        raise
    return text


def _as_text(agent: Agent, returns: Any) -> str:
    """Return what a model would have written."""
    if agent.returns is str:
        if isinstance(returns, str):
            return returns
        raise AgentOutputError(agent.name, repr(returns), TypeError("it is no text, and a model writes text"))
    try:
        return to_json(returns, round_trip=True).decode()
    except (PydanticSerializationError, ValueError) as error:
        raise AgentOutputError(agent.name, repr(returns), error) from error


def _fresh(agent: Agent, stored: Any) -> Any:
    """Return a body's output: in the declared type if that can be stored, else plain JSON."""
    typed = restore(stored, agent.returns)
    try:
        to_stored(typed)
    except SerializationError:
        return loads(dumps(stored))
    return typed


class _StandIn:
    """Stands in the place of an agent's model or body while a mock of it is in force; the last one answers.

    A copy of the agent that was made meanwhile keeps it. It then calls what it has taken the place of.
    """

    def __init__(self, agent: Agent) -> None:
        self.mocks: list[AgentMock] = []
        self._agent = agent
        self._provider, self._fn = agent.provider, agent.fn
        if agent.model is not None:
            agent.provider = self
        else:
            agent.fn = _body(self, agent.fn)

    def remove(self, answer: AgentMock) -> None:
        self.mocks.reverse()
        self.mocks.remove(answer)  # the innermost, should it be in force twice
        self.mocks.reverse()
        if not self.mocks:
            self._agent.provider, self._agent.fn = self._provider, self._fn
            del _stand_ins[self._agent]

    def check(self) -> None:
        if not self.mocks:
            check = getattr(self._real("" if self._agent.model is None else self._agent.model), "check", None)
            if callable(check):
                check()

    async def complete(self, prompt: str, system: str, **kwargs: Any) -> LLMResponse:
        model = str(kwargs.get("model", ""))
        if not self.mocks:
            return await self._real(model).complete(prompt, system, **kwargs)
        return LLMResponse(content=self.mocks[-1].answer(), model=model, provider="mock")

    def _real(self, model: str) -> Provider:
        return provider_for(model) if self._provider is None else self._provider


def _body(stand_in: _StandIn, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that looks like `real`, annotations and all, and is sync or async as that is."""
    signature = inspect.signature(real)

    def answer(arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        signature.bind(*arguments, **named)
        return stand_in.mocks[-1].answer()

    if inspect.iscoroutinefunction(real):

        @functools.wraps(real)
        async def async_body(*arguments: Any, **named: Any) -> Any:
            return answer(arguments, named) if stand_in.mocks else await real(*arguments, **named)

        return async_body

    @functools.wraps(real)
    def body(*arguments: Any, **named: Any) -> Any:
        return answer(arguments, named) if stand_in.mocks else real(*arguments, **named)

    return body


_stand_ins: dict[Agent, _StandIn] = {}


def _stand_in_for(agent: Agent) -> _StandIn:
    if agent not in _stand_ins:
        _stand_ins[agent] = _StandIn(agent)
    return _stand_ins[agent]
