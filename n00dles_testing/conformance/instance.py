"""One open store, whatever its shape: sync or async methods, a context manager, an async one, or a plain object."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self

from n00dles.context import PipelineContext
from n00dles.stores.adapt import as_context, as_store
from n00dles.threads import call_in_thread

__all__ = ["Instance"]

Leave = Callable[[], Any]


class Instance:
    """An open store and the way to close it.

    Saves go the way that n00dles itself takes (`as_store`). Loads call the store's own method, so that the suite sees
    the very object that it gave out, not a copy that would hide what the store does.
    """

    def __init__(self, raw: Any, leave: Leave | None) -> None:
        """Take an open store. Raises `ConfigurationError` naming the methods that it lacks."""
        self.raw = raw
        self._store = as_store(raw)
        self._leave = leave

    @classmethod
    async def open(cls, made: Any) -> Self:
        """Open what a factory has made: awaited if it is awaitable, entered if it is a context manager."""
        if inspect.isawaitable(made):
            made = await made
        if hasattr(made, "__aenter__") and hasattr(made, "__aexit__"):
            return cls(await made.__aenter__(), lambda: made.__aexit__(None, None, None))
        if hasattr(made, "__enter__") and hasattr(made, "__exit__"):
            return cls(made.__enter__(), lambda: made.__exit__(None, None, None))
        return cls(made, getattr(made, "aclose", None) or getattr(made, "close", None))

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> Any:
        """Return what the store itself returns, untouched."""
        return await _call(self.raw.load_or_create, run_id, inputs)

    def context(self, reply: Any, run_id: str) -> PipelineContext:
        """Return the context that n00dles would work on, given this reply."""
        return as_context(reply, run_id)

    async def save(self, run_id: str, context: PipelineContext) -> None:
        """Save, as the executor does."""
        await self._store.save(run_id, context)

    async def delete(self, run_id: str) -> None:
        """Delete the run."""
        await self._store.delete(run_id)

    async def close(self) -> None:
        """Leave the context manager, or call `aclose` or `close` if there is one. The second call does nothing."""
        leave, self._leave = self._leave, None
        if leave is not None:
            await _call(leave)


async def _call(method: Callable[..., Any], *arguments: Any) -> Any:
    """Call a sync or an async method; a sync one in a thread, as n00dles does."""
    if inspect.iscoroutinefunction(method):
        return await method(*arguments)
    result = await call_in_thread(None, partial(method, *arguments))
    return await result if inspect.isawaitable(result) else result
