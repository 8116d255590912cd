"""Simpler pipelines than a given one, of which each is valid: the steps that hypothesis cannot take in one go.

A node, a step, a group or what a node does besides is left out. What that leaves behind is put right: a parameter reads
what there is now, an input that nobody reads is gone, a group of one is that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import ValidationError

from ..strategies import BranchSpec, FanOutSpec, NestedSpec, NodeSpec, ParameterSpec, PipelineSpec, SpecError, predict
from ..strategies.check import check
from ..strategies.scope import Scope
from ..strategies.spec import StepSpec
from .failures import healed

__all__ = ["simpler"]

Steps = tuple[StepSpec, ...]


def simpler(spec: PipelineSpec) -> Iterator[PipelineSpec]:
    """Yield valid pipelines that are simpler than `spec`, those with the fewest nodes first, each once."""
    plainer = [spec] if spec.retry == 1 else [spec, replace(spec, retry=1)]
    tried = [replace(each, steps=steps) for each in plainer for steps in (each.steps, *_simpler_chains(each.steps))]
    tried = [each for each in tried if each.steps]
    seen = {spec}
    for each in sorted(tried, key=lambda one: len(one.nodes())):
        found = _valid(_repaired(each)) or _valid(_untyped(_repaired(each)))
        if found is not None and found not in seen:
            seen.add(found)
            yield found


def _simpler_chains(steps: Steps) -> Iterator[Steps]:
    for index, step in enumerate(steps):
        before, behind = steps[:index], steps[index + 1 :]
        if len(steps) > 1:
            yield (step,)
        yield (*before, *behind)
        for inner in _in_place_of(step):
            yield (*before, *inner, *behind)


def _in_place_of(step: StepSpec) -> Iterator[Steps]:
    """Yield what could stand in place of a step."""
    if isinstance(step, NodeSpec):
        plain = replace(step, fails=0, failure="raises", retry=None, fallback=None)
        less = (
            plain,
            replace(step, fallback=None),
            replace(step, retry=None),
            replace(step, pauses=min(step.pauses, 1)),
        )
        yield from ((each,) for each in less if each != step)
    elif isinstance(step, NestedSpec):
        yield step.steps
        yield from ((replace(step, steps=inner),) for inner in _simpler_chains(step.steps) if inner)
    elif isinstance(step, FanOutSpec):
        yield from (_spliced(member) for member in step.members)
        for index, member in enumerate(step.members):
            for new in ((), *_simpler_members(member)):
                members = (*step.members[:index], *new, *step.members[index + 1 :])
                yield (replace(step, members=members),) if len(members) > 1 else members
    else:
        yield from (_spliced(route) for route in step.steps)
        yield from ((each,) for each in _simpler_branches(step))


def _simpler_branches(step: BranchSpec) -> Iterator[BranchSpec]:
    for index, route in enumerate(step.routes):
        others = (*step.routes[:index], *step.routes[index + 1 :])
        if others:  # its keys lead where another route does
            yield replace(step, routes=(*others[:-1], replace(others[-1], keys=(*others[-1].keys, *route.keys))))
            if step.default is not None:
                yield replace(step, routes=others)
        for (new,) in _simpler_members(route.step):
            yield replace(step, routes=(*step.routes[:index], replace(route, step=new), *step.routes[index + 1 :]))
    if step.default is not None:
        yield replace(step, default=None)
        yield from (replace(step, default=new) for (new,) in _simpler_members(step.default))


def _simpler_members(step: StepSpec) -> Iterator[tuple[StepSpec]]:
    for steps in _simpler_chains(_spliced(step)):
        if len(steps) == 1:
            yield (steps[0],)
        elif steps:
            yield (NestedSpec(steps),)


def _spliced(step: StepSpec) -> Steps:
    """Return a member or a route as the steps of a chain."""
    return step.steps if isinstance(step, NestedSpec) and step.name is None and step.retry is None else (step,)


def _valid(spec: PipelineSpec) -> PipelineSpec | None:
    try:
        check(spec)
        predict(healed(spec))  # what comes after a node that fails has to fit, too
    except (SpecError, ValidationError):  # a branch without its router, or a value that does not fit
        return None
    return spec


def _repaired(spec: PipelineSpec) -> PipelineSpec:
    """Have each parameter read what there is, and leave out the inputs that nobody reads."""
    read: set[str] = set()
    steps = _repaired_chain(spec.steps, Scope(), frozenset(each.name for each in spec.inputs), read)
    return replace(spec, steps=steps, inputs=tuple(each for each in spec.inputs if each.name in read))


def _repaired_chain(steps: Steps, scope: Scope, inputs: frozenset[str], read: set[str]) -> Steps:
    chain = []
    for step in steps:
        chain.append(_repaired_step(step, scope, inputs, read))
        scope.passed(chain[-1])
    return tuple(chain)


def _repaired_step(step: StepSpec, scope: Scope, inputs: frozenset[str], read: set[str]) -> StepSpec:
    def inner(each: StepSpec) -> StepSpec:
        return _repaired_step(each, scope.inner(), inputs, read)

    if isinstance(step, NodeSpec):
        parameters = _readable(step.parameters, scope, inputs)
        read.update(each.name for each in parameters if each.source == "input")
        return _reading(step, parameters)
    if isinstance(step, NestedSpec):
        return replace(step, steps=_repaired_chain(step.steps, scope.inner(), inputs, read))
    if isinstance(step, FanOutSpec):
        return replace(step, members=tuple(map(inner, step.members)))
    routes = tuple(replace(route, step=inner(route.step)) for route in step.routes)
    return replace(step, routes=routes, default=None if step.default is None else inner(step.default))


def _readable(parameters: tuple[ParameterSpec, ...], scope: Scope, inputs: frozenset[str]) -> tuple[ParameterSpec, ...]:
    while True:  # a parameter that is left alone reads what is before it
        sources = [scope.source(each, len(parameters) == 1, inputs) for each in parameters]
        if None not in sources:
            break
        parameters = tuple(each for each, source in zip(parameters, sources, strict=True) if source is not None)
    return tuple(
        each if source is None or source == each.source else replace(each, source=source, type=None)
        for each, source in zip(parameters, sources, strict=True)
    )


def _reading(node: NodeSpec, parameters: tuple[ParameterSpec, ...]) -> NodeSpec:
    fallback = None if node.fallback is None else _reading(node.fallback, parameters)
    return replace(node, parameters=parameters, fallback=fallback)


def _untyped(spec: PipelineSpec) -> PipelineSpec:
    """Return `spec` with no parameter annotated: what they declare may not fit what they read now."""

    def step(each: StepSpec) -> StepSpec:
        if isinstance(each, NodeSpec):
            return _reading(each, tuple(replace(one, type=None) for one in each.parameters))
        if isinstance(each, NestedSpec):
            return replace(each, steps=tuple(map(step, each.steps)))
        if isinstance(each, FanOutSpec):
            return replace(each, members=tuple(map(step, each.members)))
        routes = tuple(replace(route, step=step(route.step)) for route in each.routes)
        return replace(each, routes=routes, default=None if each.default is None else step(each.default))

    return replace(spec, steps=tuple(map(step, spec.steps)))
