"""Whether a spec describes a pipeline that can be built and run; each reason that it does not has its own sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from pydantic import ValidationError

from n00dles.serialization import MAX_DEPTH, loads, to_stored
from n00dles.wiring import RESERVED_INPUTS

from .model_classes import TAG, Computed
from .scope import Scope
from .spec import (
    ALWAYS,
    BranchSpec,
    FanOutSpec,
    NestedSpec,
    NodeSpec,
    PipelineSpec,
    StepSpec,
)
from .spec_error import SpecError
from .typed_value import typed_value
from .types import Choice, DictOf, FieldSpec, ListOf, ModelSpec, OneOf, OptionalOf, Record, TupleOf, TypeSpec

__all__ = ["MAX_NODES", "can_be_mistyped", "check", "route_keys"]

MAX_NODES = 200
_MAX_NESTING = 20
_MAX_ATTEMPTS = 100
_NAME = re.compile(r"[\w.-]+")
_CATEGORY = "category"


def check(spec: PipelineSpec) -> None:
    """Raise `SpecError` if `spec` is not one that `build` can make a pipeline of that runs."""
    if not spec.steps:
        _refuse("the pipeline", "has no step")
    _check_nesting(spec.steps, 1)
    nodes = [each for node in spec.nodes() for each in _with_fallbacks(node)]
    if len(nodes) > MAX_NODES:
        _refuse("the pipeline", f"has {len(nodes)} nodes; the limit is {MAX_NODES}")
    _check_names(spec, [node.name for node in nodes])
    inputs = frozenset(each.name for each in spec.inputs)
    for each in spec.inputs:
        if each.name in RESERVED_INPUTS or not each.name:
            _refuse(f"the input {each.name!r}", "has a name that `run` takes for itself")
        _json(each.value, f"the input {each.name!r}")
    _attempts(spec.retry, "the pipeline")
    for node in nodes:
        _check_node(node)
    read: set[str] = set()
    _check_chain(spec.steps, Scope(), inputs, read)
    if unread := inputs - read:
        _refuse(f"the input {min(unread)!r}", "is read by no node")
    for node in nodes:
        _check_takes_inputs(node, {each.name: each.value for each in spec.inputs})


def route_keys(kind: TypeSpec) -> frozenset[str] | None:
    """Return the keys that an output of this type can send a branch; None if they are not settled by the type."""
    if isinstance(kind, Choice):
        return frozenset(kind.choices)
    fields: tuple[FieldSpec, ...] = ()
    if isinstance(kind, Record):
        fields = kind.record
    elif isinstance(kind, ModelSpec):
        fields = kind.all_fields
    found = next((each for each in fields if each.name == _CATEGORY), None)
    if found is None or not isinstance(found.type, Choice) or found.has_default or found.alias is not None:
        return None
    return frozenset(found.type.choices)


def can_be_mistyped(node: NodeSpec) -> bool:
    """Whether the type that a node declares can refuse a value: a list of lists of texts is what it then returns."""
    declared = node.is_annotated or (node.is_model and node.output != "str")
    return declared and not (node.is_model and node.output == "str") and not _takes(node.output, 2)


def _takes(kind: TypeSpec, lists: int) -> bool:
    """Whether a text inside so many lists fits `kind`."""
    if isinstance(kind, OptionalOf):
        return _takes(kind.inner, lists)
    if isinstance(kind, ListOf):
        return lists > 0 and _takes(kind.item, lists - 1)
    return kind == "Any" or (kind == "str" and lists == 0)


def _refuse(what: str, why: str) -> NoReturn:
    raise SpecError(f"{what} {why}.")


def _with_fallbacks(node: NodeSpec) -> Iterator[NodeSpec]:
    each: NodeSpec | None = node
    while each is not None:
        yield each
        each = each.fallback


def _check_nesting(steps: tuple[StepSpec, ...], depth: int) -> None:
    if depth > _MAX_NESTING:
        _refuse("the pipeline", f"is nested more than {_MAX_NESTING} levels deep")
    for step in steps:
        if isinstance(step, NodeSpec):
            if sum(1 for _ in _with_fallbacks(step)) > _MAX_NESTING:
                _refuse(f"node {step.name!r}", f"has more than {_MAX_NESTING} fallbacks")
        else:
            _check_nesting(step.members if isinstance(step, FanOutSpec) else step.steps, depth + 1)


def _check_names(spec: PipelineSpec, nodes: list[str]) -> None:
    names = [*nodes, *(step.name for step in _nested(spec.steps) if step.name is not None), spec.name]
    for name in names:
        if not _NAME.fullmatch(name):
            _refuse(f"{name!r}", "cannot be a name; use letters, digits, '_', '-' and '.'")
    twin = next((name for name, count in Counter(names).items() if count > 1), None)
    if twin is not None:
        _refuse(f"the name {twin!r}", "is used twice")
    if len({each.name for each in spec.inputs}) < len(spec.inputs):
        _refuse("the pipeline", "has two inputs of one name")


def _nested(steps: tuple[StepSpec, ...]) -> Iterator[NestedSpec]:
    for step in steps:
        if isinstance(step, NestedSpec):
            yield step
        if not isinstance(step, NodeSpec):
            yield from _nested(step.members if isinstance(step, FanOutSpec) else step.steps)


def _check_node(node: NodeSpec) -> None:
    what = f"node {node.name!r}"
    _check_type(node.output, what, is_stored=True)
    if node.payload is not None:
        _json(node.payload, f"the payload of {what}")
    if node.fails < ALWAYS or not 0 <= node.pauses <= _MAX_ATTEMPTS:
        _refuse(what, "fails, or pauses, a number of times that is no number of times")
    if node.retry is not None:
        _attempts(node.retry, what)
    if node.fails and node.failure == "mistyped" and not can_be_mistyped(node):
        _refuse(what, "declares no type that its mistyped output would not fit")
    if node.fails and node.failure == "unstorable" and node.is_model:
        _refuse(what, "is a model, whose answers can always be stored")
    if node.is_model and node.is_sync:
        _refuse(what, "is a model, and has no body that could be sync")
    names = [each.name for each in node.parameters]
    for each in node.parameters:
        if not each.name.isidentifier():
            _refuse(f"the parameter {each.name!r} of {what}", "is no identifier")
        if each.type is not None:
            _check_type(each.type, f"the parameter {each.name!r} of {what}", is_stored=True)
        if each.default is not None:
            _json(each.default, f"the default of {each.name!r} of {what}")
    if len(set(names)) < len(names):
        _refuse(what, "has two parameters of one name")
    fallback = node.fallback
    if fallback is not None and _answer(fallback) != _answer(node):
        _refuse(f"the fallback {fallback.name!r}", f"would not answer as {what} does")


def _answer(node: NodeSpec) -> tuple[Any, ...]:
    return node.parameters, node.output, node.payload, node.is_model


def _check_chain(steps: tuple[StepSpec, ...], scope: Scope, inputs: frozenset[str], read: set[str]) -> None:
    for step in steps:
        if isinstance(step, NestedSpec) and step.name is None and step.retry is None:
            _refuse("a pipeline in a chain", "has neither a name nor a retry, so it would melt into the chain")
        _check_step(step, scope, inputs, read)
        scope.passed(step)


def _check_step(step: StepSpec, scope: Scope, inputs: frozenset[str], read: set[str]) -> None:
    if isinstance(step, NodeSpec):
        _check_sources(step, scope, inputs, read)
        return
    if isinstance(step, NestedSpec):
        if not step.steps or (len(step.steps) == 1 and step.name is None and step.retry is None):
            _refuse("a nested pipeline", "has not two steps, nor a name or a retry")
        if step.retry is not None:
            _attempts(step.retry, "a nested pipeline")
        _check_chain(step.steps, scope.inner(), inputs, read)
        return
    if isinstance(step, FanOutSpec):
        if len(step.members) < 2:  # noqa: PLR2004
            _refuse("a fan-out", "has fewer than two members")
        if step.max_concurrency is not None and step.max_concurrency < 1:
            _refuse("a fan-out", "lets no member run: max_concurrency is less than 1")
        if any(isinstance(each, NestedSpec) and each.name is None and len(each.steps) == 1 for each in step.members):
            _refuse("a member of a fan-out", "is a pipeline of one step without a name, and would be called like it")
    else:
        _check_routes(step, scope)
    for each in step.members if isinstance(step, FanOutSpec) else step.steps:
        _check_step(each, scope.inner(), inputs, read)


def _check_routes(step: BranchSpec, scope: Scope) -> None:
    keys = [key for route in step.routes for key in route.keys]
    if not keys or not all(route.keys for route in step.routes) or len(set(keys)) < len(keys) or "default" in keys:
        _refuse("a branch", f"has no route, a route without a key, or a key twice: {keys}")
    if scope.previous is None:
        _refuse("a branch", "has no step before it")
    possible = route_keys(scope.previous)
    if step.default is None and (possible is None or not possible <= set(keys)):
        _refuse("a branch", "has no default, and what is before it may give other keys than its own")


def _check_sources(node: NodeSpec, scope: Scope, inputs: frozenset[str], read: set[str]) -> None:
    for each in node.parameters:
        source = scope.source(each, len(node.parameters) == 1, inputs)
        if source != each.source:
            _refuse(
                f"the parameter {each.name!r} of node {node.name!r}",
                f"is said to come from {each.source!r}, and comes from {source!r}",
            )
        if source == "input":
            read.add(each.name)


def _check_takes_inputs(node: NodeSpec, values: Mapping[str, str]) -> None:
    """Refuse an input that does not fit a node which reads it, though its route may never be taken, as `run` does."""
    for each in node.parameters:
        if each.source != "input" or each.name not in values:
            continue
        try:
            typed_value(each.type, values[each.name])
        except ValidationError:
            _refuse(
                f"the input {each.name!r}",
                f"is {values[each.name][:60]}, which does not fit what node {node.name!r} declares for it",
            )


def _check_type(  # noqa: PLR0912 - one a kind of type
    kind: TypeSpec, what: str, *, is_stored: bool = False, depth: int = 1
) -> None:
    """`is_stored` says that a value of this type is stored as it is, outside any model."""
    if depth > _MAX_NESTING:
        _refuse(what, f"has a type of more than {_MAX_NESTING} levels")
    inner: tuple[TypeSpec, ...] = ()
    if isinstance(kind, str):
        if is_stored and kind not in ("str", "int", "float", "bool", "None", "Any"):
            _refuse(what, f"would give a {kind}, which JSON does not have outside a model")
    elif isinstance(kind, Choice):
        if not kind.choices or len(set(kind.choices)) < len(kind.choices) or (is_stored and kind.is_enum):
            _refuse(what, "has a choice of nothing, of one text twice, or of an enum outside a model")
    elif isinstance(kind, TupleOf):
        if is_stored or not kind.items:
            _refuse(what, "would give a tuple outside a model, or an empty one")
        inner = kind.items
    elif isinstance(kind, OneOf):
        if len(kind.variants) < 2:  # noqa: PLR2004
            _refuse(what, "has a union of fewer than two models")
        inner = kind.variants
    elif isinstance(kind, ModelSpec):
        _check_model(kind, what)
        inner, is_stored = tuple(each.type for each in kind.all_fields), False
    elif isinstance(kind, Record):
        inner = tuple(each.type for each in kind.record)
    else:
        inner = (kind.item if isinstance(kind, ListOf) else kind.value if isinstance(kind, DictOf) else kind.inner,)
    for each in inner:
        _check_type(each, what, is_stored=is_stored, depth=depth + 1)


def _check_model(model: ModelSpec, what: str) -> None:
    fields = model.all_fields
    names = [each.name for each in fields] + [each.alias for each in fields if each.alias is not None]
    for name in names:
        if not name.isidentifier() or name.startswith(("_", "model_")) or hasattr(Computed, name) or name == TAG:
            _refuse(what, f"has a model with the field {name!r}, which cannot be the name of one")
    if len(set(names)) < len(names):
        _refuse(what, "has a model with two fields, or aliases, of one name")
    if model.is_generic and not model.fields:
        _refuse(what, "has a generic model without a field")
    if model.is_computed and (model.base is not None or model.extra != "ignore"):
        _refuse(what, "has a model with a computed field that has a base, or could not take its own dump")


def _attempts(number: int, what: str) -> None:
    if not 1 <= number <= _MAX_ATTEMPTS:
        _refuse(what, f"has {number} attempts; it takes 1 to {_MAX_ATTEMPTS}")


def _json(text: str, what: str) -> Any:
    try:
        return to_stored(loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise SpecError(f"{what} is no JSON that can be stored (at most {MAX_DEPTH} levels): {error}.") from None
