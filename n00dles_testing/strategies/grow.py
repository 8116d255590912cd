"""From genes to a spec: names are given in order, and each parameter gets a source that is there.

Whatever the genes say, a valid spec comes out; where a gene asks for something that is not to be had (an output by name
where there is none), it gets the nearest thing that is.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import replace

from n00dles.serialization import dumps

from .check import can_be_mistyped, route_keys
from .genes import BranchGene, ChainGene, FanOutGene, NestedGene, NodeGene, StepGene
from .model_values import json_form, value_from
from .scope import Scope
from .spec import (
    BranchSpec,
    FanOutSpec,
    InputSpec,
    NestedSpec,
    NodeSpec,
    ParameterSpec,
    PipelineSpec,
    RouteSpec,
    StepSpec,
)
from .types import Choice, DictOf, FieldSpec, ModelSpec, OneOf, Record, TypeSpec

__all__ = ["grow"]

_INPUT_TYPES: tuple[TypeSpec, ...] = ("str", "Any", ModelSpec((FieldSpec("title", "str"), FieldSpec("due", "date"))))
_DEFAULTS = ("null", '"usual"', "[1, 1.0]")
_MOST_PARAMETERS = 3


def grow(genes: ChainGene, max_nodes: int, retry: int) -> PipelineSpec:
    """Return the spec that `genes` stand for, cut to `max_nodes` nodes."""
    grower = _Grower(max_nodes)
    steps = grower.chain(_present(genes) or [_first_node(genes)], Scope())
    inputs = [InputSpec(name, value) for name, (_, value) in sorted(grower.inputs.items())]
    return PipelineSpec(steps, tuple(inputs), retry)


class _Grower:
    def __init__(self, max_nodes: int) -> None:
        self.inputs: dict[str, tuple[TypeSpec, str]] = {}
        self._left = max_nodes
        self._names: list[str] = []
        self._branches = 0
        self._nested = 0

    def chain(self, genes: ChainGene, scope: Scope, *, room: int = 0) -> tuple[StepSpec, ...]:
        """Grow a chain of at least one step that leaves `room` nodes to others."""
        steps: list[StepSpec] = []
        for index, gene in enumerate(genes):
            if steps and self._left - room < 1:
                break
            following = genes[index + 1] if index + 1 < len(genes) else None
            for step in self._step(gene, following, scope, room):
                steps.append(step)
                scope.passed(step)
        return tuple(steps)

    def _step(self, gene: StepGene, following: StepGene | None, scope: Scope, room: int) -> list[StepSpec]:
        """Grow one step, and the router before it if it is a branch that has none."""
        if isinstance(gene, NodeGene):
            router: TypeSpec | None = None
            if isinstance(following, BranchGene) and following.router != "unrelated" and self._left - room > 1:
                router = _router(following, self._branches)
            return [self._node(gene, scope, router)]
        if isinstance(gene, FanOutGene) and self._left - room >= 2:  # noqa: PLR2004
            return [self._fan_out(gene, scope, room)]
        if isinstance(gene, BranchGene):
            return self._branch(gene, scope, room)
        if isinstance(gene, NestedGene):
            return [self._nested_step(gene, scope, room)]
        return list(self.chain(gene.members[0], scope.inner(), room=room))[:1]

    def _fan_out(self, gene: FanOutGene, scope: Scope, room: int) -> FanOutSpec:
        members: list[StepSpec] = []
        for index, genes in enumerate(gene.members):
            if len(members) >= 2 and self._left - room < 1:  # noqa: PLR2004
                break
            needed = 1 if index == 0 else 0
            members.append(self._inside(genes, scope, room + needed))
        return FanOutSpec(tuple(members), gene.max_concurrency)

    def _branch(self, gene: BranchGene, scope: Scope, room: int) -> list[StepSpec]:
        before: list[StepSpec] = []
        keys = _keys(gene, self._branches)
        is_settled = scope.previous is not None and route_keys(scope.previous) == frozenset(keys)
        may_be_unrelated = gene.router == "unrelated" and self._has_default(gene, room) and scope.previous is not None
        if not is_settled and not may_be_unrelated:
            if self._left - room < 2:  # noqa: PLR2004 - a router and a route
                return [self._node(_first_node(gene.routes[0]), scope, None)]
            before = [self._node(_first_node(gene.routes[0]), scope, _router(gene, self._branches))]
            scope = scope.inner()
            scope.passed(before[0])
        has_default = self._has_default(gene, room)
        self._branches += 1
        steps: list[StepSpec] = []
        for genes in gene.routes:
            needed = 1 if has_default and not steps else 0
            if not steps or self._left - room > 0:
                steps.append(self._inside(genes, scope, room + needed))
        default = steps.pop() if has_default else None
        routes = [RouteSpec((key,), step) for key, step in zip(keys, steps, strict=False)]
        if default is None or gene.shares_keys:
            # Keys without a route of their own lead where the last one does; otherwise they lead to the default.
            rest = tuple(keys[len(steps) : None if default is None else len(steps) + 1])
            routes[-1] = RouteSpec((*routes[-1].keys, *rest), routes[-1].step)
        return [*before, BranchSpec(tuple(routes), default)]

    def _has_default(self, gene: BranchGene, room: int) -> bool:
        wants = gene.has_default or gene.router == "unrelated"
        return wants and len(gene.routes) > 1 and self._left - room > 1

    def _nested_step(self, gene: NestedGene, scope: Scope, room: int) -> NestedSpec:
        steps = self.chain(gene.steps, scope.inner(), room=room)
        name = None
        # A single node in a pipeline without a name would share its name with it.
        if gene.is_named or gene.retry is None or len(steps) == 1:
            self._nested += 1
            name = f"part{self._nested}"
        return NestedSpec(steps, name, gene.retry)

    def _inside(self, genes: ChainGene, scope: Scope, room: int) -> StepSpec:
        """Grow a member or a route: a step, or a chain of them as a pipeline."""
        steps = self.chain(genes, scope.inner(), room=room)
        return steps[0] if len(steps) == 1 else NestedSpec(steps)

    def _node(self, gene: NodeGene, scope: Scope, router: TypeSpec | None) -> NodeSpec:
        name = self._name(gene)
        self._left -= 1
        kind, pauses = gene.body
        output = router if router is not None else gene.output
        node = NodeSpec(
            name,
            output,
            parameters=self._parameters(gene, scope, name),
            is_annotated=gene.hint[1],
            is_sync=kind == "sync",
            is_model=kind == "model",
            pauses=pauses,
            payload=gene.payload if _takes_payload(output) else None,
        )
        return _failing(node, gene)

    def _name(self, gene: NodeGene) -> str:
        letter = string.ascii_lowercase[len(self._names) % 26] + str(len(self._names) // 26 or "")
        name = letter
        if gene.style == "upper" and self._names and self._names[-1].upper() not in self._names:
            name = self._names[-1].upper()
        elif gene.style in ("dotted", "dashed"):
            name = f"{letter}{'.' if gene.style == 'dotted' else '-'}1"
        self._names.append(name)
        return name

    def _parameters(self, gene: NodeGene, scope: Scope, own: str) -> tuple[ParameterSpec, ...]:
        names = self._readable(gene, scope)
        begins_with_nothing = scope.previous is None and gene.reads == "before" and gene.pick % 4 == 2  # noqa: PLR2004
        if not names and gene.reads != "nothing" and not begins_with_nothing:
            names = ["text"] if scope.previous is not None and gene.reads == "before" else [f"x{gene.pick % 3 or ''}"]
        if len(names) == 1 and scope.previous is not None and names[0] not in scope.group and gene.reads != "before":
            # A single parameter would get the output before, whatever its name.
            names.append("limit" if names[0] != "limit" else "x")
        is_only = len(names) == 1
        parameters = [self._parameter(each, index, gene, scope, is_only) for index, each in enumerate(names)]
        return tuple(parameters)

    def _readable(self, gene: NodeGene, scope: Scope) -> list[str]:
        """Return the names that the parameters get, as the gene wishes; those of siblings shadow nothing yet."""
        readable = [each for each in (*scope.certain, *scope.possible) if each.isidentifier()]
        if gene.reads == "before" and scope.previous is not None:
            if scope.group and gene.pick % 2 == 0:
                members = [each for each in readable if each in scope.group]
                return members[:_MOST_PARAMETERS]
            # The name of an older output is no reason not to get the one before.
            traps = [each for each in readable if each not in scope.group and gene.pick % 8 == 7]  # noqa: PLR2004
            return traps[:1]
        if gene.reads == "names" and readable:
            # What lies on a route that may not have been taken is rare, and wanted.
            start = len(scope.certain) if scope.possible and gene.pick % 2 else gene.pick % len(readable)
            chosen = [*readable[start:], *readable[:start]][: 1 + gene.pick % _MOST_PARAMETERS]
            return [*chosen, *(["x"] if gene.pick % 5 == 0 else [])]
        if gene.reads == "default":
            return ["limit", *(["x"] if gene.pick % 2 else [])]
        if gene.reads == "shadow":
            following = string.ascii_lowercase[(len(self._names)) % 26]
            hidden = [each for each in [*self._names, following] if each.isidentifier() and each not in readable]
            return [hidden[gene.pick % len(hidden)]] if hidden else []
        return []

    def _parameter(self, name: str, index: int, gene: NodeGene, scope: Scope, is_only: bool) -> ParameterSpec:
        hint = gene.hint[0] if (gene.pick >> index) % 2 == 0 else "none"
        if is_only and scope.previous is not None and name not in scope.group:
            return ParameterSpec(name, "previous", _hinted(scope.previous, hint))
        if name in scope.certain:
            return ParameterSpec(name, "step", _hinted(scope.certain[name], hint))
        if name in scope.possible:
            return ParameterSpec(name, "maybe", _hinted(scope.possible[name], hint), "null")
        if name == "limit":
            return ParameterSpec(name, "default", None, _DEFAULTS[gene.pick % len(_DEFAULTS)])
        if name not in self.inputs:
            kind = _INPUT_TYPES[gene.pick % len(_INPUT_TYPES)]
            self.inputs[name] = kind, dumps(json_form(value_from(kind, f"input {name}")))
        default = "null" if gene.pick % 4 == 3 else None  # noqa: PLR2004
        return ParameterSpec(name, "input", _hinted(self.inputs[name][0], hint), default)


def _present(genes: ChainGene) -> ChainGene:
    """Return the genes without nodes that are not there, and with the members of dissolved groups in place of them."""
    present: ChainGene = []
    for gene in genes:
        if isinstance(gene, NodeGene):
            present += [gene] if gene.is_there else []
            continue
        chains = [chain for each in _chains(gene) if (chain := _present(each))]
        if not gene.is_group or len(chains) < (2 if isinstance(gene, FanOutGene) else 1):
            present += [each for chain in chains for each in chain]
        elif isinstance(gene, FanOutGene):
            present.append(gene._replace(members=chains))
        elif isinstance(gene, BranchGene):
            present.append(gene._replace(routes=chains))
        else:
            present.append(gene._replace(steps=chains[0]))
    return present


def _chains(gene: FanOutGene | BranchGene | NestedGene) -> list[ChainGene]:
    if isinstance(gene, NestedGene):
        return [gene.steps]
    return gene.members if isinstance(gene, FanOutGene) else gene.routes


def _failing(node: NodeSpec, gene: NodeGene) -> NodeSpec:
    failing = gene.failing
    how = failing.how
    if (how == "mistyped" and not can_be_mistyped(node)) or (how == "unstorable" and node.is_model):
        how = "raises"
    fallback: NodeSpec | None = None
    for index, (fails, retry) in reversed(list(enumerate(failing.fallbacks, start=1))):
        plain = replace(node, name=f"{node.name}_or{index if index > 1 else ''}", is_sync=False)
        fallback = replace(plain, fails=fails, retry=retry, fallback=fallback, pauses=0)
    return replace(node, fails=failing.fails, failure=how, retry=failing.retry, fallback=fallback)


def _hinted(kind: TypeSpec, hint: str) -> TypeSpec | None:
    if hint == "none":
        return None
    if hint == "same":
        return kind
    return DictOf("Any") if isinstance(kind, ModelSpec | Record | OneOf | DictOf) else "Any"


def _takes_payload(kind: TypeSpec) -> bool:
    return kind in ("str", "Any") or isinstance(kind, Record)


def _keys(gene: BranchGene, number: int) -> Sequence[str]:
    """Return the keys of a branch, which no other branch has: one a route, and one more if a route has two."""
    wanted = len(gene.routes) + (1 if gene.shares_keys else 0)
    return [f"{letter}{number or ''}" for letter in "xyzu"[:wanted]]


def _router(gene: BranchGene, number: int) -> TypeSpec:
    """Return the type of an output that sends a run through the branch of `gene`."""
    choice = Choice(tuple(_keys(gene, number)))
    if gene.router == "text":
        return choice
    if gene.router in ("record", "unrelated"):
        return Record((FieldSpec("category", choice),))
    return ModelSpec((FieldSpec("title", "str"), FieldSpec("category", replace(choice, is_enum=gene.router == "enum"))))


def _first_node(genes: ChainGene) -> NodeGene:
    """Return the first node among genes, to be what a branch lacks before it."""
    gene: StepGene = genes[0]
    while not isinstance(gene, NodeGene):
        gene = _chains(gene)[0][0]
    return gene
