"""Answers that are JSON, and not what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["wrong_answer"]

_UNLIKE: dict[str, Any] = {"object": {"unexpected": True}, "array": ["unexpected"], "string": "unexpected"}
_ANY = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_DEEPEST = 20


def wrong_answer(schema: Mapping[str, Any] | None) -> Any:
    """Return JSON that does not fit `schema`: an object whose properties all have values of another type.

    A property that takes everything is left out. Where no property can be wrong, the whole answer is a list.
    """
    if schema is None:
        return {"unexpected": True}
    definitions = schema.get("$defs", {})
    wrong = {name: _unlike(_types(each, definitions)) for name, each in schema.get("properties", {}).items()}
    told = {name: value for name, value in wrong.items() if value is not None}
    return told or [{"unexpected": True}]


def _unlike(types: frozenset[str]) -> Any:
    return next((value for kind, value in _UNLIKE.items() if kind not in types), None)


def _types(schema: Any, definitions: Mapping[str, Any], depth: int = 0) -> frozenset[str]:
    """Return the JSON types that a schema lets through, or rather too many than too few."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return _ANY
    if "$ref" in schema:
        return _types(definitions.get(str(schema["$ref"]).rpartition("/")[2]), definitions, depth + 1)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return frozenset().union(*(_types(each, definitions, depth + 1) for each in schema[key]))
    named = schema.get("type")
    if named is not None:
        return frozenset([named] if isinstance(named, str) else named)
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    return _ANY if values is None else frozenset(_type_of(value) for value in values)


def _type_of(value: Any) -> str:
    names = {str: "string", dict: "object", list: "array", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")
