"""Why an answer does not fit the schema that was asked for, as far as a short look tells: only for messages."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["misfit"]

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def misfit(text: str, schema: dict[str, Any]) -> str:
    """Return what is wrong with an answer, such as "title is missing"; an empty text if nothing was found."""
    try:
        value = json.loads(text)
    except ValueError:
        return "it is no JSON"
    return _wrong(value, schema, schema, "")


def _wrong(value: Any, schema: Any, root: dict[str, Any], at: str) -> str:
    if not isinstance(schema, dict):
        return ""
    if "$ref" in schema:
        return _wrong(value, root.get("$defs", {}).get(str(schema["$ref"]).rpartition("/")[2]), root, at)
    if isinstance(choices := schema.get("anyOf"), list):
        found = [_wrong(value, choice, root, at) for choice in choices]
        return next(iter(found), "") if all(found) else ""
    if "enum" in schema and value not in schema["enum"]:
        return f"{at or 'it'} is {value!r}, and none of {schema['enum']}"
    kind = schema.get("type")
    if kind in _TYPES and not _is(value, kind):
        return f"{at or 'it'} is {value!r}, and no {kind}"
    parts: list[tuple[Any, Any, str]] = []
    if isinstance(value, dict):
        if missing := [name for name in schema.get("required", ()) if name not in value]:
            return f"{_below(at, missing[0])} is missing"
        parts = [(value[name], each, _below(at, name)) for name, each in _properties(schema).items() if name in value]
    elif isinstance(value, list):
        parts = [(each, schema.get("items"), _below(at, str(place))) for place, each in enumerate(value)]
    return next(filter(None, (_wrong(part, inner, root, place) for part, inner, place in parts)), "")


def _is(value: Any, kind: str) -> bool:
    # True is an int for Python, and none for JSON; 1.0 is an integer there.
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, float) and value.is_integer())


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _below(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name
