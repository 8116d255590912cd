"""A spec as short text for a person: its shape in one line, and what its nodes do in one line each.

pipeline(a >> (b | c) >> branch(x=d, default=e), retry=2)
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from .spec import ALWAYS, BranchSpec, FanOutSpec, NestedSpec, NodeSpec, ParameterSpec, PipelineSpec, StepSpec
from .types import Choice, DictOf, ListOf, ModelSpec, OneOf, OptionalOf, Record, TupleOf, TypeSpec

__all__ = ["describe", "describe_node", "describe_type"]


def describe(spec: PipelineSpec, *, nodes: bool = False) -> str:
    """Return the pipeline as Python-like text; with `nodes`, followed by a line for each node, and the inputs."""
    settings = [f"retry={spec.retry}"] if spec.retry > 1 else []
    shape = f"pipeline({', '.join([_chain(spec.steps), *settings])})"
    if not nodes:
        return shape
    lines = [describe_node(each) for node in spec.nodes() for each in _with_fallbacks(node)]
    lines += [f"input {each.name} = {each.value}" for each in spec.inputs]
    return "\n".join([shape, *(f"  {line}" for line in lines)])


def describe_node(node: NodeSpec) -> str:
    """Return one node as Python-like text: `async def b(a: Model(title: str)) -> str: fails 1, retry=2`."""
    kind = "model" if node.is_model else "def" if node.is_sync else "async def"
    returns = describe_type(node.output)
    arrow = f" -> {returns}" if node.is_annotated else f" -> ? ({returns})"
    facts = []
    if node.fails:
        facts.append("always fails" if node.fails == ALWAYS else f"fails {node.fails}")
        facts += [] if node.failure == "raises" else [f"by an output that is {node.failure}"]
    facts += [f"retry={node.retry}"] if node.retry is not None else []
    facts += [f"fallback={node.fallback.name}"] if node.fallback is not None else []
    facts += [f"pauses {node.pauses}"] if node.pauses else []
    facts += [f"payload={node.payload}"] if node.payload is not None else []
    signature = f"{kind} {node.name}({', '.join(map(_parameter, node.parameters))}){arrow}"
    return f"{signature}: {', '.join(facts)}" if facts else signature


def describe_type(kind: TypeSpec) -> str:  # noqa: PLR0911 - one a kind of type
    """Return a type as Python-like text."""
    if isinstance(kind, str):
        return kind
    if isinstance(kind, Choice):
        return f"{'Enum' if kind.is_enum else 'Literal'}[{', '.join(map(json.dumps, kind.choices))}]"
    if isinstance(kind, ListOf):
        return f"list[{describe_type(kind.item)}]"
    if isinstance(kind, TupleOf):
        return f"tuple[{', '.join(map(describe_type, kind.items))}]"
    if isinstance(kind, DictOf):
        return f"dict[str, {describe_type(kind.value)}]"
    if isinstance(kind, OptionalOf):
        return f"{describe_type(kind.inner)} | None"
    if isinstance(kind, OneOf):
        return " | ".join(map(describe_type, kind.variants))
    if isinstance(kind, Record):
        return f"{{{', '.join(f'{each.name}: {describe_type(each.type)}' for each in kind.record)}}}"
    return _model(kind)


def _model(model: ModelSpec) -> str:
    parts = []
    for index, each in enumerate(model.all_fields):
        name = each.name if each.alias is None else f"{each.name} as {each.alias}"
        kind = f"T={describe_type(each.type)}" if model.is_generic and index == 0 else describe_type(each.type)
        parts.append(f"{name}: {kind}{' = …' if each.has_default else ''}")
    parts += ["computed"] if model.is_computed else []
    parts += [f"extra={model.extra}"] if model.extra != "ignore" else []
    return f"Model({', '.join(parts)})"


def _parameter(spec: ParameterSpec) -> str:
    declared = "" if spec.type is None else f": {describe_type(spec.type)}"
    default = "" if spec.default is None else f" = {spec.default}"
    source = "" if spec.source in ("previous", "step") else f" [{spec.source}]"
    return f"{spec.name}{declared}{default}{source}"


def _chain(steps: tuple[StepSpec, ...]) -> str:
    return " >> ".join(map(_step, steps))


def _step(step: StepSpec) -> str:
    if isinstance(step, NodeSpec):
        return step.name
    if isinstance(step, FanOutSpec):
        if step.max_concurrency is None:
            return f"({' | '.join(map(_step, step.members))})"
        return f"parallel({', '.join([*map(_step, step.members), f'max_concurrency={step.max_concurrency}'])})"
    if isinstance(step, BranchSpec):
        routes = [f"{key}={_step(route.step)}" for route in step.routes for key in route.keys]
        return f"branch({', '.join([*routes, *([] if step.default is None else [f'default={_step(step.default)}'])])})"
    assert isinstance(step, NestedSpec)
    settings = [f"name={step.name!r}"] if step.name is not None else []
    settings += [f"retry={step.retry}"] if step.retry is not None else []
    chain = _chain(step.steps)
    return f"pipeline({', '.join([chain, *settings])})" if settings else f"({chain})"


def _with_fallbacks(node: NodeSpec) -> Iterator[NodeSpec]:
    each: NodeSpec | None = node
    while each is not None:
        yield each
        each = each.fallback
