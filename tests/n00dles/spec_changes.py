"""Every way in which an author may change a generated pipeline between two lives of a run, one change at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from n00dles_testing.strategies import (
    BranchSpec,
    FanOutSpec,
    InputSpec,
    NestedSpec,
    NodeSpec,
    ParameterSpec,
    PipelineSpec,
    RouteSpec,
    SpecError,
)
from n00dles_testing.strategies.check import check
from n00dles_testing.strategies.scope import Scope
from n00dles_testing.strategies.spec import StepSpec

__all__ = ["calm", "change", "changes"]

Steps = tuple[StepSpec, ...]
Edit = Callable[[StepSpec], Steps]
Change = tuple[str, tuple[int, ...]]

FRESH = NodeSpec("fresh", "str")


def changes(spec: PipelineSpec) -> dict[str, list[Change]]:
    """Return the changes that may be made to `spec`, by kind: what is done, and the path of the step.

    Some of them leave no pipeline; `change` tells.
    """
    found: list[Change] = [(kind, ()) for kind in _WHOLE]
    for path, step in _paths(spec.steps):
        found += [(kind, path) for kind, (applies, _) in _EDITS.items() if isinstance(step, applies)]
        found += [(kind, path) for kind in _PAIRS if len(path) == 1 and path[0] + 1 < len(spec.steps)]
    return {kind: [each for each in found if each[0] == kind] for kind, _ in found}


def change(spec: PipelineSpec, made: Change) -> PipelineSpec | None:
    """Return `spec` with a change made to it; None if that is no pipeline, or the same one.

    What its parameters are filled from follows from where they are now, and what is filled from nowhere becomes an
    input.
    """
    try:
        changed = _rewired(_changed(spec, *made))
        check(changed)
    except SpecError:
        return None
    return None if changed == spec else changed


def _changed(spec: PipelineSpec, kind: str, path: tuple[int, ...]) -> PipelineSpec:
    if kind in _WHOLE:
        return _WHOLE[kind](spec)
    if kind not in _PAIRS:
        return replace(spec, steps=_edited(spec.steps, path, _EDITS[kind][1]))
    (at,) = path
    pair = _PAIRS[kind](spec.steps[at], spec.steps[at + 1])
    return replace(spec, steps=(*spec.steps[:at], *pair, *spec.steps[at + 2 :]))


def calm(spec: PipelineSpec) -> PipelineSpec:
    """Return `spec` with no node that fails."""

    def calmed(step: StepSpec) -> StepSpec:
        if isinstance(step, NodeSpec):
            return replace(step, fails=0, failure="raises", fallback=None)
        return _with_children(step, tuple(map(calmed, _children(step))))

    return replace(spec, steps=tuple(map(calmed, spec.steps)))


def _fresh_after(step: StepSpec) -> Steps:
    return step, FRESH


def _key_renamed(step: StepSpec) -> Steps:
    assert isinstance(step, BranchSpec)
    first, *others = step.routes
    return (replace(step, routes=(replace(first, keys=("renamed", *first.keys[1:])), *others)),)


def _node(**how: object) -> Edit:
    return lambda step: (replace(step, **how),)  # type: ignore[arg-type]


def _of_node(edit: Callable[[NodeSpec], NodeSpec]) -> Edit:
    def edited(step: StepSpec) -> Steps:
        assert isinstance(step, NodeSpec)
        return (edit(step),)

    return edited


def _first_parameter(node: NodeSpec) -> NodeSpec:
    if not node.parameters:
        return node
    first, *others = node.parameters
    return replace(node, parameters=(replace(first, type="Any" if first.type is None else None), *others))


def _children(step: StepSpec) -> Steps:
    if isinstance(step, NodeSpec):
        return ()
    return step.members if isinstance(step, FanOutSpec) else step.steps


def _retyped(node: NodeSpec) -> NodeSpec:
    return replace(node, output="int" if node.output == "str" else "str", is_annotated=True)


def _more_routes(step: StepSpec) -> Steps:
    assert isinstance(step, BranchSpec)
    return (replace(step, routes=(*step.routes, RouteSpec(("more",), FRESH))),)


_ANY = (NodeSpec, FanOutSpec, BranchSpec, NestedSpec)
_EXTRA = ParameterSpec("extra", "default", None, "3")

_EDITS: dict[str, tuple[type | tuple[type, ...], Edit]] = {
    "insert before": (_ANY, lambda step: (FRESH, step)),
    "insert after": (_ANY, _fresh_after),
    "drop": (_ANY, lambda step: ()),
    "wrap": (_ANY, lambda step: (NestedSpec((step,), name="wrapped"),)),
    "rename": (NodeSpec, _of_node(lambda node: replace(node, name=f"{node.name}_new"))),
    "annotate": (NodeSpec, _of_node(lambda node: replace(node, is_annotated=not node.is_annotated))),
    "retype": (NodeSpec, _of_node(_retyped)),
    "annotate parameter": (NodeSpec, _of_node(_first_parameter)),
    "add parameter": (NodeSpec, _of_node(lambda node: replace(node, parameters=(*node.parameters, _EXTRA)))),
    "drop parameter": (NodeSpec, _of_node(lambda node: replace(node, parameters=node.parameters[1:]))),
    "retry": (NodeSpec, _node(retry=7)),
    "pause": (NodeSpec, _of_node(lambda node: replace(node, pauses=node.pauses + 1))),
    "max_concurrency": (FanOutSpec, _node(max_concurrency=2)),
    "one after another": (FanOutSpec, _children),
    "more members": (FanOutSpec, lambda step: (_with_children(step, (*_children(step), FRESH)),)),
    "swap members": (FanOutSpec, lambda step: (_with_children(step, _children(step)[::-1]),)),
    "rename key": (BranchSpec, _key_renamed),
    "more routes": (BranchSpec, _more_routes),
    "other default": (BranchSpec, _node(default=FRESH)),
    "rename nested": (NestedSpec, _node(name="other")),
    "unwrap": (NestedSpec, _children),
    "retry nested": (NestedSpec, _node(retry=9)),
}

_PAIRS: dict[str, Callable[[StepSpec, StepSpec], Steps]] = {
    "swap with next": lambda one, next_one: (next_one, one),
    "join with next": lambda one, next_one: (FanOutSpec((one, next_one)),),
    "wrap with next": lambda one, next_one: (NestedSpec((one, next_one), name="wrapped"),),
}

_WHOLE: dict[str, Callable[[PipelineSpec], PipelineSpec]] = {
    "append": lambda spec: replace(spec, steps=(*spec.steps, FRESH)),
    "append a fan-out": lambda spec: replace(
        spec, steps=(*spec.steps, FanOutSpec((FRESH, replace(FRESH, name="fresh_2"))))
    ),
    "retry of all": lambda spec: replace(spec, retry=8),
    "rename pipeline": lambda spec: replace(spec, name="renamed"),
}


def _paths(steps: Steps, at: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], StepSpec]]:
    for index, step in enumerate(steps):
        yield (*at, index), step
        yield from _paths(_children(step), (*at, index))


def _edited(steps: Steps, path: tuple[int, ...], edit: Edit) -> Steps:
    at, *rest = path
    step = steps[at]
    if not rest:
        return (*steps[:at], *edit(step), *steps[at + 1 :])
    if isinstance(step, NestedSpec):
        inner = _edited(step.steps, tuple(rest), edit)
        return (*steps[:at], *((replace(step, steps=inner),) if inner else ()), *steps[at + 1 :])
    children = list(_children(step))
    changed = _edited((children[rest[0]],), (0, *rest[1:]), edit)
    children[rest[0]] = changed[0] if len(changed) == 1 else NestedSpec(changed)  # () is refused by `check`
    return (*steps[:at], _with_children(step, tuple(children)), *steps[at + 1 :])


def _with_children(step: StepSpec, children: Steps) -> StepSpec:
    """Return a step with other children; a member or a route that is an empty pipeline is left out."""
    kept = [child for child in children if not (isinstance(child, NestedSpec) and not child.steps)]
    if isinstance(step, NestedSpec):
        return replace(step, steps=tuple(kept))
    if isinstance(step, FanOutSpec):
        return replace(step, members=tuple(kept)) if len(kept) > 1 else kept[0]
    assert isinstance(step, BranchSpec)
    of_routes = children[: len(step.routes)]
    routes = [replace(route, step=child) for route, child in zip(step.routes, of_routes, strict=True) if child in kept]
    if not routes:
        raise SpecError("a branch without a route")
    default = children[len(step.routes)] if step.default is not None else None
    return replace(step, routes=tuple(routes), default=default if default in kept else None)


def _rewired(spec: PipelineSpec) -> PipelineSpec:
    values = {each.name: each for each in spec.inputs}
    read: dict[str, InputSpec] = {}

    def chain(steps: Steps, scope: Scope) -> Steps:
        done = []
        for step in steps:
            done.append(one(step, scope))
            scope.passed(step)
        return tuple(done)

    def one(step: StepSpec, scope: Scope) -> StepSpec:
        if isinstance(step, NodeSpec):
            parameters = tuple(parameter(each, len(step.parameters) == 1, scope) for each in step.parameters)
            return replace(step, parameters=parameters)
        if isinstance(step, NestedSpec):
            return replace(step, steps=chain(step.steps, scope.inner()))
        return _with_children(step, tuple(one(child, scope.inner()) for child in _children(step)))

    def parameter(each: ParameterSpec, is_only: bool, scope: Scope) -> ParameterSpec:
        source = scope.source(each, is_only, frozenset(values))
        if source is None and each.name not in scope.possible:
            source = "input"
        if source == "input":
            read[each.name] = values.get(each.name, InputSpec(each.name, '"new"'))
        return replace(each, source=source or each.source)

    steps = chain(spec.steps, Scope())
    return replace(spec, steps=steps, inputs=tuple(read.values()))
