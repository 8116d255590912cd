"""A JSON schema in the form in which the APIs take it.

Both APIs can hold a model to a schema, but only to a *closed* one: a root that is an object, every property required,
no free keys, and a short list of keywords. `AnswerSchema` closes what can be closed, and says when it could not. What
the API cannot enforce stands as JSON at the end of the description, where the model reads it; the executor validates
the answer anyway.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

__all__ = ["AnswerSchema", "Enforces"]

_OPEN = {"prefixItems", "patternProperties", "propertyNames", "not", "if", "contains", "dependentSchemas"}
Enforces = Callable[[str, Any], bool]

_ALWAYS_TAKEN = {"type", "enum", "const", "title", "description"}
_SAYS_NOTHING = {"default", "discriminator", "$schema", "$id"}


class _OpenSchemaError(Exception):
    """The schema admits values that a closed one cannot describe: free keys, any value, positional items."""


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """The schema to send. `closed`: the API may enforce it. `recursive`: a definition refers to itself."""

    name: str
    schema: dict[str, Any]
    closed: bool
    recursive: bool
    wrapped: bool

    @classmethod
    def of(cls, schema: Mapping[str, Any], enforces: Enforces) -> Self:
        """Return `schema` closed if it can be, else as it is; a root that is no object is put into one.

        `enforces` says of a keyword and its value whether the API takes it.
        """
        wrapped = schema.get("type") != "object"
        sent = _wrap(schema) if wrapped else dict(schema)
        try:
            sent, closed = _close(sent, enforces), True
        except _OpenSchemaError:
            closed = False
        name = re.sub(r"[^a-zA-Z0-9_-]", "_", str(schema.get("title") or "answer"))[:64]
        return cls(name, sent, closed, _is_recursive(schema), wrapped)

    def unwrap(self, content: str) -> str:
        """Return the answer proper, as JSON text. Text that does not fit is returned as it is."""
        if not self.wrapped:
            return content
        try:
            return json.dumps(json.loads(content)["value"], ensure_ascii=False)
        except (ValueError, KeyError, TypeError):
            return content


def _wrap(schema: Mapping[str, Any]) -> dict[str, Any]:
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    outer: dict[str, Any] = {
        "type": "object",
        "properties": {"value": inner},
        "required": ["value"],
        "additionalProperties": False,
    }
    return outer | ({"$defs": schema["$defs"]} if "$defs" in schema else {})


def _close(schema: Any, enforces: Enforces) -> dict[str, Any]:
    if not isinstance(schema, dict) or _OPEN & schema.keys():
        raise _OpenSchemaError
    if isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1:
        schema = {**schema["allOf"][0], **{key: value for key, value in schema.items() if key != "allOf"}}
    closed: dict[str, Any] = {}
    if "$defs" in schema:
        closed["$defs"] = {name: _close(definition, enforces) for name, definition in schema["$defs"].items()}
    closed |= _close_structure(schema, enforces)
    rest = {key: value for key, value in schema.items() if key not in _STRUCTURE | _SAYS_NOTHING | closed.keys()}
    taken = {key: value for key, value in rest.items() if key in _ALWAYS_TAKEN or enforces(key, value)}
    told = {key: value for key, value in rest.items() if key not in taken}
    closed |= taken
    if told:
        words = [closed["description"]] if closed.get("description") else []
        closed["description"] = " ".join([*words, json.dumps(told, ensure_ascii=False)])
    return closed


_STRUCTURE = {"$defs", "$ref", "anyOf", "oneOf", "allOf", "properties", "required", "additionalProperties", "items"}


def _close_structure(schema: dict[str, Any], enforces: Enforces) -> dict[str, Any]:
    if "$ref" in schema:
        alone = {"$ref": schema["$ref"]}  # a reference must not have neighbours
        return {"anyOf": [alone]} if schema.keys() & {"description", "title"} else alone
    variants = schema.get("anyOf") or schema.get("oneOf")
    if variants:
        return {"anyOf": [_close(variant, enforces) for variant in variants]}
    if "enum" in schema or "const" in schema:
        return {}
    kind = schema.get("type")
    if isinstance(kind, list):
        return {"anyOf": [_close({**schema, "type": each}, enforces) for each in kind]}
    if kind == "object":
        properties = schema.get("properties")
        if properties is None or schema.get("additionalProperties", False) is not False:
            raise _OpenSchemaError
        return {
            "properties": {name: _close(value, enforces) for name, value in properties.items()},
            "required": list(properties),
            "additionalProperties": False,
        }
    if kind == "array":
        return {"items": _close(schema.get("items"), enforces)}
    if kind is None or "allOf" in schema:
        raise _OpenSchemaError
    return {}


def _is_recursive(schema: Mapping[str, Any]) -> bool:
    definitions = {f"#/$defs/{name}": definition for name, definition in schema.get("$defs", {}).items()}
    refers_to = {name: _references(definition) for name, definition in definitions.items()}

    def reachable(name: str, seen: set[str]) -> set[str]:
        for other in refers_to.get(name, set()) - seen:
            seen.add(other)
            reachable(other, seen)
        return seen

    return any(name in reachable(name, set()) for name in refers_to)


def _references(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
        return own.union(*(_references(value) for value in schema.values()))
    if isinstance(schema, list):
        return set().union(*(_references(value) for value in schema))
    return set()
