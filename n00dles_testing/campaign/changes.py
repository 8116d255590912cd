"""Changing a generated pipeline as its author might between two lives: rename, drop, reorder, retype, append."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

from pydantic import ValidationError

from ..strategies import BranchSpec, FanOutSpec, InputSpec, NodeSpec, ParameterSpec, PipelineSpec, SpecError, predict
from ..strategies.check import check
from ..strategies.spec import StepSpec
from ..strategies.types import TypeSpec

__all__ = ["changed", "changes_of", "mapped", "renamed"]

APPENDED = "appended"


def changes_of(spec: PipelineSpec) -> list[tuple[str, str]]:
    """Return every change that leaves a valid pipeline: its kind, and the node or input that it is made to."""
    wanted = [
        *(("append", APPENDED) for _ in range(2)),
        *((kind, node.name) for node in spec.nodes() for kind in ("rename", "drop", "retype")),
        *(("reorder", step.name) for step in spec.steps[:-1] if isinstance(step, NodeSpec)),
        *(("input", each.name) for each in spec.inputs),
    ]
    return [change for change in wanted if changed(spec, *change) is not None]


def changed(spec: PipelineSpec, kind: str, subject: str) -> PipelineSpec | None:
    """Return `spec` after a change; None if it would be no valid pipeline then, or the same one."""
    new = _CHANGES[kind](spec, subject)
    if new is None or new == spec:
        return None
    try:
        check(new)
        predict(new)
    except (SpecError, ValidationError):  # a node would be read that is gone, or get what it does not take
        return None
    return new


def renamed(spec: PipelineSpec, old: str, new: str) -> PipelineSpec:
    """Return `spec` with a node renamed, and with it the parameters that read it by name."""

    def node(each: NodeSpec) -> NodeSpec:
        parameters = tuple(
            replace(one, name=new) if one.name == old and one.source in ("step", "maybe") else one
            for one in each.parameters
        )
        fallback = None if each.fallback is None else node(each.fallback)
        name = new if each.name == old else each.name
        return replace(each, name=name, parameters=parameters, fallback=fallback)

    return replace(spec, steps=mapped(spec.steps, node))


def _renamed(spec: PipelineSpec, subject: str) -> PipelineSpec | None:
    return renamed(spec, subject, f"{subject}_new")


def _dropped(spec: PipelineSpec, subject: str) -> PipelineSpec | None:
    left = mapped(spec.steps, lambda node: None if node.name == subject else node)
    return replace(spec, steps=left) if left else None


def _retyped(spec: PipelineSpec, subject: str) -> PipelineSpec | None:
    """Have a node declare another type: only what is declared can be seen to have changed."""

    def node(each: NodeSpec) -> NodeSpec:
        if each.name != subject or each.is_model:
            return each
        fallback = None if each.fallback is None else replace(each.fallback, output=_other(each), is_annotated=True)
        return replace(each, output=_other(each), is_annotated=True, fallback=fallback)

    return replace(spec, steps=mapped(spec.steps, node))


def _other(node: NodeSpec) -> TypeSpec:
    return "int" if node.output == "str" else "str"


def _reordered(spec: PipelineSpec, subject: str) -> PipelineSpec | None:
    steps = list(spec.steps)
    at = next(index for index, step in enumerate(steps) if isinstance(step, NodeSpec) and step.name == subject)
    steps[at], steps[at + 1] = steps[at + 1], steps[at]
    return replace(spec, steps=tuple(steps))


def _appended(spec: PipelineSpec, subject: str) -> PipelineSpec | None:
    last = NodeSpec(subject, output="str", parameters=(ParameterSpec("value", "previous"),))
    return replace(spec, steps=(*spec.steps, last))


def _input(spec: PipelineSpec, subject: str) -> PipelineSpec | None:
    """Have the run be resumed with another value of an input, of the same type."""
    inputs = tuple(InputSpec(each.name, _another(each.value)) if each.name == subject else each for each in spec.inputs)
    return replace(spec, inputs=inputs)


def _another(value: str) -> str:
    found = json.loads(value)
    if isinstance(found, str):
        return json.dumps(f"{found} changed")
    if isinstance(found, dict) and isinstance(found.get("title"), str):
        return json.dumps({**found, "title": found["title"] + " changed"})
    return json.dumps([found])


_CHANGES: dict[str, Callable[[PipelineSpec, str], PipelineSpec | None]] = {
    "rename": _renamed,
    "drop": _dropped,
    "retype": _retyped,
    "reorder": _reordered,
    "append": _appended,
    "input": _input,
}


def mapped(steps: tuple[StepSpec, ...], node: Callable[[NodeSpec], NodeSpec | None]) -> tuple[StepSpec, ...]:
    """Return steps with each node replaced, or left out with whatever then has too little in it."""
    return tuple(step for each in steps for step in _step(each, node))


def _step(step: StepSpec, node: Callable[[NodeSpec], NodeSpec | None]) -> Iterator[StepSpec]:
    if isinstance(step, NodeSpec):
        new = node(step)
        if new is not None:
            yield new
    elif isinstance(step, FanOutSpec):
        members = mapped(step.members, node)
        if members:
            yield replace(step, members=members)
    elif isinstance(step, BranchSpec):
        routes = [(route, mapped((route.step,), node)) for route in step.routes]
        default = () if step.default is None else mapped((step.default,), node)
        # Keys whose route is gone lead where another one does.
        homeless = tuple(key for route, steps in routes if not steps for key in route.keys)
        left = [replace(route, step=steps[0]) for route, steps in routes if steps]
        if left:
            left[-1] = replace(left[-1], keys=(*left[-1].keys, *homeless))
        yield replace(step, routes=tuple(left), default=default[0] if default else None)
    else:
        inner = mapped(step.steps, node)
        if inner:
            yield replace(step, steps=inner)
