"""A value for a JSON schema: the part of the language that pydantic and the LLM APIs use."""

from __future__ import annotations

import json
import re
from typing import Any

from .dice import Dice
from .schema_error import SchemaError
from .schema_numbers import number
from .schema_texts import text

__all__ = ["SchemaValues"]

_DEEP = 5
_TRIES = 200


class SchemaValues:
    """Makes values for one schema, with `dice` for what is free and `mark` in every text that has room for it."""

    def __init__(self, schema: dict[str, Any], dice: Dice, mark: str) -> None:
        self._root = schema
        self._dice = dice
        self._mark = mark

    def value(self) -> Any:
        """Return a value for the whole schema. Raises `SchemaError` if none is found."""
        return self._of(self._root, 0)

    def _of(self, schema: Any, depth: int) -> Any:
        if schema is True or schema == {}:
            return self._mark
        if not isinstance(schema, dict):
            raise SchemaError(f"no value fits the schema {schema!r}")
        if depth > 20 * _DEEP:
            raise SchemaError("the schema refers to itself without end")
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._dice.choice(schema["enum"])
        variants = schema.get("anyOf") or schema.get("oneOf")
        if variants:
            shared = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
            return self._of({**shared, **self._resolved(self._variant(variants, depth))}, depth + 1)
        kind = schema.get("type", _implied_type(schema))
        if isinstance(kind, list):
            kind = self._dice.choice([name for name in kind if name != "null"] or kind)
        return self._of_type(kind, schema, depth)

    def _of_type(self, kind: str, schema: dict[str, Any], depth: int) -> Any:
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "string" if "contentSchema" in schema:
                return json.dumps(self._of(schema["contentSchema"], depth + 1))
            case "string":
                return text(schema, self._dice, self._mark)
            case "integer" | "number":
                return number(schema, self._dice, whole=kind == "integer")
            case "boolean":
                return self._dice.choice([True, False])
            case "null":
                return None
        raise SchemaError(f"no value is known for the type {kind!r}")

    def _resolved(self, schema: Any) -> dict[str, Any]:
        """Follow references and join `allOf`; what stands beside a reference goes before what it refers to."""
        for _ in range(_TRIES):
            if not isinstance(schema, dict):
                raise SchemaError(f"no value fits the schema {schema!r}")
            if "$ref" in schema:
                target = self._target(schema["$ref"])
                schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
            elif "allOf" in schema:
                rest = {key: value for key, value in schema.items() if key != "allOf"}
                for part in schema["allOf"]:
                    rest = _joined(rest, self._resolved(part))
                schema = rest
            else:
                return _with_described(schema)
        raise SchemaError("the schema's references lead in a circle")

    def _target(self, reference: str) -> dict[str, Any]:
        found: Any = self._root
        for name in reference.removeprefix("#").strip("/").split("/") if reference != "#" else []:
            name = name.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901
            if not reference.startswith("#") or not isinstance(found, dict) or name not in found:
                raise SchemaError(f"the schema refers to {reference!r}, which it does not contain")
            found = found[name]
        if not isinstance(found, dict):
            raise SchemaError(f"the schema refers to {reference!r}, which is no schema")
        return found

    def _variant(self, variants: list[Any], depth: int) -> Any:
        """Choose one; deep inside a recursive schema, one that ends soonest."""
        # A number and then any text: pydantic's schema of a Decimal, which does not say what text is one.
        variants = [
            variant
            for before, variant in zip([{}, *variants], variants, strict=False)
            if not (variant == {"type": "string"} and isinstance(before, dict) and before.get("type") == "number")
        ]
        if depth > _DEEP:
            return min(variants, key=lambda variant: self._height(variant, ()))
        return self._dice.choice(variants)

    def _height(self, schema: Any, above: tuple[str, ...]) -> int:
        """How many levels the smallest value of `schema` has; large where it never ends."""
        if not isinstance(schema, dict):
            return 0
        if "$ref" in schema:
            reference = schema["$ref"]
            return 1000 if reference in above else self._height(self._target(reference), (*above, reference))
        if "const" in schema or "enum" in schema:
            return 0
        variants = schema.get("anyOf") or schema.get("oneOf")
        if variants:
            return min(self._height(variant, above) for variant in variants)
        inside = [schema["properties"][name] for name in schema.get("required", []) if name in schema["properties"]]
        inside += schema.get("prefixItems", []) + schema.get("allOf", [])
        if schema.get("minItems") and "items" in schema:
            inside.append(schema["items"])
        if schema.get("minProperties") and isinstance(schema.get("additionalProperties"), dict):
            inside.append(schema["additionalProperties"])
        nested = schema.get("type") in ("object", "array")
        return nested + max((self._height(part, above) for part in inside), default=0)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        made: dict[str, Any] = {}
        for name, part in properties.items():
            if name in required or (depth <= _DEEP and self._dice.below(4)):
                made[name] = self._of(part, depth + 1)
        for name in required:
            if name not in made:
                made[name] = self._of(self._extra(schema), depth + 1)
        wanted = schema.get("minProperties", 0)
        if not properties and schema.get("additionalProperties", True) is not False and depth <= _DEEP:
            wanted = max(wanted, min(self._dice.between(1, 3), schema.get("maxProperties", 3)))
        for _ in range(_TRIES):
            if len(made) >= wanted:
                return made
            key = self._key(schema)
            if key not in made:
                made[key] = self._of(self._extra(schema), depth + 1)
        if len(made) >= schema.get("minProperties", 0):
            return made
        raise SchemaError(f"no {wanted} different keys were found for an object")

    def _extra(self, schema: dict[str, Any]) -> Any:
        for part in schema.get("patternProperties", {}).values():
            return part
        return schema.get("additionalProperties", True)

    def _key(self, schema: dict[str, Any]) -> str:
        for pattern in schema.get("patternProperties", {}):
            return text({"pattern": pattern}, self._dice, self._mark)
        names = schema.get("propertyNames")
        if names is None:
            return str(self._dice.below(1000))  # also a key of dict[int, …], whose schema does not say so
        names = self._resolved(names)
        texts = [name for name in names.get("enum", []) if isinstance(name, str)]
        return str(self._dice.choice(texts) if texts else self._of({"type": "string", **names}, 0))

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        made = [self._of(part, depth + 1) for part in schema.get("prefixItems", [])]
        items = schema.get("items", True)
        least = schema.get("minItems", 0)
        most = schema.get("maxItems", max(least, len(made) + 3))
        if items is False or (made and "items" not in schema):
            return made
        wanted = (
            least if depth > _DEEP else self._dice.between(max(least, min(1, most)), max(least, min(most, least + 3)))
        )
        different = schema.get("uniqueItems", False)
        for _ in range(_TRIES):
            if len(made) >= wanted:
                return made
            item = self._of(items, depth + 1)
            if not (different and item in made):
                made.append(item)
        if len(made) >= least:
            return made
        raise SchemaError(f"no {least} different items were found for an array")


def _with_described(schema: dict[str, Any]) -> dict[str, Any]:
    """Add the constraints that stand as JSON at the end of the description, where a provider puts what an API lacks."""
    found = _DESCRIBED.search(schema.get("description") or "")
    try:
        described = json.loads(found[0]) if found else {}
    except ValueError:
        return schema
    return {**{key: value for key, value in described.items() if key in _CONSTRAINTS}, **schema}


_DESCRIBED = re.compile(r"\{.*\}$", re.DOTALL)
_CONSTRAINTS = {
    *(
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "contentSchema",
        "multipleOf",
        "minItems",
        "maxItems",
        "uniqueItems",
    ),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minProperties", "maxProperties"),
}


def _implied_type(schema: dict[str, Any]) -> str:
    for kind, keywords in (
        ("object", ("properties", "additionalProperties", "required")),
        ("array", ("items", "prefixItems", "minItems")),
        ("number", ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum")),
    ):
        if any(keyword in schema for keyword in keywords):
            return kind
    return "string"


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Both schemas at once, for what `allOf` is used for: a base and its extension."""
    joined = {**one, **other}
    if "properties" in one and "properties" in other:
        joined["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        joined["required"] = [*one["required"], *(name for name in other["required"] if name not in one["required"])]
    return joined
