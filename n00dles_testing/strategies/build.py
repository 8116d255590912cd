"""From a spec to the real pipeline: pure, the same in every process, and valid by construction."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import operator
from collections.abc import Callable
from typing import Any

from n00dles.agent import Agent, agent
from n00dles.pipeline import Pipeline, Step, branch, parallel, pipeline
from n00dles.retry import RetryPolicy

from .attempts import Attempts, AttemptsInMemory
from .behaviour import MODEL, GeneratedProvider, perform
from .model_classes import annotation
from .spec import BranchSpec, FanOutSpec, NestedSpec, NodeSpec, ParameterSpec, PipelineSpec, StepSpec

__all__ = ["build", "build_for_other_processes"]


def build(spec: PipelineSpec, attempts: Attempts | None = None) -> Pipeline:
    """Return the pipeline that `spec` describes.

    Nodes that fail their first attempts have them counted by `counted_by`, by the file that the environment names, or
    by `attempts`, which without a value lives as long as the pipeline: build again for another run.

        spec = PipelineSpec((NodeSpec("a", output="str"),))
        run(build(spec), store=InMemoryStateStore(), **spec.input_values())
    """
    return _Builder(attempts or AttemptsInMemory()).whole(spec)


def build_for_other_processes(spec: PipelineSpec) -> Pipeline:
    """Like `build`, with no count in memory: a failing node whose attempts nobody counts says so."""
    return _Builder(None).whole(spec)


class _Builder:
    def __init__(self, attempts: Attempts | None) -> None:
        self._attempts = attempts

    def whole(self, spec: PipelineSpec) -> Pipeline:
        return pipeline(self._chain(spec.steps), name=spec.name, retry=_policy(spec.retry))

    def _chain(self, steps: tuple[StepSpec, ...]) -> Step:
        return functools.reduce(operator.rshift, map(self._step, steps))

    def _step(self, spec: StepSpec) -> Step:
        if isinstance(spec, NodeSpec):
            return self._node(spec)
        if isinstance(spec, FanOutSpec):
            return parallel(*map(self._step, spec.members), max_concurrency=spec.max_concurrency)
        if isinstance(spec, NestedSpec):
            return pipeline(self._chain(spec.steps), name=spec.name, retry=_policy(spec.retry))
        assert isinstance(spec, BranchSpec)
        routes: dict[str, Step] = {}
        for route in spec.routes:
            routes |= dict.fromkeys(route.keys, self._step(route.step))
        return branch(default=None if spec.default is None else self._step(spec.default), **routes)

    def _node(self, spec: NodeSpec, of: NodeSpec | None = None) -> Agent:
        of = of or spec
        fallback = None if spec.fallback is None else self._node(spec.fallback, of)
        body = _dressed(self._sync_body(spec, of) if spec.is_sync else self._async_body(spec, of), spec, of)
        retry = _policy(spec.retry)
        if spec.is_model:
            provider = GeneratedProvider(spec, of, self._attempts)
            return agent(MODEL, provider=provider, retry=retry, fallback=fallback)(body)
        return agent(retry=retry, fallback=fallback)(body)

    def _sync_body(self, spec: NodeSpec, of: NodeSpec) -> Callable[..., Any]:
        signature, attempts = _signature(spec), self._attempts

        def body(**arguments: Any) -> Any:
            bound = signature.bind(**arguments)
            bound.apply_defaults()
            return perform(spec, of, bound.arguments, attempts)

        return body

    def _async_body(self, spec: NodeSpec, of: NodeSpec) -> Callable[..., Any]:
        signature, attempts = _signature(spec), self._attempts

        async def body(**arguments: Any) -> Any:
            bound = signature.bind(**arguments)
            bound.apply_defaults()
            for _ in range(spec.pauses):
                await asyncio.sleep(0)
            return perform(spec, of, bound.arguments, attempts)

        return body


def _dressed(body: Any, spec: NodeSpec, of: NodeSpec) -> Callable[..., Any]:
    """Give a body the name, the signature and the annotations that its spec says."""
    signature = _signature(spec)
    hints = {each.name: annotation(each.type) for each in spec.parameters if each.type is not None}
    if _declares(spec):
        hints["return"] = annotation(spec.output)
    body.__name__ = body.__qualname__ = spec.name
    body.__doc__ = f"Answer as {of.name}."
    body.__signature__ = signature
    body.__annotations__ = hints
    return body  # type: ignore[no-any-return]


def _declares(spec: NodeSpec) -> bool:
    return spec.is_annotated or (spec.is_model and spec.output != "str")


def _signature(spec: NodeSpec) -> inspect.Signature:
    return inspect.Signature([_parameter(each) for each in spec.parameters])


def _parameter(spec: ParameterSpec) -> inspect.Parameter:
    default = inspect.Parameter.empty if spec.default is None else json.loads(spec.default)
    return inspect.Parameter(spec.name, inspect.Parameter.KEYWORD_ONLY, default=default)


def _policy(attempts: int | None) -> RetryPolicy | None:
    return None if attempts is None else RetryPolicy(max_attempts=attempts, base_delay=0.0, jitter=False)
