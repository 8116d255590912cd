"""From a Pydantic model to its JSON dump, or to a refusal: a dump that would lose something is never stored.

Pydantic itself drops the fields of a subclass in a field declared as the base class (pydantic/pydantic #7326), stores
secrets as asterisks (pydantic/pydantic-core #851), turns NaN in a field of type Any into null, and lets the keys 1 and
"1" of a dict collapse into one. What a model's own serializers do is done on purpose, and taken as it is.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from pydantic import AliasChoices, BaseModel, PlainSerializer, RootModel, Secret, SecretBytes, SecretStr, WrapSerializer
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from .errors import SerializationError, message_of

__all__ = ["checked_dump"]

_SEQUENCES = (list, tuple, set, frozenset, deque)


def checked_dump(model: BaseModel, path: str, max_depth: int) -> Any:
    """Return `model.model_dump(mode="json")`. Raises `SerializationError` naming the part that it would lose."""
    try:
        dumped = model.model_dump(mode="json", warnings="error")
    except Exception as error:  # a serializer or a computed field may raise anything
        raise SerializationError(
            path, f"is a {type(model).__name__} that cannot be dumped: {message_of(error)}"
        ) from error
    for place, secret in _secrets(model, path, max_depth):
        asterisks = to_jsonable_python(secret)
        if asterisks and _holds(dumped, asterisks):
            raise SerializationError(
                place,
                "is a secret; it would be stored as asterisks, and a resumed run would use those. Read it from the "
                "environment in the node that needs it, or store the plain text on purpose.",
            )
    _compare(model, dumped, path)
    return dumped


def _secrets(value: Any, path: str, levels: int) -> Iterator[tuple[str, Any]]:
    if levels < 0:
        raise SerializationError(path[:80] + "…", "is nested too many levels deep, or contains itself; flatten it.")
    if isinstance(value, Secret | SecretStr | SecretBytes):
        yield path, value
        return
    parts: Iterator[tuple[str, Any]] = iter(())
    if isinstance(value, BaseModel):
        parts = ((f".{name}", part) for name, part in {**vars(value), **(value.model_extra or {})}.items())
    elif _is_dataclass(value):
        parts = ((f".{name}", part) for name, part in vars(value).items()) if hasattr(value, "__dict__") else parts
    elif isinstance(value, dict):
        parts = ((f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, _SEQUENCES):
        parts = ((f"[{index}]", part) for index, part in enumerate(value))
    for step, part in parts:
        yield from _secrets(part, path + step, levels - 1)


def _holds(dumped: Any, text: str) -> bool:
    if isinstance(dumped, dict):
        return any(_holds(part, text) for part in dumped.values())
    if isinstance(dumped, list):
        return any(_holds(part, text) for part in dumped)
    return bool(dumped == text)


def _compare(value: Any, dumped: Any, path: str) -> None:
    """Refuse `value` if `dumped` lacks a part of it."""
    if isinstance(value, RootModel):
        _compare(value.root, dumped, path)
    elif isinstance(value, BaseModel):
        _refuse_ambiguous_aliases(type(value), path)
        _compare_fields(value, type(value).model_fields, dumped, path)
    elif _is_dataclass(value):
        _compare_fields(value, _dataclass_fields(value), dumped, path)
    elif isinstance(value, dict) and isinstance(dumped, dict):
        _compare_dict(value, dumped, path)
    elif isinstance(value, _SEQUENCES) and isinstance(dumped, list) and len(value) == len(dumped):
        for index, (part, dumped_part) in enumerate(zip(value, dumped, strict=True)):
            _compare(part, dumped_part, f"{path}[{index}]")
    elif isinstance(value, float) and dumped is None:
        raise SerializationError(path, f"is {value!r}, which JSON does not have; use None or text for it.")


def _compare_dict(value: Mapping[Any, Any], dumped: Mapping[str, Any], path: str) -> None:
    if len(value) == len(dumped):
        for (key, part), dumped_part in zip(value.items(), dumped.values(), strict=True):
            _compare(part, dumped_part, f"{path}[{key!r}]")
    elif len(to_jsonable_python(dict.fromkeys(value))) < len(value):
        raise SerializationError(
            path, f"has keys that JSON does not tell apart, among {list(value)[:10]!r}; use text keys."
        )


def _compare_fields(value: Any, fields: Mapping[str, FieldInfo], dumped: Any, path: str) -> None:
    kind: type = type(value)
    if not isinstance(dumped, dict):
        return
    extra = (value.model_extra or {}) if isinstance(value, BaseModel) else {}
    parts = {name: getattr(value, name, None) for name in fields} | extra
    by_hand = _serialized_by_hand(kind)
    lost = []
    for name, part in parts.items():
        field = fields.get(name)
        key = next(
            (key for key in (name, field and field.serialization_alias, field and field.alias) if key in dumped), None
        )
        if key is not None and name not in by_hand:
            _compare(part, dumped[key], f"{path}.{name}")
        elif key is None and not _is_left_out(field, part):
            lost.append(name)
    if lost and not _has_model_serializer(kind):
        raise SerializationError(
            path,
            f"is a {kind.__name__} whose {', '.join(sorted(lost))} would be dropped: never set, or in a field declared "
            f"as one of its base classes. Declare the field as {kind.__name__}, a union, or SerializeAsAny.",
        )


def _is_left_out(field: FieldInfo | None, part: Any) -> bool:
    if field is None:
        return False
    exclude_if = getattr(field, "exclude_if", None)
    return bool(field.exclude) or (exclude_if is not None and bool(exclude_if(part)))


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _dataclass_fields(value: Any) -> dict[str, FieldInfo]:
    pydantic_fields: Mapping[str, FieldInfo] = getattr(type(value), "__pydantic_fields__", {})
    return {field.name: pydantic_fields.get(field.name) or FieldInfo() for field in dataclasses.fields(value)}


@lru_cache(maxsize=1024)
def _has_model_serializer(kind: type) -> bool:
    decorators = getattr(kind, "__pydantic_decorators__", None)
    return decorators is not None and bool(decorators.model_serializers)


@lru_cache(maxsize=1024)
def _serialized_by_hand(kind: type) -> frozenset[str]:
    """Return the fields that have a serializer of their own."""
    fields: Mapping[str, FieldInfo] = getattr(kind, "__pydantic_fields__", {})
    annotated = [
        name
        for name, field in fields.items()
        if any(isinstance(mark, PlainSerializer | WrapSerializer) for mark in field.metadata)
    ]
    decorators = getattr(kind, "__pydantic_decorators__", None)
    decorated = (
        [name for each in decorators.field_serializers.values() for name in each.info.fields] if decorators else []
    )
    return frozenset(fields if "*" in decorated else [*annotated, *decorated])


@lru_cache(maxsize=1024)
def _ambiguous_alias(kind: type[BaseModel]) -> tuple[str, str] | None:
    for name, field in kind.model_fields.items():
        alias = field.validation_alias
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
        for choice in choices:
            if isinstance(choice, str) and choice != name and choice in kind.model_fields:
                return name, choice
    return None


def _refuse_ambiguous_aliases(kind: type[BaseModel], path: str) -> None:
    found = _ambiguous_alias(kind)
    if found is not None:
        raise SerializationError(
            path,
            f"is a {kind.__name__} whose field {found[0]!r} has the name of another field, {found[1]!r}, as its alias; "
            "its dump could be read back in two ways. Rename one.",
        )
