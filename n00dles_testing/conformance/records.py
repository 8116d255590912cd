"""What a run looks like to the suite: a record of plain values, compared exactly.

This is the suite's own model. It shares no code with any store, and copies everything that it is given.
"""

from __future__ import annotations

import copy
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

__all__ = ["Record", "UnreadableReplyError", "difference", "show"]

_SHOWN_CHARACTERS = 160
_HUGE = 100_000


class UnreadableReplyError(Exception):
    """What a store returned for a run cannot be read as one: None, no `completed`, an `order` that is no list."""


@dataclass(frozen=True, slots=True)
class Record:
    """The inputs, outputs and completion order of one run, at one moment."""

    inputs: dict[str, Any]
    completed: dict[str, Any] = field(default_factory=dict)
    order: tuple[str, ...] = ()

    @classmethod
    def new(cls, inputs: Mapping[str, Any]) -> Self:
        """Return the record of a run that has just been created with these inputs."""
        return cls(copy.deepcopy(dict(inputs)))

    @classmethod
    def read(cls, reply: Any) -> Self:
        """Copy what a store returned: an object or a mapping with `inputs`, `completed` and `order`.

        Raises `UnreadableReplyError` saying what is missing or of the wrong kind.
        """
        inputs = dict(_part(reply, "inputs", Mapping))
        completed = dict(_part(reply, "completed", Mapping))
        order = tuple(_part(reply, "order", (list, tuple)))
        return cls(copy.deepcopy(inputs), copy.deepcopy(completed), order)

    def after(self, outputs: Mapping[str, Any]) -> Record:
        """Return the record as it is once these nodes have completed, in this order."""
        fresh = [node for node in outputs if node not in self.completed]
        completed = {**self.completed, **copy.deepcopy(dict(outputs))}
        return Record(copy.deepcopy(self.inputs), completed, (*self.order, *fresh))

    def by_name(self) -> Record:
        """Return it with its nodes in the order of the alphabet: saves that overlap, or merge, may land in any."""
        return Record(self.inputs, self.completed, tuple(sorted(self.order)))

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {"inputs": self.inputs, "completed": self.completed, "order": list(self.order)}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Self:
        """Read what `to_dict` made."""
        return cls(form["inputs"], form["completed"], tuple(form["order"]))

    def __str__(self) -> str:
        return f"inputs {show(self.inputs)}, completed {show(self.completed)}, order {show(list(self.order))}"


def difference(wanted: Any, came: Any, path: str = "") -> str | None:
    """Return where and how `came` differs from `wanted` in value or type, or None.

    1, 1.0 and True are three, 0.0 and -0.0 are two.
    """
    if isinstance(wanted, Record) and isinstance(came, Record):
        return (
            difference(wanted.inputs, came.inputs, "inputs")
            or difference(wanted.completed, came.completed, "completed")
            or difference(list(wanted.order), list(came.order), "order")
        )
    if type(wanted) is not type(came):
        return f"{path} is {show(came)} ({type(came).__name__}), not {show(wanted)} ({type(wanted).__name__})"
    if isinstance(wanted, dict):
        return _difference_of_dicts(wanted, came, path)
    if isinstance(wanted, list):
        if len(wanted) != len(came):
            return f"{path} is {show(came)}, not {show(wanted)}"
        pairs = enumerate(zip(wanted, came, strict=True))
        return next((found for n, (a, b) in pairs if (found := difference(a, b, f"{path}[{n}]"))), None)
    if isinstance(wanted, str):
        return None if wanted == came else _difference_of_texts(wanted, came, path)
    # repr tells 0.0 from -0.0, which are equal.
    return None if _repr(wanted) == _repr(came) else f"{path} is {show(came)}, not {show(wanted)}"


def show(value: Any) -> str:
    """Return `repr(value)`, cut to a readable length; of a value that has none, its type."""
    left_out: list[int] = []
    text = _repr(_clipped(value, left_out))
    length = len(text) + sum(left_out)
    return text if length <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}… ({length} characters)"


def _repr(value: Any) -> str:
    """Return the repr: also what a store returned may have one that raises."""
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"


def _clipped(value: Any, left_out: list[int]) -> Any:
    """Return the value with the beginning of its huge texts: nobody waits for the repr of 64 MB to read a line."""
    if isinstance(value, str) and len(value) > _HUGE:
        left_out.append(len(value) - _SHOWN_CHARACTERS)
        return value[:_SHOWN_CHARACTERS]
    if type(value) is dict:
        return {key: _clipped(part, left_out) for key, part in value.items()}
    return value


def _part(reply: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    if reply is None:
        raise UnreadableReplyError("the store returned None instead of the run")
    missing = object()
    part = reply.get(name, missing) if isinstance(reply, Mapping) else getattr(reply, name, missing)
    if part is missing:
        raise UnreadableReplyError(f"the store returned a {type(reply).__name__} without {name!r}")
    if not isinstance(part, kind):
        raise UnreadableReplyError(f"the store returned a run whose {name!r} is {show(part)} ({type(part).__name__})")
    return part


def _difference_of_texts(wanted: str, came: str, path: str) -> str:
    """Show code points where the eye cannot tell the two apart."""
    alike = unicodedata.normalize("NFC", wanted) == unicodedata.normalize("NFC", came)
    left, right = (ascii(came), ascii(wanted)) if alike else (show(came), show(wanted))
    return f"{path} is {left}, not {right}"


def _difference_of_dicts(wanted: dict[Any, Any], came: dict[Any, Any], path: str) -> str | None:
    for key, value in wanted.items():
        if key not in came:
            return f"{path}[{show(key)}] is missing; it should be {show(value)}"
        if found := difference(value, came[key], f"{path}[{show(key)}]"):
            return found
    extra = next((key for key in came if key not in wanted), None)
    return None if extra is None else f"{path}[{show(extra)}] is {show(came[extra])}, and should not be there"
