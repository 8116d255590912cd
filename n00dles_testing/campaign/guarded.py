"""An executor as a campaign calls it: what it returns has to be a result, or that is a fault of the executor."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from n00dles.events import Observer
from n00dles.pipeline import Pipeline
from n00dles.result import RunResult
from n00dles.stores.base import StateStore

from ..crash.life import Executor

__all__ = ["Guarded"]

_READ = ("output", "total_tokens", "agent_traces")


class Guarded:
    """Calls another executor, and raises `TypeError` for what is no `RunResult`.

    `not_awaited` says that a method gave nothing to await, and what became of it; empty if that never happened.
    """

    def __init__(self, inner: Executor) -> None:
        self._inner = inner
        self.not_awaited = ""

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
        begun = self._begun(
            "run", self._inner.run, pipeline, run_id=run_id, store=store, observers=observers, inputs=inputs
        )
        return _checked(await begun, "run")

    async def resume(
        self, pipeline: Pipeline, *, run_id: str, store: StateStore, observers: Sequence[Observer]
    ) -> RunResult:
        """Resume with the other one."""
        begun = self._begun("resume", self._inner.resume, pipeline, run_id=run_id, store=store, observers=observers)
        return _checked(await begun, "resume")

    def _begun(self, name: str, method: Callable[..., Any], pipeline: Pipeline, **given: Any) -> Awaitable[Any]:
        """Call a method. Raises `TypeError` if there is nothing to await."""
        try:
            begun = method(pipeline, **given)
        except Exception as error:
            if not inspect.iscoroutinefunction(method):
                self.not_awaited = f"{name} is no `async def`, and raised {type(error).__name__}: {error}"
            raise
        if not inspect.isawaitable(begun):
            self.not_awaited = f"{name} is no `async def`: it returned a {type(begun).__name__}, which nobody can await"
            raise TypeError(self.not_awaited)
        return begun


def _checked(result: Any, method: str) -> RunResult:
    missing = [name for name in _READ if not hasattr(result, name)]
    if missing:
        raise TypeError(
            f"{method} returned a {type(result).__name__}, and no RunResult: it has no {', '.join(missing)}"
        )
    checked: RunResult = result
    return checked
