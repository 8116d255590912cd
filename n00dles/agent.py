"""A node of a pipeline: a function whose body, or whose model, computes one output from its arguments."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Self, get_type_hints, overload

from .errors import ConfigurationError, PipelineBuildError
from .pipeline import Step, checked_name, checked_timeout
from .providers import Provider, provider_for
from .retry import RetryPolicy, retry_policy
from .serialization import adapter
from .type_names import type_name

__all__ = ["Agent", "agent"]


class Agent(Step):
    """What `@agent` makes of a function. See there for the settings.

    `name` is the node's name, `fn` the function, `parameters` its parameters by name, `annotations` their declared
    types (where there are any) and `returns` the declared type of its output, `Any` without one.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        model: str | None = None,
        prompt: str | None = None,
        timeout: float | None = None,
        retry: int | RetryPolicy | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        tags: Sequence[str] = (),
        fallback: Agent | None = None,
        provider: Provider | None = None,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        self.fn = fn
        self._is_async = (fn, inspect.iscoroutinefunction(fn))
        self.name = checked_name(getattr(fn, "__name__", type(fn).__name__))
        self.model = model
        self.timeout = checked_timeout(timeout, self.name)
        self.retry = retry_policy(retry)
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.tags = tuple(tags)
        self.fallback = fallback
        self.provider = provider
        self.parameters = _parameters(fn, self.name)
        self.system = prompt if prompt is not None else inspect.cleandoc(fn.__doc__ or "")
        self._names = names
        if model is None and (prompt or temperature is not None or max_tokens is not None or provider is not None):
            raise PipelineBuildError(
                f"agent {self.name!r} has settings of a model (prompt, temperature, max_tokens, provider) and no "
                "model=."
            )
        if fallback is not None and not isinstance(fallback, Agent):
            raise PipelineBuildError(f"the fallback of agent {self.name!r} is {fallback!r}, and must be an agent.")
        if fallback is not None:
            _check_takes_the_same(fallback, self)

    def __repr__(self) -> str:
        return f"<agent {self.name}{f' ({self.model})' if self.model else ''}>"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function's own body, outside any run: for unit tests of body agents."""
        if self.model is not None:
            raise TypeError(f"agent {self.name!r} has a model and no body to call; use run({self.name}, …).")
        return self.fn(*arguments, **named)

    def lineup(self) -> Iterator[Agent]:
        """Yield whoever may be called for this node: the agent, its fallback, the fallback's fallback."""
        candidate: Agent | None = self
        while candidate is not None:
            yield candidate
            candidate = candidate.fallback

    def named(self, name: str) -> Self:
        """Return the same agent under another node name, to use it twice in one pipeline."""
        renamed = copy.copy(self)
        renamed.name = checked_name(name)
        renamed.__dict__.pop("signature", None)
        return renamed

    @property
    def is_async(self) -> bool:
        """Whether the body is an `async def`."""
        fn, is_async = self._is_async
        if fn is not self.fn:  # a test has put another one in its place
            self._is_async = (self.fn, inspect.iscoroutinefunction(self.fn))
            return self._is_async[1]
        return is_async

    @cached_property
    def _hints(self) -> dict[str, Any]:
        try:
            return get_type_hints(_annotated(self.fn), localns=dict(self._names or {}), include_extras=True)
        except (NameError, TypeError, SyntaxError) as error:
            raise PipelineBuildError(
                f"an annotation of agent {self.name!r} cannot be resolved: {error}. Define or import the type at "
                "module level, before the pipeline."
            ) from error

    @cached_property
    def annotations(self) -> dict[str, Any]:
        """The declared types of the parameters that have one."""
        return {name: hint for name, hint in self._hints.items() if name in self.parameters}

    @cached_property
    def returns(self) -> Any:
        """The declared type of the output: `Any` if there is none, `str` for a model."""
        return self._hints.get("return", Any if self.model is None else str)

    @cached_property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that a model's answer must fit; None for plain text."""
        return None if self.returns is str else adapter(self.returns).json_schema()

    @cached_property
    def signature(self) -> str:
        """The node's name, parameters and declared types, in one line."""
        types = {name: declared for name, declared in self.annotations.items() if declared is not Any}
        parameters = [f"{name}: {type_name(types[name])}" if name in types else name for name in self.parameters]
        returns = "" if self.returns is Any else f" -> {type_name(self.returns)}"
        return f"{self.name}({', '.join(parameters)}){returns}"

    def resolve_provider(self) -> Provider:
        """Return the provider that calls this agent's model. Raises `ConfigurationError` if none is known for it."""
        if self.provider is not None:
            return self.provider
        if self.model is None:
            raise ConfigurationError(f"agent {self.name!r} has no model, so no provider is needed for it.")
        return provider_for(self.model)


@overload
def agent(model: Callable[..., Any]) -> Agent: ...


@overload
def agent(
    model: str | None = None,
    *,
    prompt: str | None = None,
    timeout: float | None = None,
    retry: int | RetryPolicy | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    tags: Sequence[str] = (),
    fallback: Agent | None = None,
    provider: Provider | None = None,
) -> Callable[[Callable[..., Any]], Agent]: ...


def agent(
    model: str | Callable[..., Any] | None = None, **settings: Any
) -> Agent | Callable[[Callable[..., Any]], Agent]:
    """Make a node of a function.

    With a `model`, the model computes the output: the docstring (or `prompt`) is the system prompt, the arguments are
    the user's message, and the return annotation is the contract of the output; anything but `str` is asked for as
    JSON and validated. Without a model, the function's own body is the node; a sync body runs in a thread.

    `timeout` is in seconds, for one attempt; `retry` a number of attempts or a `RetryPolicy`; both default to those
    of the pipeline. A sync body runs in a thread, which nothing can interrupt: it is waited out, however long after
    its `timeout` it returns. `fallback` is an agent that takes over, with the same arguments, when the last attempt has
    failed. `provider` overrides the one chosen by the model's name. `temperature` and `max_tokens` are sent only if
    set.

        @agent(model="gpt-4o-mini")
        def researcher(topic: str) -> str:
            \"\"\"Research the topic. Return 3 key facts.\"\"\"

        @agent
        async def publish(article: Article) -> dict: ...
    """
    caller = sys._getframe(1)
    # Types that are local to the function which defines the agent would otherwise not be found.
    names = dict(caller.f_locals) if caller.f_locals is not caller.f_globals else None
    if callable(model) and not isinstance(model, str):
        return Agent(model, names=names)
    return lambda fn: Agent(fn, model=model, names=names, **settings)


def _check_takes_the_same(fallback: Agent, agent: Agent) -> None:
    required = {name for name, each in fallback.parameters.items() if each.default is each.empty}
    if not required <= agent.parameters.keys() <= fallback.parameters.keys():
        raise PipelineBuildError(
            f"the fallback {fallback.name!r} is called with the arguments of {agent.name!r}, so it must have the same "
            f"parameters: {', '.join(agent.parameters) or 'none'}."
        )


def _annotated(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that carries the annotations of a callable."""
    fn = inspect.unwrap(fn)
    while isinstance(fn, partial):
        fn = inspect.unwrap(fn.func)
    return fn if inspect.isroutine(fn) or inspect.isclass(fn) else type(fn).__call__


def _parameters(fn: Callable[..., Any], name: str) -> dict[str, inspect.Parameter]:
    parameters = dict(inspect.signature(fn).parameters)
    for parameter in parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise PipelineBuildError(
                f"agent {name!r} has the parameter {str(parameter)!r}; arguments are passed by name, so name each one."
            )
    return parameters
