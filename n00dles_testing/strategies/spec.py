"""A pipeline as data: what `pipelines()` draws, what `build` makes a real pipeline of, and what a token carries.

    PipelineSpec((
        NodeSpec("a", output="str", fails=1, retry=2),
        NodeSpec("b", output="Any", parameters=(ParameterSpec("text", "previous"),)),
    ))

Everything is immutable, hashable and JSON (see `codec`). A value inside a spec is JSON text, so that it is exact.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Discriminator, Tag

from .types import STRICT, TypeSpec

__all__ = [
    "ALWAYS",
    "BranchSpec",
    "FanOutSpec",
    "InputSpec",
    "NestedSpec",
    "NodeSpec",
    "ParameterSpec",
    "PipelineSpec",
    "RouteSpec",
    "Source",
    "StepSpec",
    "nodes_of",
    "step_name",
]

ALWAYS = -1
"""As `NodeSpec.fails`: every attempt fails."""

Source = Literal["previous", "step", "maybe", "input", "default"]
"""Where an argument comes from.

The output before, the completed step of that name, the step of that name if the route that it is on was taken, the
input of that name, or the parameter's own default.
"""

_LISTED_IN_A_NAME = 4


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """A parameter of a node: `type` is its annotation (None: it has none), `default` is JSON text (None: required)."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: str
    source: Source
    type: TypeSpec | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """An agent, and how it behaves.

    Its output is of the type `output`, and follows from its name and a digest of its arguments. `payload` is JSON text
    that is put into an output that can hold it. The first `fails` attempts fail, as counted over all lives (or
    `ALWAYS`), in the way that `failure` names: the body raises, or returns what its declared type does not take, or
    what cannot be stored (which is never retried). `retry` is a number of attempts. A `fallback` gives the same output
    as the node itself. An async body gives way to others `pauses` times. With `is_model` a provider in this process
    answers, in place of a body.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: str
    output: TypeSpec
    parameters: tuple[ParameterSpec, ...] = ()
    is_annotated: bool = False
    is_sync: bool = False
    is_model: bool = False
    pauses: int = 0
    payload: str | None = None
    fails: int = 0
    failure: Literal["raises", "mistyped", "unstorable"] = "raises"
    retry: int | None = None
    fallback: NodeSpec | None = None


@dataclass(frozen=True, slots=True)
class FanOutSpec:
    """`parallel(*members, max_concurrency=…)`."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    members: tuple[StepSpec, ...]
    max_concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """One step of a branch and the keys that lead to it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    keys: tuple[str, ...]
    step: StepSpec


@dataclass(frozen=True, slots=True)
class BranchSpec:
    """`branch(key=step, …, default=…)`."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    routes: tuple[RouteSpec, ...]
    default: StepSpec | None = None

    @property
    def steps(self) -> tuple[StepSpec, ...]:
        """The steps, of which a run takes one."""
        return tuple(route.step for route in self.routes) + (() if self.default is None else (self.default,))


@dataclass(frozen=True, slots=True)
class NestedSpec:
    """A pipeline inside another: a step of its chain (then it has a name or a retry), a member, or a route."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    steps: tuple[StepSpec, ...]
    name: str | None = None
    retry: int | None = None


@dataclass(frozen=True, slots=True)
class InputSpec:
    """An input of the run: its name and its value as JSON text."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: str
    value: str


@dataclass(frozen=True, slots=True, repr=False)
class PipelineSpec:
    """A whole pipeline and the inputs of its run. Its `repr` is a line that makes it again, on any machine."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    steps: tuple[StepSpec, ...]
    inputs: tuple[InputSpec, ...] = ()
    retry: int = 1
    name: str = field(default="generated")

    def __repr__(self) -> str:
        from .codec import to_token
        from .describe import describe

        return f"from_token({to_token(self)!r}, {describe(self)!r})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Have hypothesis print the line, and not every field."""
        printer.text(repr(self))

    def input_values(self) -> dict[str, Any]:
        """Return the inputs of the run, fresh: `run(build(spec), **spec.input_values())`."""
        return {each.name: json.loads(each.value) for each in self.inputs}

    def nodes(self) -> tuple[NodeSpec, ...]:
        """Return all nodes in order of appearance, without fallbacks."""
        return tuple(node for step in self.steps for node in nodes_of(step))


def nodes_of(step: StepSpec) -> Iterator[NodeSpec]:
    """Yield the nodes of a step in order of appearance, without fallbacks."""
    if isinstance(step, NodeSpec):
        yield step
        return
    for child in step.members if isinstance(step, FanOutSpec) else step.steps:
        yield from nodes_of(child)


def step_name(step: StepSpec) -> str:
    """Return the name that n00dles gives to a step."""
    if isinstance(step, FanOutSpec):
        return f"parallel[{','.join(map(step_name, step.members))}]"
    if isinstance(step, BranchSpec):
        return f"branch[{','.join(key for route in step.routes for key in route.keys)}]"
    if step.name is not None:
        return step.name
    names = [node.name for node in nodes_of(step)]
    return "_".join(names) if len(names) <= _LISTED_IN_A_NAME else f"{names[0]}_to_{names[-1]}"


_BY_KEY = {"output": "NodeSpec", "members": "FanOutSpec", "routes": "BranchSpec", "steps": "NestedSpec"}


def _kind(spec: Any) -> str | None:
    if isinstance(spec, dict):
        return next((kind for key, kind in _BY_KEY.items() if key in spec), None)
    return type(spec).__name__


StepSpec: TypeAlias = Annotated[
    Annotated[NodeSpec, Tag("NodeSpec")]
    | Annotated[FanOutSpec, Tag("FanOutSpec")]
    | Annotated[BranchSpec, Tag("BranchSpec")]
    | Annotated[NestedSpec, Tag("NestedSpec")],
    Discriminator(_kind),
]
"""Any step. In JSON each is told by the key that only it has."""
