"""Factories of stores: whether one takes a location, and opening what it makes. The same for every command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from n00dles.errors import ConfigurationError
from n00dles.threads import call_in_thread

__all__ = ["Leave", "call_either", "open_made", "takes_location"]

Leave = Callable[[], Any]

_LOCATION_NAMES = ("location", "path", "folder", "directory", "root", "url", "dsn", "uri")


def takes_location(text: str, factory: Callable[..., Any]) -> bool:
    """Whether to hand the factory a folder: it requires one argument, or has an optional one named like a location.

    Raises `ConfigurationError` if it requires more than one. `text` is what the user calls it.
    """
    try:
        parameters = list(inspect.signature(factory).parameters.values())
    except (TypeError, ValueError):
        return True
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    required = [p for p in positional if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if len(required) > 1 or keywords:
        names = ", ".join(p.name for p in [*required, *keywords])
        raise ConfigurationError(
            f"{text} requires {len(required) + len(keywords)} arguments ({names}); a factory takes one, the location "
            "(a fresh folder as a string), or none. Wrap it in a function of one argument."
        )
    return bool(required) or any(p.name in _LOCATION_NAMES or p.kind is p.VAR_POSITIONAL for p in positional[:1])


async def open_made(made: Any) -> tuple[Any, Leave | None]:
    """Open what a factory has made: awaited if it is awaitable, entered if it is a context manager.

    Returns the store, and what closes it again (to be called with `call_either`), None if nothing does.
    """
    if inspect.isawaitable(made):
        made = await made
    if hasattr(made, "__aenter__") and hasattr(made, "__aexit__"):
        return await made.__aenter__(), partial(made.__aexit__, None, None, None)
    if hasattr(made, "__enter__") and hasattr(made, "__exit__"):
        return made.__enter__(), partial(made.__exit__, None, None, None)
    return made, getattr(made, "aclose", None) or getattr(made, "close", None)


async def call_either(method: Callable[..., Any], *arguments: Any) -> Any:
    """Call a sync or an async method; a sync one in a thread, as n00dles does."""
    if inspect.iscoroutinefunction(method):
        return await method(*arguments)
    result = await call_in_thread(None, partial(method, *arguments))
    return await result if inspect.isawaitable(result) else result
