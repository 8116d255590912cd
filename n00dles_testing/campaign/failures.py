"""Which attempts of a generated pipeline are planned to fail, and what it is without them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from ..strategies import BranchSpec, FanOutSpec, NodeSpec, PipelineSpec, predict
from ..strategies.spec import StepSpec

__all__ = ["can_fail", "healed", "heals"]


def healed(spec: PipelineSpec) -> PipelineSpec:
    """Return `spec` as it would be if no node ever failed. What nodes get and return is the same."""
    return replace(spec, steps=tuple(map(_healed_step, spec.steps)))


def can_fail(spec: PipelineSpec) -> bool:
    """Whether any attempt of any node is planned to fail."""
    return any(node.fails for node in spec.nodes())


@lru_cache(maxsize=256)
def heals(spec: PipelineSpec) -> bool:
    """Whether a run of `spec` finishes if it is resumed often enough."""
    return predict(spec, attempts=dict.fromkeys((each.name for each in _every_node(spec)), _OFTEN)).finishes


_OFTEN = 100


def _every_node(spec: PipelineSpec) -> Iterator[NodeSpec]:
    """Yield all nodes of `spec`, and their fallbacks."""
    for node in spec.nodes():
        each: NodeSpec | None = node
        while each is not None:
            yield each
            each = each.fallback


def _healed_step(step: StepSpec) -> StepSpec:
    if isinstance(step, NodeSpec):
        fallback = None if step.fallback is None else _healed_step(step.fallback)
        assert fallback is None or isinstance(fallback, NodeSpec)
        return replace(step, fails=0, fallback=fallback)
    if isinstance(step, FanOutSpec):
        return replace(step, members=tuple(map(_healed_step, step.members)))
    if isinstance(step, BranchSpec):
        routes = tuple(replace(route, step=_healed_step(route.step)) for route in step.routes)
        return replace(step, routes=routes, default=None if step.default is None else _healed_step(step.default))
    return replace(step, steps=tuple(map(_healed_step, step.steps)))
