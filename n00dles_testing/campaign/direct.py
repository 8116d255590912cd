"""Calling an executor without a crash: for what is not about a disturbed life (names, identity, outputs, rivals).

An executor is believed in nothing: what it calls is seen by the bodies and the models themselves.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn
from unittest.mock import patch

from n00dles import api
from n00dles.pipeline import Pipeline
from n00dles.providers import LLMResponse, Provider
from n00dles.stores.base import StateStore

from ..crash.instrument import Callee, Trigger, callees
from ..crash.ledger import MemoryLedger
from ..crash.life import Executor
from ..crash.recorded_store import Fence, SimulatedDeath, recorded_store
from ..crash.typed import encode

__all__ = ["LIMIT_SECONDS", "Body", "Ended", "ended", "failing_at", "is_typed", "killed", "watched"]

LIMIT_SECONDS = 10.0

Body = Callable[[str, Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""What stands in for the call of a node: it is told the node, and how to make the call."""


@dataclass(slots=True)
class Ended:
    """How a call of an executor ended: with an output (typed JSON), or with an error."""

    calls: list[str]
    output: Any = None
    error: BaseException | None = None
    waited: bool = field(default=False)

    @property
    def ok(self) -> bool:
        """Whether it returned a result."""
        return self.error is None

    @property
    def told(self) -> str:
        """How it ended, in words."""
        called = f"called {', '.join(self.calls)}" if self.calls else "called nothing"
        if self.error is None:
            return f"{called}; finished"
        return f"{called}; raised {type(self.error).__name__}: {self.error}"


async def ended(
    executor: Executor,
    pipeline: Pipeline,
    store: StateStore,
    run_id: str,
    *,
    inputs: Mapping[str, Any] | None = None,
    body: Body | None = None,
    calls: list[str] | None = None,
    limit: float = LIMIT_SECONDS,
) -> Ended:
    """Run `pipeline` with `inputs`, or resume it without, and say how that ended. `calls` is filled as it goes.

    After `limit` seconds it is ended as one that hangs.
    """
    seen: list[str] = [] if calls is None else calls
    result = Ended(seen)
    try:
        with watched(pipeline, seen, body):
            async with asyncio.timeout(limit):
                if inputs is None:
                    came = await executor.resume(pipeline, run_id=run_id, store=store, observers=())
                else:
                    came = await executor.run(pipeline, run_id=run_id, store=store, observers=(), inputs=inputs)
    except (Exception, asyncio.CancelledError, SystemExit) as error:
        result.error = error
    else:
        result.output = encode(came.output)
    return result


async def killed(
    executor: Executor, pipeline: Pipeline, store: StateStore, run_id: str, *, inputs: Mapping[str, Any], node: str
) -> Ended:
    """Run `pipeline`, and have the run die as it calls `node`: nothing of it reaches the store from then on.

    The result has a `SimulatedDeath` as its error if the run has died.
    """
    calls, fence = list[str](), Fence()
    result = Ended(calls)

    def die() -> NoReturn:
        fence.down = True
        raise SimulatedDeath

    async def body(name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        if name == node or fence.down:
            die()
        return await call()

    seen = recorded_store(store, Trigger(MemoryLedger([], 1), None, die), fence)
    try:
        # What its process had in hand is gone with it.
        with patch.object(api, "_held", {}), watched(pipeline, calls, body):
            async with asyncio.timeout(LIMIT_SECONDS):
                came = await executor.run(pipeline, run_id=run_id, store=seen, observers=(), inputs=inputs)
    except (Exception, asyncio.CancelledError, SystemExit, SimulatedDeath, BaseExceptionGroup) as error:
        result.error = SimulatedDeath(f"as {node} was called") if fence.down else error
    else:
        result.output = encode(came.output)
    return result


def failing_at(node: str) -> Body:
    """Return a body that fails every call of `node`."""

    async def body(name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        if name == node:
            raise RuntimeError(f"{node} is to fail now")
        return await call()

    return body


def is_typed(error: BaseException) -> bool:
    """Whether an error was made to be told apart: one of Python's own says nothing of a run."""
    return type(error).__module__ != "builtins"


@contextmanager
def watched(pipeline: Pipeline, calls: list[str], body: Body | None = None) -> Iterator[None]:
    """Note every call of a node in `calls`, and have `body` stand in for each, while inside."""
    with ExitStack() as stack:
        for callee in callees(pipeline):
            agent = callee.agent
            if agent.model is None:
                stack.enter_context(patch.object(agent, "fn", _watched_body(callee, agent.fn, calls, body)))
            else:
                stack.enter_context(
                    patch.object(agent, "provider", _Watched(callee, agent.resolve_provider(), calls, body))
                )
        yield


def _watched_body(callee: Callee, fn: Callable[..., Any], calls: list[str], body: Body | None) -> Callable[..., Any]:
    @functools.wraps(fn)
    async def watched_call(**arguments: Any) -> Any:
        async def call() -> Any:
            output = fn(**arguments)
            return await output if inspect.isawaitable(output) else output

        calls.append(callee.node)
        return await (call() if body is None else body(callee.node, call))

    return watched_call


class _Watched:
    """A provider whose calls are noted."""

    def __init__(self, callee: Callee, inner: Provider, calls: list[str], body: Body | None) -> None:
        self._callee, self._inner, self._calls, self._body = callee, inner, calls, body

    async def complete(self, prompt: str, system: str, **kwargs: Any) -> LLMResponse:
        """Note the call, and make it."""

        async def call() -> LLMResponse:
            return await self._inner.complete(prompt, system, **kwargs)

        self._calls.append(self._callee.node)
        answer: LLMResponse = await (call() if self._body is None else self._body(self._callee.node, call))
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
