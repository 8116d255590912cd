"""What is drawn for a pipeline before anything has a name: plain choices, each of which means something by itself.

No gene refers to another, so whatever is taken out or made simpler leaves a whole, and `grow` can make a valid pipeline
of any genes. The first of each set of choices is the simplest.

Hypothesis shrinks by making single choices simpler, and can cut a list only at its end. So a node has a choice that
takes it out (`is_there`), and a group one that puts its members one after another in its place (`is_group`): what a
failure does not need can then go from anywhere, a choice at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

from hypothesis import strategies as st

from n00dles.serialization import dumps

from .json_values import json_values
from .models import STYLES, styled
from .spec import ALWAYS
from .types import Choice, DictOf, FieldSpec, ListOf, ModelSpec, OneOf, OptionalOf, Record, TupleOf, TypeSpec

__all__ = [
    "FATAL",
    "RECOVERING",
    "Body",
    "BranchGene",
    "ChainGene",
    "Failing",
    "FanOutGene",
    "NestedGene",
    "NodeGene",
    "Router",
    "StepGene",
    "chains",
    "nodes",
]

Reads = Literal["before", "nothing", "names", "input", "default", "shadow"]
Router = Literal["text", "record", "model", "enum", "unrelated"]
Hint = Literal["none", "same", "loose"]
Body: TypeAlias = tuple[Literal["async", "sync", "model"], int]
"""What a node is made of, and how often it gives way to others."""


class Failing(NamedTuple):
    """How a node fails; `fallbacks` are those of its fallbacks, in order."""

    fails: int = 0
    retry: int | None = None
    how: Literal["raises", "mistyped", "unstorable"] = "raises"
    fallbacks: tuple[tuple[int, int | None], ...] = ()


class NodeGene(NamedTuple):
    """A node. `pick` chooses among what can be read by name, `hint` says how parameters and output are annotated."""

    is_there: bool
    output: TypeSpec
    reads: Reads
    pick: int
    hint: tuple[Hint, bool]
    body: Body
    failing: Failing
    payload: str | None
    style: Literal["plain", "upper", "dotted", "dashed"]


class FanOutGene(NamedTuple):
    """A fan-out."""

    is_group: bool
    members: list[ChainGene]
    max_concurrency: int | None


class BranchGene(NamedTuple):
    """A branch, and what chooses its route: `router` is the form of the output before it."""

    is_group: bool
    routes: list[ChainGene]
    router: Router
    has_default: bool
    shares_keys: bool


class NestedGene(NamedTuple):
    """A pipeline inside another."""

    is_group: bool
    steps: ChainGene
    is_named: bool
    retry: int | None


StepGene: TypeAlias = NodeGene | FanOutGene | BranchGene | NestedGene
ChainGene: TypeAlias = list[Any]
"""A list of `StepGene`s; lists of lists of themselves are more than a type checker follows."""

_TITLE = FieldSpec("title", "str")

# Sealed by their first field: wherever a wrong argument goes in, another text comes out.
_MODELS: tuple[TypeSpec, ...] = (
    ModelSpec((_TITLE,)),
    ModelSpec((_TITLE, FieldSpec("due", "datetime"), FieldSpec("total", "Decimal", has_default=True))),
    ModelSpec((_TITLE, FieldSpec("part", ModelSpec((FieldSpec("total", "Decimal"),))))),
    ModelSpec((_TITLE, FieldSpec("status", Choice(("draft", "done"), is_enum=True)), FieldSpec("key", "UUID"))),
    ModelSpec((FieldSpec("title", "str", alias="headLine"), FieldSpec("notes", OptionalOf("float")))),
    ModelSpec((FieldSpec("title", "str", alias="headLine"),), dumps_aliases=True),
    ModelSpec((_TITLE, FieldSpec("total", "int")), is_computed=True),
    ModelSpec((FieldSpec("title", ListOf("str")), FieldSpec("notes", "date")), is_generic=True),
    ModelSpec((FieldSpec("total", "timedelta"),), base=ModelSpec((_TITLE,))),
    ModelSpec((_TITLE, FieldSpec("notes", DictOf("Any"))), extra="allow"),
    ModelSpec((_TITLE, FieldSpec("due", "time", has_default=True)), extra="forbid"),
    ModelSpec((_TITLE, FieldSpec("part", OneOf((ModelSpec((_TITLE,)), ModelSpec((FieldSpec("total", "int"),))))))),
    ModelSpec((_TITLE, FieldSpec("parts", TupleOf(("Decimal", "bool"))))),
)


_FIELD_TYPES: tuple[TypeSpec, ...] = (
    *("int", "float", "bool", "Any", "Decimal", "UUID", "datetime", "date", "time", "timedelta"),
)


def _sealed(drawn: tuple[list[TypeSpec], str]) -> ModelSpec:
    kinds, style = drawn
    names = ("total", "due", "notes")
    return styled((_TITLE, *(FieldSpec(name, kind) for name, kind in zip(names, kinds, strict=False))), style)


_FRESH_MODELS = st.tuples(st.lists(st.sampled_from(_FIELD_TYPES), max_size=3), STYLES).map(_sealed)

_JSON_TYPES: tuple[TypeSpec, ...] = (
    "str",
    "str",
    "str",
    "Any",
    "Any",
    "int",
    ListOf("str"),
    DictOf("int"),
    Record((FieldSpec("total", "float"), FieldSpec("facts", ListOf("int")))),
    "None",
    OptionalOf("str"),
    "bool",
)
_MODEL_TYPES: tuple[TypeSpec, ...] = (
    *_MODELS,
    *_MODELS[:4],
    ListOf(_MODELS[1]),
    DictOf(_MODELS[0]),
    OptionalOf(_MODELS[3]),
    OneOf((ModelSpec((_TITLE,)), ModelSpec((_TITLE, FieldSpec("due", "date"))))),
)
_OUTPUTS: st.SearchStrategy[TypeSpec] = st.one_of(
    st.sampled_from(_JSON_TYPES), st.sampled_from(_JSON_TYPES), st.sampled_from(_MODEL_TYPES), _FRESH_MODELS
)


def _payload(value: Any) -> str | None:
    return None if value is None else dumps(value)


_KNOWN_PAYLOADS: st.SearchStrategy[str | None] = st.sampled_from(
    (
        *(None,) * 8,
        "[-0.0, 1e308, 5e-324, 1.0, 1]",
        "[9007199254740993, 18446744073709551616, -10000000000000000000000000000000000000000]",
        '"\\u0000\\ufeff\\u2028 e\\u0301 \\ud83e\\udde8"',
        '{"": {"category": null}, "a.b": [], "$type": {}, "__proto__": [[]]}',
        "[" * 60 + "]" * 60,
    )
)
_PAYLOADS = st.one_of(*[_KNOWN_PAYLOADS] * 7, json_values(max_depth=3, max_leaves=4).map(_payload))

_READS: tuple[Reads, ...] = (*("before",) * 9, "nothing", *("names",) * 5, "input", "input", "default", "shadow")
_HINTS: tuple[tuple[Hint, bool], ...] = (
    *(("none", False), ("none", True), ("same", False), ("same", True)),
    *(("same", False), ("same", True), ("loose", False), ("loose", True)),
)
_BODIES: tuple[Body, ...] = (
    *((("async", 0),) * 4),
    ("async", 1),
    ("async", 2),
    ("async", 5),
    ("sync", 0),
    ("sync", 0),
    ("model", 0),
)

_NO_FAILURE = Failing()
RECOVERING = (
    Failing(1, 2),
    Failing(2, 3),
    Failing(1, 2, "mistyped"),
    Failing(1, 1, fallbacks=((0, None),)),
    Failing(ALWAYS, 2, fallbacks=((0, None),)),
    Failing(ALWAYS, None, fallbacks=((1, 2),)),
    Failing(2, None, "mistyped", ((ALWAYS, None), (0, None))),
)
_HARMLESS = (Failing(0, 2), Failing(0, 1, fallbacks=((0, None),)))
FATAL = (
    Failing(ALWAYS, 1),
    Failing(ALWAYS, 2),
    Failing(2, 2),
    Failing(1),
    Failing(ALWAYS, 2, "mistyped"),
    Failing(ALWAYS, 3, "unstorable"),
    Failing(1, 1, "unstorable", ((0, None),)),
    Failing(ALWAYS, 1, fallbacks=((ALWAYS, 2),)),
)
# Few pipelines have the room for an unrelated one, so it is drawn more often.
_ROUTERS: tuple[Router, ...] = ("text", "record", "model", "enum", *("unrelated",) * 5)
_STYLES = (*("plain",) * 12, "upper", "dotted", "dashed")


_IS_THERE = st.sampled_from((False, *(True,) * 9))


def nodes(
    fatal: bool, *, bodies: Sequence[Body] | None = None, failings: Sequence[Failing] | None = None
) -> st.SearchStrategy[StepGene]:
    """Draw the genes of a single node, which may be one that fails for good if `fatal`.

    `bodies` and `failings` are to be drawn from, instead of from all that there are.
    """
    usual = (*(_NO_FAILURE,) * 20, *RECOVERING, *_HARMLESS, *(FATAL if fatal else ()))
    drawn = st.tuples(
        _IS_THERE,
        _OUTPUTS,
        st.sampled_from(_READS),
        st.integers(0, 63),
        st.sampled_from(_HINTS),
        st.sampled_from(bodies or _BODIES),
        st.sampled_from(failings or usual),
        _PAYLOADS,
        st.sampled_from(_STYLES),
    )
    return drawn.map(lambda values: NodeGene(*values))


def _groups(chain: st.SearchStrategy[ChainGene]) -> list[st.SearchStrategy[StepGene]]:
    fan_outs: st.SearchStrategy[StepGene] = st.tuples(
        _IS_THERE, st.lists(chain, min_size=2, max_size=3), st.sampled_from((None, None, 1, 2))
    ).map(lambda values: FanOutGene(*values))
    branches: st.SearchStrategy[StepGene] = st.tuples(
        _IS_THERE,
        st.lists(chain, min_size=1, max_size=3),
        st.sampled_from(_ROUTERS),
        st.booleans(),
        st.booleans(),
    ).map(lambda values: BranchGene(*values))
    nested: st.SearchStrategy[StepGene] = st.tuples(
        _IS_THERE, chain, st.booleans(), st.sampled_from((None, 1, 2, 3))
    ).map(lambda values: NestedGene(*values))
    return [fan_outs, branches, nested]


@cache
def chains(fatal: bool) -> st.SearchStrategy[ChainGene]:
    """Draw the genes of a whole pipeline; `fatal` ones among them if some nodes may fail for good."""
    node = nodes(fatal)
    single = node.map(lambda each: [each])
    leaf: st.SearchStrategy[ChainGene] = st.one_of(single, single, single, st.lists(node, min_size=1, max_size=2))
    inner_groups = _groups(leaf)
    # A group inside a group is rarer than a node by as much as it is bigger.
    inner: st.SearchStrategy[ChainGene] = st.one_of(
        leaf, leaf, leaf, leaf, leaf, st.lists(st.one_of(node, node, *inner_groups), min_size=1, max_size=2)
    )
    step = st.one_of(node, node, node, *_groups(inner))
    return st.lists(step, min_size=1, max_size=3)
