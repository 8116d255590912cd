"""What a step of a generated pipeline can read, and of which type it is.

Drawing looks here to give each parameter a source, checking to see that it has the one that it claims.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .spec import BranchSpec, FanOutSpec, NestedSpec, NodeSpec, ParameterSpec, Source, StepSpec, step_name
from .types import FieldSpec, Record, TypeSpec

__all__ = ["Scope", "output_type"]


@dataclass
class Scope:
    """The names of outputs that are complete when a step begins, those that may be, and the output right before it.

    `group` are the members of a fan-out that ends right before.
    """

    certain: dict[str, TypeSpec] = field(default_factory=dict)
    possible: dict[str, TypeSpec] = field(default_factory=dict)
    previous: TypeSpec | None = None
    group: frozenset[str] = frozenset()

    def inner(self) -> Scope:
        """Return a copy for what runs inside a step."""
        return Scope(dict(self.certain), dict(self.possible), self.previous, self.group)

    def passed(self, step: StepSpec) -> None:
        """Move behind `step`."""
        certain, possible = _given(step)
        self.certain |= certain
        self.possible |= possible
        self.previous = output_type(step)
        self.group = frozenset(map(step_name, step.members)) if isinstance(step, FanOutSpec) else frozenset()

    def source(self, parameter: ParameterSpec, is_only: bool, inputs: frozenset[str]) -> Source | None:
        """Return where the argument of `parameter` comes from; None if from nowhere."""
        name, has_default = parameter.name, parameter.default is not None
        if is_only and self.previous is not None and name not in self.group:
            return "previous"
        if name in self.certain:
            return "step"
        if name in self.possible:
            return "maybe" if has_default else None
        if name in inputs:
            return "input"
        return "default" if has_default else None


def output_type(step: StepSpec) -> TypeSpec:
    """Return the type of a step's output."""
    if isinstance(step, NodeSpec):
        return step.output
    if isinstance(step, FanOutSpec):
        return Record(tuple(FieldSpec(step_name(member), output_type(member)) for member in step.members))
    if isinstance(step, NestedSpec):
        return output_type(step.steps[-1])
    kinds = [output_type(route) for route in step.steps]
    return kinds[0] if all(kind == kinds[0] for kind in kinds) else "Any"


def _given(step: StepSpec) -> tuple[dict[str, TypeSpec], dict[str, TypeSpec]]:
    """Return the outputs that can be read by name behind `step`: those that are certain, those that are possible."""
    certain: dict[str, TypeSpec] = {}
    possible: dict[str, TypeSpec] = {}
    if isinstance(step, NodeSpec):
        certain[step.name] = step.output
    elif isinstance(step, BranchSpec):
        for route in step.steps:
            inner_certain, inner_possible = _given(route)
            possible |= inner_certain | inner_possible
    else:
        for child in step.members if isinstance(step, FanOutSpec) else step.steps:
            inner_certain, inner_possible = _given(child)
            certain |= inner_certain
            possible |= inner_possible
        if isinstance(step, FanOutSpec):
            certain |= {step_name(member): output_type(member) for member in step.members}
        elif step.name is not None:
            certain[step.name] = output_type(step)
    return certain, possible
