"""Seeing each call of a function, whoever holds a reference to it: another code in the function that there is.

A loop may call its functions by name, from a list made at import, through a closure or a class. All of these lead to
the same function object, so it is that which is changed, and changed back.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

__all__ = ["copy_of", "instead", "intercepted"]

_KEY = "KEY"
_handlers: dict[str, Callable[..., Any]] = {}


def instead(key: str) -> Callable[..., Any]:
    """Return what is to be called instead of an intercepted function; it asks for that at each of its calls."""
    return _handlers[key]


def copy_of(function: FunctionType) -> FunctionType:
    """Return a function of the same code, defaults and closure, which stays as it is."""
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__, copy.__module__, copy.__doc__ = function.__qualname__, function.__module__, function.__doc__
    copy.__dict__.update(function.__dict__)
    return copy


@contextmanager
def intercepted(handlers: Mapping[FunctionType, Callable[..., Any]]) -> Iterator[None]:
    """Have each call of these functions go to its handler while inside, with the same arguments.

    A coroutine function needs a handler that returns an awaitable. Names and signatures are seen as they were.
    """
    changed: list[tuple[FunctionType, CodeType, dict[str, Any]]] = []
    try:
        for function, handler in handlers.items():
            key = f"{function.__module__}.{function.__qualname__}:{id(function)}"
            _handlers[key] = handler
            changed.append((function, function.__code__, dict(function.__dict__)))
            function.__dict__.setdefault("__signature__", inspect.signature(function))
            function.__code__ = _leading_to(key, function)
        yield
    finally:
        for function, code, attributes in changed:
            function.__code__ = code
            if "__signature__" not in attributes:
                function.__dict__.pop("__signature__", None)


def _leading_to(key: str, function: FunctionType) -> CodeType:
    """Return code that can take the place of that of `function`, and calls the handler."""
    code = (_async_form if inspect.iscoroutinefunction(function) else _form).__code__
    return code.replace(
        co_consts=tuple(key if constant == _KEY else constant for constant in code.co_consts),
        co_freevars=function.__code__.co_freevars,
        co_name=function.__code__.co_name,
    )


# The code has to find its way from any function, whose globals and closure are not ours: hence the import.


def _form(*arguments: Any, **named: Any) -> Any:
    from n00dles_testing.plain.interception import instead

    return instead("KEY")(*arguments, **named)


async def _async_form(*arguments: Any, **named: Any) -> Any:
    from n00dles_testing.plain.interception import instead

    return await instead("KEY")(*arguments, **named)
