"""Values as JSON that keeps their types, so that two lives of a run can be compared exactly.

Plain JSON types stand for themselves (1 and 1.0 stay apart, keys are sorted). Everything else becomes an object with
a `$type`: a tuple is not a list, a Pydantic model is not the dict of its fields.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, TypeVar

from pydantic import BaseModel

__all__ = ["canonical", "describe", "encode", "first_difference", "show", "without"]

_T = TypeVar("_T")
_TYPE = "$type"
_PLAIN = {"str": "text", "dict": "a dict", "list": "a list", "bool": "a bool", "int": "an int", "float": "a float"}
_MAX_DEPTH = 100
_MAX_PARTS = 200_000
_MAX_BITS = 2048
"""Python may be told to refuse to write integers of more than 640 digits."""
_SHOWN_CHARACTERS = 60
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def encode(value: Any) -> Any:
    """Return the typed JSON form of `value`. It never fails: what has no form of its own is kept as type and repr.

    It is bounded as well: what lies deeper than 100 levels, contains itself, or comes after 200 000 other parts is kept
    as its type.
    """
    return _Encoder().form(value, 0)


_left_out: str | None = None
_ELLIPSIS = "…"


@contextmanager
def without(text: str) -> Iterator[None]:
    """Have `…` in the place of `text` in all that is encoded inside: a folder that each scenario has another of.

    One text at a time, for the whole process.
    """
    global _left_out  # noqa: PLW0603 - threads of a loop encode as well
    before, _left_out = _left_out, text
    try:
        yield
    finally:
        _left_out = before


def _text(value: str) -> str:
    return value if _left_out is None else value.replace(_left_out, _ELLIPSIS)


def canonical(encoded: Any) -> str:
    """Return the one text of a typed form: equal texts mean equal values of equal types."""
    return json.dumps(encoded, sort_keys=True, separators=(",", ":"))


def describe(encoded: Any) -> str:
    """Name the type of a typed form for a person: `a dict`, `Article`, `an int`."""
    if isinstance(encoded, dict) and _TYPE in encoded:
        name = str(encoded[_TYPE]).rpartition(".")[2]
        return (
            f"a {name}"
            if name in ("tuple", "set", "dict", "float", "bytes", "list")
            else "an int"
            if name == "int"
            else f"`{name}`"
        )
    if encoded is None:
        return "None"
    return _PLAIN[type(encoded).__name__]


def show(encoded: Any) -> str:
    """Return a short text of a typed form."""
    text = canonical(encoded)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def first_difference(before: Any, after: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """Return where two typed forms first differ, as path, the first's part and the second's; None if they are equal."""
    if canonical(before) == canonical(after):
        return None
    if _same_shape(before, after):
        pairs = enumerate(zip(before, after, strict=True)) if isinstance(before, list) else _pairs(before, after)
        for key, (one, other) in pairs:
            step = f"[{key}]" if isinstance(before, list) else "" if _TYPE in before else f".{key}"
            found = first_difference(one, other, path + step)
            if found is not None:
                return found
    return path, before, after


def _same_shape(before: Any, after: Any) -> bool:
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after)
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and before.get(_TYPE) == after.get(_TYPE)
    return False


def _pairs(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[Any, tuple[Any, Any]]]:
    return [(key, (before[key], after[key])) for key in sorted(before)]


def _name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


class _Encoder:
    """One encoding: it knows how many parts it has visited, and which ones it is inside of."""

    def __init__(self) -> None:
        self._left = _MAX_PARTS
        self._inside: set[int] = set()

    def form(self, value: Any, depth: int) -> Any:
        """Return the typed form of a part that is so deep inside."""
        if value is None or type(value) is bool:
            return value
        if type(value) is str:
            return _text(value)
        if type(value) is int:
            return value if value.bit_length() <= _MAX_BITS else _long(value)
        if type(value) is float:
            return value if math.isfinite(value) else {_TYPE: "float", "repr": repr(value)}
        self._left -= 1
        if depth > _MAX_DEPTH or self._left < 0 or id(value) in self._inside:
            return {_TYPE: _name(value), "repr": "…"}
        self._inside.add(id(value))
        try:
            return self._container(value, depth + 1)
        except Exception as error:  # a property, an iterator, a field of the user's may do anything
            return {_TYPE: _name(value), "repr": f"<not readable: {type(error).__name__}>"}
        finally:
            self._inside.discard(id(value))

    def _container(self, value: Any, depth: int) -> Any:
        if type(value) is list:
            return self._items(value, depth)
        if type(value) is dict and _TYPE not in value and all(type(key) is str for key in value):
            return self._fields(value, depth)
        return {_TYPE: _name(value), **self._content(value, depth)}

    def _content(self, value: Any, depth: int) -> dict[str, Any]:
        if isinstance(value, BaseModel):
            fields = {name: getattr(value, name, None) for name in type(value).model_fields}
            return {"fields": self._fields({**fields, **(value.model_extra or {})}, depth)}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {
                "fields": self._fields({f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}, depth)
            }
        if isinstance(value, Enum):
            return {"value": self.form(value.value, depth)}
        if isinstance(value, Mapping):
            pairs = [self._items(pair, depth) for pair in value.items()]
            return {"pairs": sorted(pairs, key=canonical)}
        if isinstance(value, set | frozenset):
            return {"items": sorted(self._items(value, depth), key=canonical)}
        if isinstance(value, list | tuple):
            return {"items": self._items(value, depth)}
        if isinstance(value, str | int) and not isinstance(value, bool):
            return {"value": str.__str__(value) if isinstance(value, str) else self.form(int(value), depth)}
        return {"repr": _repr(value)}

    def _items(self, values: Iterable[Any], depth: int) -> list[Any]:
        return [self.form(item, depth) for item in self._some(values)]

    def _fields(self, values: Mapping[str, Any], depth: int) -> dict[str, Any]:
        return {_text(name): self.form(item, depth) for name, item in self._some(values.items())}

    def _some(self, values: Iterable[_T]) -> Iterator[_T]:
        """Yield the parts that there is still room for."""
        for value in values:
            if self._left < 0:
                return
            self._left -= 1
            yield value


def _long(value: int) -> dict[str, Any]:
    """Return the form of an integer that has too many digits for JSON: its length, its beginning, and a digest."""
    digits = hex(value)
    digest = hashlib.sha256(digits.encode()).hexdigest()
    return {_TYPE: "int", "repr": f"{digits[:18]}…", "bits": value.bit_length(), "sha256": digest}


def _repr(value: Any) -> str:
    try:
        return _text(_ADDRESS.sub("", repr(value)))
    except Exception as error:  # a user's __repr__ may do anything
        return f"<no repr: {type(error).__name__}>"
