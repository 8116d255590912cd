"""One open store, whatever its shape: sync or async methods, a context manager, an async one, or a plain object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from n00dles.context import PipelineContext
from n00dles.stores.adapt import as_context, as_store

from ..factories import Leave, call_either, open_made

__all__ = ["Instance"]


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
        """Open what a factory has made, see `open_made`."""
        return cls(*await open_made(made))

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> Any:
        """Return what the store itself returns, untouched."""
        return await call_either(self.raw.load_or_create, run_id, inputs)

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
            await call_either(leave)
