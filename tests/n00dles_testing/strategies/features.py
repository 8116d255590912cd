"""What a generated pipeline has in it, by name: for the tests of how often it comes, and of how small it gets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from n00dles_testing.strategies import (
    ALWAYS,
    BranchSpec,
    Choice,
    FanOutSpec,
    ListOf,
    ModelSpec,
    NestedSpec,
    NodeSpec,
    OneOf,
    OptionalOf,
    PipelineSpec,
    Record,
    predict,
)
from n00dles_testing.strategies.scope import output_type
from n00dles_testing.strategies.spec import StepSpec, nodes_of
from n00dles_testing.strategies.types import TypeSpec


def children(step: StepSpec) -> tuple[StepSpec, ...]:
    if isinstance(step, NodeSpec):
        return ()
    return step.members if isinstance(step, FanOutSpec) else step.steps


def all_steps(steps: tuple[StepSpec, ...]) -> Iterator[StepSpec]:
    for step in steps:
        yield step
        yield from all_steps(children(step))


def chains(spec: PipelineSpec) -> Iterator[tuple[StepSpec, ...]]:
    yield spec.steps
    for step in all_steps(spec.steps):
        if isinstance(step, NestedSpec):
            yield step.steps


def features(spec: PipelineSpec) -> set[str]:
    """Return the names of all that `spec` has and does."""
    prediction = predict(spec)
    found = shape(spec) | {"finishes" if prediction.finishes else "fails for good"}
    if any(prediction.calls[node] > 1 for node in prediction.answers):
        found |= {"recovers"}
    if any(answered != node for node, answered in prediction.answers.items()):
        found |= {"a fallback answers"}
    return found


def shape(spec: PipelineSpec) -> set[str]:
    """Return the names of all that can be seen in `spec` without following its run."""
    found: set[str] = set()
    for step in all_steps(spec.steps):
        found |= set(_of_step(step))
    for chain in chains(spec):
        for before, after in itertools.pairwise(chain):
            if isinstance(after, BranchSpec):
                found |= {f"router: {_router(output_type(before), after)}"}
    for node in spec.nodes():
        found |= set(_of_node(node))
    found |= {"chain"} if len(spec.steps) > 1 else set()
    found |= {"pipeline: retry"} if spec.retry > 1 else set()
    found |= {"input"} if spec.inputs else {"no input"}
    if {each.name for each in spec.inputs} & {node.name for node in spec.nodes()}:
        found |= {"input named like a node"}
    return found


def _of_step(step: StepSpec) -> Iterator[str]:
    if isinstance(step, FanOutSpec):
        yield "fan-out: unbounded" if step.max_concurrency is None else "fan-out: max_concurrency"
    elif isinstance(step, BranchSpec):
        yield "branch: default" if step.default is not None else "branch: no default"
        if any(len(route.keys) > 1 for route in step.routes):
            yield "branch: two keys lead to one step"
    elif isinstance(step, NestedSpec):
        yield "nested: named" if step.name is not None else "nested: unnamed"
        if step.retry is not None:
            yield "nested: retry"
    if isinstance(step, FanOutSpec | BranchSpec):
        for child in children(step):
            if isinstance(child, NestedSpec):
                yield "nested: as a member" if isinstance(step, FanOutSpec) else "nested: as a route"
            if not isinstance(child, NodeSpec) and any(
                isinstance(inner, FanOutSpec | BranchSpec) for inner in all_steps((child,))
            ):
                yield "group in a group"


def _router(kind: TypeSpec, branch: BranchSpec) -> str:
    if isinstance(kind, Choice):
        return "text"
    fields = kind.all_fields if isinstance(kind, ModelSpec) else kind.record if isinstance(kind, Record) else ()
    category = next((field.type for field in fields if field.name == "category"), None)
    keys = {key for route in branch.routes for key in route.keys}
    if not isinstance(category, Choice) or not keys & set(category.choices):
        return "unrelated"
    if isinstance(kind, Record):
        return "dict"
    return "enum" if category.is_enum else "model"


def _of_node(node: NodeSpec) -> Iterator[str]:
    yield "body: model" if node.is_model else "body: sync" if node.is_sync else "body: async"
    yield "annotated" if node.is_annotated else "not annotated"
    yield from _of_output(node)
    for parameter in node.parameters:
        yield f"parameter: {parameter.source}"
        if isinstance(parameter.type, ModelSpec):
            yield "parameter: a model"
        elif parameter.type is None:
            yield "parameter: not annotated"
    yield f"parameters: {min(len(node.parameters), 2)}"
    if node.pauses:
        yield "pauses"
    if node.fails:
        yield "fails: always" if node.fails == ALWAYS else "fails: first attempts"
        yield f"fails: {node.failure}"
    if node.retry is not None:
        yield "retry"
    if node.fallback is not None:
        yield "fallback" if node.fallback.fallback is None else "fallback of a fallback"
    if len(node.name.rstrip("0123456789")) > 1:
        yield "odd name"


def _of_output(node: NodeSpec) -> Iterator[str]:
    kind = node.output
    if isinstance(kind, OptionalOf | ListOf):
        yield "output: optional" if isinstance(kind, OptionalOf) else "output: list"
        kind = kind.inner if isinstance(kind, OptionalOf) else kind.item
    if isinstance(kind, OneOf):
        yield "output: union"
    if isinstance(kind, ModelSpec):
        yield "output: model"
        yield from (f"model: {name}" for name in ("is_computed", "is_generic", "base") if getattr(kind, name))
        yield from ("model: alias" for field in kind.all_fields if field.alias is not None)
        yield from ("model: default" for field in kind.all_fields if field.has_default)
        yield from (f"model: {field.type}" for field in kind.all_fields if isinstance(field.type, str))
    if isinstance(kind, str):
        yield f"output: {kind}"
    if node.payload is not None:
        yield "payload"


def nodes_in(step: StepSpec) -> list[NodeSpec]:
    return list(nodes_of(step))
