"""An executor as a campaign calls it: what it returns has to be a result, or that is a fault of the executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from n00dles.events import Observer
from n00dles.pipeline import Pipeline
from n00dles.result import RunResult
from n00dles.stores.base import StateStore

from ..crash.life import Executor

__all__ = ["Guarded"]

_READ = ("output", "total_tokens", "agent_traces")


class Guarded:
    """Calls another executor, and raises `TypeError` for what is no `RunResult`."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: StateStore,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        """Run with the other one."""
        return _checked(
            await self._inner.run(pipeline, run_id=run_id, store=store, observers=observers, inputs=inputs), "run"
        )

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        """Resume with the other one."""
        return _checked(await self._inner.resume(pipeline, run_id=run_id, store=store, observers=observers), "resume")


def _checked(result: Any, method: str) -> RunResult:
    missing = [name for name in _READ if not hasattr(result, name)]
    if missing:
        raise TypeError(
            f"{method} returned a {type(result).__name__}, and no RunResult: it has no {', '.join(missing)}"
        )
    checked: RunResult = result
    return checked
