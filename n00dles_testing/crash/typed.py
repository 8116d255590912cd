"""Values as JSON that keeps their types, so that two lives of a run can be compared exactly.

Plain JSON types stand for themselves (1 and 1.0 stay apart, keys are sorted). Everything else becomes an object with
a `$type`: a tuple is not a list, a Pydantic model is not the dict of its fields.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from pydantic import BaseModel

__all__ = ["canonical", "describe", "encode", "first_difference", "show"]

_TYPE = "$type"
_PLAIN = {"str": "text", "dict": "a dict", "list": "a list", "bool": "a bool", "int": "an int", "float": "a float"}
_MAX_DEPTH = 100
_SHOWN_CHARACTERS = 60
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def encode(value: Any, depth: int = 0) -> Any:
    """Return the typed JSON form of `value`. It never fails: what has no form of its own is kept as type and repr."""
    if value is None or type(value) in (bool, int, str):
        return value
    if depth > _MAX_DEPTH:
        return {_TYPE: _name(value), "repr": "…"}
    if type(value) is float:
        return value if math.isfinite(value) else {_TYPE: "float", "repr": repr(value)}
    if type(value) is list:
        return [encode(item, depth + 1) for item in value]
    if type(value) is dict and _TYPE not in value and all(type(key) is str for key in value):
        return {key: encode(item, depth + 1) for key, item in value.items()}
    return {_TYPE: _name(value), **_content(value, depth + 1)}


def canonical(encoded: Any) -> str:
    """Return the one text of a typed form: equal texts mean equal values of equal types."""
    return json.dumps(encoded, sort_keys=True, separators=(",", ":"))


def describe(encoded: Any) -> str:
    """Name the type of a typed form for a person: `a dict`, `Article`, `an int`."""
    if isinstance(encoded, dict) and _TYPE in encoded:
        name = str(encoded[_TYPE]).rpartition(".")[2]
        return f"a {name}" if name in ("tuple", "set", "dict", "float", "bytes") else f"`{name}`"
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


def _content(value: Any, depth: int) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name, None) for name in type(value).model_fields}
        return {"fields": {k: encode(v, depth) for k, v in {**fields, **(value.model_extra or {})}.items()}}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"fields": {f.name: encode(getattr(value, f.name, None), depth) for f in dataclasses.fields(value)}}
    if isinstance(value, Enum):
        return {"value": encode(value.value, depth)}
    if isinstance(value, Mapping):
        pairs = [[encode(key, depth), encode(item, depth)] for key, item in value.items()]
        return {"pairs": sorted(pairs, key=canonical)}
    if isinstance(value, set | frozenset):
        return {"items": sorted((encode(item, depth) for item in value), key=canonical)}
    if isinstance(value, list | tuple):
        return {"items": [encode(item, depth) for item in value]}
    if isinstance(value, str | int) and not isinstance(value, bool):
        return {"value": str.__str__(value) if isinstance(value, str) else int(value)}
    return {"repr": _repr(value)}


def _repr(value: Any) -> str:
    try:
        return _ADDRESS.sub("", repr(value))
    except Exception as error:  # a user's __repr__ may do anything
        return f"<no repr: {type(error).__name__}>"
