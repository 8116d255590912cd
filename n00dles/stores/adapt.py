"""Taking a store as it comes: sync or async, with or without our base class, with its own idea of a context."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any

from ..context import PipelineContext
from ..errors import ConfigurationError, CorruptCheckpointError
from ..threads import call_in_thread
from .base import ById, StateStore

__all__ = ["as_context", "as_store"]

_METHODS = ("load_or_create", "save", "delete")
_CAPABILITIES = (
    "load",
    "list_runs",
    "prune",
    "server_time",
    "unmade",
    "aclose",
    "acquire",
    "renew",
    "release",
    "list_leases",
    "claim",
)
_FIELDS = ("run_id", "inputs", "completed", "order")


def as_store(candidate: Any) -> StateStore:
    """Return `candidate` as a `StateStore`: itself if it is one, else a wrapper around its three methods.

    Sync methods are called in a thread. Optional capabilities are passed on if the candidate has them; a `close` method
    serves as `aclose`. Raises `ConfigurationError` naming the methods that are missing.
    """
    if isinstance(candidate, StateStore):
        return candidate
    missing = [name for name in _METHODS if not callable(getattr(candidate, name, None))]
    if missing or isinstance(candidate, type):
        kind = candidate if isinstance(candidate, type) else type(candidate)
        what = f"the class {kind.__qualname__}, not an object of it" if isinstance(candidate, type) else repr(candidate)
        lacks = f"it has no method {', '.join(missing)}" if missing else "make one first"
        raise ConfigurationError(
            f"{what} is no state store: {lacks}. A store has {', '.join(_METHODS)}, sync or async."
        )
    return _AdaptedStore(candidate)


def as_context(found: Any, run_id: str) -> PipelineContext:
    """Return what a store gave as a `PipelineContext`: from a context, a mapping, or any object with the four fields.

    Raises `CorruptCheckpointError` if it is none of these.
    """
    if isinstance(found, PipelineContext):
        # It holds what the store gave, so the store has it.
        found.mark_saved(found.serial)
        return found
    if isinstance(found, Mapping):
        record = dict(found)
    else:
        names = (*_FIELDS, "revision", "incarnation", "signature")
        record = {name: getattr(found, name) for name in names if hasattr(found, name)}
    if not isinstance(record.get("revision"), int):
        # Somebody else's idea of a revision: theirs to check.
        record.pop("revision", None)
    missing = [name for name in _FIELDS if name not in record]
    if missing:
        raise CorruptCheckpointError(
            f"the store returned {found!r} for run {run_id!r}, which is no run record: it has no {', '.join(missing)}. "
            "Return a PipelineContext, or a mapping or an object with run_id, inputs, completed and order.",
            run_id=run_id,
        )
    return PipelineContext.from_dict(record)


class _AdaptedStore(StateStore):
    """A foreign store behind our interface."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        for name in _CAPABILITIES:
            method = getattr(inner, name, None) or (getattr(inner, "close", None) if name == "aclose" else None)
            if callable(method):
                setattr(self, name, partial(self._load if name == "load" else _call, method))

    def __repr__(self) -> str:
        return repr(self.inner)

    @property
    def place(self) -> Hashable:
        return ById(self.inner)

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        return as_context(await _call(self.inner.load_or_create, run_id, dict(inputs)), run_id)

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        await _call(self.inner.save, run_id, ctx)

    async def delete(self, run_id: str) -> None:
        await _call(self.inner.delete, run_id)

    async def _load(self, method: Callable[..., Any], run_id: str) -> PipelineContext | None:
        found = await _call(method, run_id)
        return None if found is None else as_context(found, run_id)


async def _call(method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    if inspect.iscoroutinefunction(method):
        return await method(*arguments, **options)
    result = await call_in_thread(None, partial(method, *arguments, **options))
    return await result if inspect.isawaitable(result) else result
