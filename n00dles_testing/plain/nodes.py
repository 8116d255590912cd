"""The functions of a home-made loop as nodes: their names, what each needs, and how each is called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

from n00dles.agent import Agent
from n00dles.errors import ConfigurationError

from .interception import copy_of

__all__ = ["Item", "PlainNode", "all_needs", "each", "pick", "plain_nodes"]

_owner: ContextVar[Any] = ContextVar("n00dles_testing_owner_of_a_method")
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Item:
    """The call of `function` in which `parameter` has a value of this text. `each` makes them."""

    function: Callable[..., Any]
    parameter: str
    text: str


def each(function: Callable[..., Any], parameter: str, values: Iterable[Any]) -> list[Item]:
    """Return a node for each call of one function: those calls are told apart by the value of one parameter.

        nodes=[outline, *each(write, "chapter", ["intro", "end"]), publish]

    Their names are `write-intro` and `write-end`, also in `needs=` and for `stored=`. Values are compared as texts.
    """
    return [Item(function, parameter, str(value)) for value in values]


class PlainNode:
    """One function, or one call of it. `agent` stands for it in a pipeline: `agent.fn` is the function itself.

    A method is called without its `self`, which is not what a loop hands over.
    """

    def __init__(self, listed: Callable[..., Any] | Item) -> None:
        self.item = listed if isinstance(listed, Item) else None
        given = listed.function if isinstance(listed, Item) else listed
        self.function = _function(given)
        self.name: str = self.function.__name__
        if self.item is not None:
            self.name += f"-{plain_name(self.item.text)}"
        self.is_async = inspect.iscoroutinefunction(self.function)
        self._signature = inspect.signature(self.function)
        first = next(iter(self._signature.parameters), "")
        self._is_method = isinstance(given, MethodType) or first in ("self", "cls")
        own = copy_of(self.function)
        if self.item is not None and self.item.parameter not in self._signature.parameters:
            raise ConfigurationError(
                f"`{self.function.__name__}` has no parameter {self.item.parameter!r} for each(…)."
            )
        self.agent = Agent(_no_body).named(self.name)
        self.agent.fn = _without_owner(own, is_async=self.is_async) if self._is_method else own

    def is_called_by(self, args: Sequence[Any], named: Mapping[str, Any]) -> bool:
        """Whether a call of the function with these arguments is this one."""
        if self.item is None:
            return True
        try:
            bound = self._signature.bind(*args, **named)
        except TypeError:
            return False
        bound.apply_defaults()
        return str(bound.arguments.get(self.item.parameter)) == self.item.text

    def call(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Callable[[], Any], dict[str, Any]]:
        """Return the call to be made, and its arguments by name, as far as they have names."""
        owner, rest = (args[:1], args[1:]) if self._is_method else ((), args)
        try:
            bound = self._signature.bind(*args, **named)
        except TypeError:  # the call itself is going to say so
            return functools.partial(self._call, owner, rest, named), dict(named)
        parameters = list(self._signature.parameters.values())[len(owner) :]
        arguments = {p.name: bound.arguments[p.name] for p in parameters if p.name in bound.arguments}
        if all(parameter.kind in _BY_NAME for parameter in parameters):
            return functools.partial(self._call, owner, (), arguments), arguments
        return functools.partial(self._call, owner, rest, named), arguments

    def _call(self, owner: Sequence[Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        if owner:
            _owner.set(owner[0])
        return self.agent.fn(*args, **named)


def plain_nodes(functions: Iterable[Callable[..., Any] | Item]) -> dict[str, PlainNode]:
    """Return the nodes by name, in order. Raises `ConfigurationError` for what cannot be one."""
    nodes: dict[str, PlainNode] = {}
    for given in functions:
        node = PlainNode(given)
        if node.name in nodes:
            raise ConfigurationError(f"two functions are named {node.name!r}; a report could not tell them apart.")
        if any(node.function is other.function and not (node.item and other.item) for other in nodes.values()):
            raise ConfigurationError(f"{node.function.__name__!r} is listed both by itself and by each(…); choose one.")
        nodes[node.name] = node
    if not nodes:
        raise ConfigurationError("nodes= is empty; list the functions that the loop calls, in their order.")
    return nodes


def pick(nodes: Sequence[PlainNode], args: Sequence[Any], named: Mapping[str, Any]) -> PlainNode:
    """Return the node that a call of their function is. Raises `ConfigurationError` for one that nobody has listed."""
    found = next((node for node in nodes if node.is_called_by(args, named)), None)
    if found is None:
        listed = ", ".join(node.item.text for node in nodes if node.item)
        parameter = nodes[0].item.parameter if nodes[0].item else ""
        raise ConfigurationError(
            f"`{nodes[0].function.__name__}` was called with a {parameter} that each(…) does not list ({listed})."
        )
    return found


def plain_name(text: str) -> str:
    """Return a text with nothing in it that cannot be in a node's name."""
    return "".join(letter if letter.isalnum() or letter in "_.-" else "-" for letter in text)


def all_needs(names: Sequence[str], needs: Mapping[str, Sequence[str]] | None) -> dict[str, list[str]]:
    """Return, for each function, all that have to be stored before it starts: by default all that are listed before it.

    Raises `ConfigurationError` for a name that is of none, and for a circle.
    """
    given = dict(needs or {})
    if strange := [name for name in (*given, *(n for each in given.values() for n in each)) if name not in names]:
        raise ConfigurationError(f"needs= names {strange[0]!r}, which is none of the functions ({', '.join(names)}).")
    direct = {name: list(given.get(name, names[:place])) for place, name in enumerate(names)}
    found: dict[str, list[str]] = {}
    for name in names:
        reached: list[str] = []
        waiting = list(direct[name])
        while waiting:
            needed = waiting.pop()
            if needed == name:
                raise ConfigurationError(f"needs= goes in a circle: {name!r} needs itself in the end.")
            if needed not in reached:
                reached.append(needed)
                waiting += direct[needed]
        found[name] = [each for each in names if each in reached]
    return found


def _function(given: Callable[..., Any]) -> FunctionType:
    function = given.__func__ if isinstance(given, MethodType) else given
    if not isinstance(function, FunctionType):
        raise ConfigurationError(
            f"{given!r} is no Python function, so its calls cannot be seen. Wrap it in one: "
            "def research(topic): return search(topic)."
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(
            f"{function.__name__!r} is a generator, which returns before it has done its work. List a function that "
            "returns its output."
        )
    return function


def _without_owner(method: FunctionType, *, is_async: bool) -> Callable[..., Any]:
    if is_async:

        @functools.wraps(method)
        async def call_async(*args: Any, **named: Any) -> Any:
            return await method(_owner.get(), *args, **named)

        return call_async

    @functools.wraps(method)
    def call(*args: Any, **named: Any) -> Any:
        return method(_owner.get(), *args, **named)

    return call


def _no_body() -> None:
    """Stand for a function until it is put in its place."""
