"""A sequence of operations as plain data, so that it can be played again anywhere, without what has drawn it.

An operation is a dict: what to do, and to what. Runs, workers (handles of a run that a load has given) and inputs are
named by small numbers, so every sequence can be played, and any part of it left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from n00dles.errors import SerializationError
from n00dles.serialization import to_stored

from ...corpus import KEPT
from ..ids import groups_of_ids
from ..records import show

__all__ = ["INPUTS", "RUNS", "Operation", "Plan", "PlanError", "describe", "value_of"]

Operation = dict[str, Any]

RUNS = 3
INPUTS: tuple[dict[str, Any], ...] = ({"topic": "cats"}, {"topic": "dogs", "depth": [1, {}]}, {})
_MOST_OPERATIONS = 200
_MOST_BYTES = 200_000
_MOST_NODES = 20
_MOST_OF_A_NUMBER = 1_000
_HOSTILE = {hostile.title: hostile for hostile in KEPT}
_DAY = 86_400

_FIELDS: dict[str, tuple[str, ...]] = {
    "load": ("run", "inputs", "second"),
    "save": ("run", "back", "nodes", "second"),
    "overlap": ("run", "backs", "nodes"),
    "cancel": ("run", "back", "nodes", "after"),
    "delete": ("run", "second"),
    "reopen": (),
    "elsewhere": ("run", "what", "inputs", "nodes", "kill"),
    "clock": ("seconds",),
    "edit": ("run", "back", "what"),
}
_WHATS = {"elsewhere": ("load", "save", "delete"), "edit": ("handed", "reply", "context")}


_SENTENCES = {
    "load": "load run {run}, or create it, with {inputs}{through}",
    "save": "save {nodes} of run {run} by {worker}{through}",
    "overlap": "save {nodes} of run {run} at once, by {workers}",
    "cancel": "save {nodes} of run {run} by {worker}, and cancel it",
    "delete": "delete run {run}{through}",
    "reopen": "close the store, and open it again",
    "elsewhere": "{what}{of_nodes} run {run} in another process{kill}",
    "clock": "move the clock by {seconds:+} s",
    "edit": "edit {what} of {worker} of run {run}",
}
_IN_WORDS = {
    "load": "load",
    "save": "save",
    "delete": "delete",
    "handed": "the inputs passed",
    "reply": "the reply",
    "context": "the context",
}


class PlanError(ValueError):
    """A form is no sequence of operations; the message says which part of it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is played: the operations, and which run ids are taken: "plain", or the title of a group of hostile ones."""

    operations: tuple[Operation, ...]
    ids: str = "plain"
    first_id: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {"operations": list(self.operations), "ids": self.ids, "first_id": self.first_id}

    @classmethod
    def from_dict(cls, form: Any) -> Self:
        """Read what `to_dict` made, and believe none of it. Raises `PlanError`."""
        if not isinstance(form, Mapping) or form.keys() != {"operations", "ids", "first_id"}:
            raise PlanError("it is no sequence of operations")
        operations, ids, first_id = form["operations"], form["ids"], form["first_id"]
        if not isinstance(operations, list) or not 0 < len(operations) <= _MOST_OPERATIONS:
            raise PlanError(f"it has no operations, or more than {_MOST_OPERATIONS}")
        if len(json.dumps(form)) > _MOST_BYTES:
            raise PlanError(f"it is longer than {_MOST_BYTES} bytes")
        for number, operation in enumerate(operations, start=1):
            if complaint := _complaint(operation):
                raise PlanError(f"its operation {number} {complaint}")
        if not isinstance(ids, str) or (ids != "plain" and ids not in _groups()) or not _is_small(first_id):
            raise PlanError("its run ids are of a group that there is not")
        return cls(tuple(operations), ids, first_id)

    def run_ids(self, base: str) -> tuple[str, ...]:
        """Return the ids of the runs, which all hold `base`."""
        if self.ids == "plain":
            return tuple(f"{base}-{run}" for run in range(RUNS))
        group = next(group.ids for group in groups_of_ids(base) if group.title == self.ids)
        return tuple(group[(self.first_id + run) % len(group)] for run in range(RUNS))

    @property
    def size(self) -> tuple[int, int]:
        """How long it is, for a comparison: operations first."""
        return len(self.operations), len(json.dumps(self.to_dict()))


def value_of(form: Mapping[str, Any]) -> Any:
    """Return the output that an operation names: plain JSON, or a hostile value by its title."""
    return _HOSTILE[form["hostile"]].value() if "hostile" in form else json.loads(json.dumps(form["json"]))


def describe(operation: Operation) -> str:
    """Say in words what an operation does."""
    said = {
        **operation,
        "worker": _worker(operation.get("back", 0)),
        "through": " through a second instance" if operation.get("second") else "",
        "nodes": ", ".join(f"{name}={_shown(value)}" for name, value in operation.get("nodes", ())) or "nothing new",
        "of_nodes": "",
        "inputs": show(INPUTS[operation.get("inputs", 0)]),
        "workers": " and by ".join(map(_worker, operation.get("backs", ()))),
        "kill": ", which is killed then" if operation.get("kill") else "",
        "what": _IN_WORDS.get(operation.get("what", ""), ""),
    }
    if operation.get("what") == "save":
        said["of_nodes"] = f" {said['nodes']} of"
    return _SENTENCES[operation["do"]].format(**said)


def _worker(back: int) -> str:
    return "the newest worker" if back == 0 else f"an older worker (loaded {back} before the newest)"


def _shown(value: Mapping[str, Any]) -> str:
    return value["hostile"] if "hostile" in value else show(value["json"])


def _groups() -> set[str]:
    return {group.title for group in groups_of_ids("x")}


def _complaint(operation: Any) -> str | None:
    """Return what is wrong with an operation, or None."""
    kind = operation.get("do") if isinstance(operation, dict) else None
    if not isinstance(kind, str) or kind not in _FIELDS:
        return "does what nobody knows"
    if operation.keys() != {"do", *_FIELDS[kind]}:
        return f"({kind}) needs {', '.join(_FIELDS[kind]) or 'nothing'}, and has other fields"
    bad = [name for name in _FIELDS[kind] if not _is_good(kind, name, operation[name])]
    if kind == "overlap" and not bad and len(operation["nodes"]) != len(operation["backs"]):
        bad = ["nodes"]
    return f"({kind}) has a bad {bad[0]}" if bad else None


def _is_good(kind: str, name: str, value: Any) -> bool:
    match name:
        case "run":
            return _is_small(value) and value < RUNS
        case "inputs":
            return _is_small(value) and value < len(INPUTS)
        case "back" | "after":
            return _is_small(value)
        case "backs":
            return isinstance(value, list) and len(value) == 2 and all(map(_is_small, value))  # noqa: PLR2004
        case "second" | "kill":
            return isinstance(value, bool)
        case "seconds":
            return type(value) is int and abs(value) <= _DAY * 365
        case "what":
            return isinstance(value, str) and value in _WHATS[kind]
        case _:
            return isinstance(value, list) and len(value) <= _MOST_NODES and all(map(_is_node, value))


def _is_small(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST_OF_A_NUMBER


def _is_node(pair: Any) -> bool:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):  # noqa: PLR2004
        return False
    value = pair[1]
    if not isinstance(value, dict) or len(value) != 1:
        return False
    if "hostile" in value:
        return isinstance(value["hostile"], str) and value["hostile"] in _HOSTILE
    return "json" in value and _is_taken([pair[0], value["json"]])


def _is_taken(value: Any) -> bool:
    """Whether a context takes it: no NaN and no lone surrogate, which the text of a token can hold."""
    try:
        to_stored(value)
    except SerializationError:
        return False
    return True
