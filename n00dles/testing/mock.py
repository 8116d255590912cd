"""What mocks of agents and of pipelines have in common: a block in which they are in force, and a count of calls."""

from __future__ import annotations

import functools
import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, TypeVar, cast

__all__ = ["Mock", "Raises"]

F = TypeVar("F", bound=Callable[..., Any])
Raises = Exception | type[Exception] | None


class Mock(ABC):
    """What `mock_agent` and `mock_pipeline` give: `with` it, or as a decorator, the mock is in force.

    It may be used several times, also within itself; of two mocks of one agent the inner one answers. `call_count` says
    how often it has been called. That it never was is no failure by itself (a branch may take another route, and a
    resumed run calls no node that is complete), so assert it where it matters.
    """

    def __init__(self, returns: Any, raises: Raises) -> None:
        if raises is not None and not _is_error(raises):
            raise TypeError(f"raises={raises!r} is no Exception, neither an instance nor a class.")
        if raises is not None and returns is not None:
            raise TypeError("a mock either returns or raises: give returns= or raises=, and not both.")
        self._returns = returns
        self._raises = raises
        self._lock = threading.Lock()
        self.call_count = 0

    def __enter__(self) -> Self:
        self._begin()
        return self

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def __call__(self, function: F) -> F:
        """Decorate a function: the mock is in force while it runs, also if it is async, a generator, or a method."""
        if inspect.isclass(function) or not callable(function):
            raise TypeError(f"a mock decorates a function; {function!r} is none. Decorate the methods of a class.")
        return cast(F, _decorated(self, function))

    @abstractmethod
    def _begin(self) -> None: ...

    def note_call(self) -> None:
        """Count a call, and raise what the mock is to raise."""
        with self._lock:
            self.call_count += 1
        if isinstance(self._raises, Exception):
            # A second `raise` would add its lines to the traceback of the first.
            raise self._raises.with_traceback(None)
        if self._raises is not None:
            raise self._raises


def _is_error(raises: object) -> bool:
    return isinstance(raises, Exception) or (isinstance(raises, type) and issubclass(raises, Exception))


def _decorated(entered: Mock, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the same kind that runs with the mock in force until its very end."""
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def async_generator(*arguments: Any, **named: Any) -> Any:
            with entered:
                async with aclosing(function(*arguments, **named)) as values:
                    async for value in values:
                        yield value

        return async_generator
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*arguments: Any, **named: Any) -> Any:
            with entered:
                return await function(*arguments, **named)

        return coroutine
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generator(*arguments: Any, **named: Any) -> Any:
            with entered:
                return (yield from function(*arguments, **named))

        return generator

    @functools.wraps(function)
    def plain(*arguments: Any, **named: Any) -> Any:
        with entered:
            return function(*arguments, **named)

    return plain
