"""One state that a run may be in, for the model: a record, as far as it is settled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..records import Record

__all__ = ["Possible", "State", "Value", "canonical", "difference_from"]

Value = str
"""A value as one text, which only the same value has: 1, 1.0 and true are three."""

Options = tuple[tuple[str, frozenset[Value]], ...]


@dataclass(frozen=True, slots=True)
class State:
    """A run that is there.

    `life` counts the runs of one id, `version` the saves. It has one of its `inputs`. `nodes` are there, each with one
    of its outputs; `maybe` may be there as well. They have completed in this order if it `is_ordered`, else in any.
    """

    life: int
    version: int
    inputs: frozenset[Value]
    nodes: Options = ()
    maybe: Options = ()
    is_ordered: bool = True

    @classmethod
    def exactly(cls, life: int, version: int, record: Record) -> State:
        """Return the state in which a run is this record, and no other."""
        nodes = tuple((node, frozenset({canonical(record.completed[node])})) for node in record.order)
        return cls(life, version, frozenset({canonical(record.inputs)}), nodes)

    def continued(self, completed: Mapping[str, Value], version: int) -> State:
        """Return it with the nodes that its own worker has completed since."""
        known = dict(self.nodes)
        fresh = tuple((node, frozenset({value})) for node, value in completed.items() if node not in known)
        return State(self.life, version, self.inputs, self.nodes + fresh)

    def merged(self, inputs: Value, must: Mapping[str, Value], maybe: Mapping[str, Value], version: int) -> State:
        """Return it with what another worker has: of a node that both have completed, either output is right.

        So it is with the inputs, which differ only if the worker belongs to another run of the same id.
        """
        nodes, perhaps = dict(self.nodes), dict(self.maybe)
        for node, value in must.items():
            nodes[node] = nodes.get(node, perhaps.pop(node, frozenset())) | {value}
        for node, value in maybe.items():
            into = nodes if node in nodes else perhaps
            into[node] = into.get(node, frozenset()) | {value}
        return State(self.life, version, self.inputs | {inputs}, _sorted(nodes), _sorted(perhaps), is_ordered=False)

    def record_like(self, came: Record) -> Record:
        """Return a record that is allowed, and as far as possible the one that came."""
        choices = {**{node: values for node, values in self.maybe if node in came.completed}, **dict(self.nodes)}
        completed = {node: _choice(values, came.completed.get(node)) for node, values in choices.items()}
        order = list(completed)
        if not self.is_ordered or self.maybe:
            order = [*(node for node in dict.fromkeys(came.order) if node in completed)]
            order += [node for node in completed if node not in order]
        return Record(_choice(self.inputs, came.inputs), completed, tuple(order))


Possible = State | None
"""None: the run is not there."""


def canonical(value: Any) -> Value:
    """Return the one text of a value. What is not plain JSON has a text that no JSON value has."""
    if value is None or type(value) in (bool, int, str):
        return json.dumps(value)
    if type(value) is float:
        return repr(value)
    if type(value) is list:
        return f"[{','.join(canonical(part) for part in value)}]"
    if type(value) is dict and all(type(key) is str for key in value):
        return f"{{{','.join(f'{json.dumps(key)}:{canonical(value[key])}' for key in sorted(value))}}}"
    return f"<{type(value).__name__} {value!r}>"


def difference_from(state: State, came: Record) -> str | None:
    """Return None if `came` is what a run in this state is, else a word for what is not."""
    if canonical(came.inputs) not in state.inputs:
        return "inputs"
    if len(set(came.order)) != len(came.order) or set(came.order) != set(came.completed):
        return "order"
    must, maybe = dict(state.nodes), dict(state.maybe)
    if not must.keys() <= came.completed.keys() <= must.keys() | maybe.keys():
        return "nodes"
    if any(canonical(output) not in (must.get(node) or maybe[node]) for node, output in came.completed.items()):
        return "outputs"
    if state.is_ordered and not maybe and list(came.order) != list(must):
        return "order"
    return None


def _sorted(nodes: Mapping[str, frozenset[Value]]) -> Options:
    return tuple(sorted(nodes.items(), key=lambda item: item[0]))


def _choice(values: frozenset[Value], came: Any) -> Any:
    wanted = canonical(came)
    return json.loads(wanted if wanted in values else min(values))
