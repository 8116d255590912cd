"""The one way from a value to its stored form, and back into a declared type.

A Pydantic model becomes `model_dump(mode="json")`. All else must be exactly what JSON holds: dict with text keys, list,
str, int, float, bool and None. What JSON would change or drop is refused with `SerializationError`, naming the place;
nothing is ever stored as `str(value)`. Acknowledged or refused, nothing between.

Reports behind the refusals: langchain-ai/langgraph #6718 and #9021 (silent None), microsoft/agent-framework #8256 (keys
1 and "1" collapse), pydantic/pydantic-core #851 (secrets stored as asterisks), pydantic/pydantic #7326 (fields of a
subclass dropped), agentscope-ai/agentscope #1117 (a lone surrogate kills a session).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import from_json, to_json

from .errors import ConfigurationError, SerializationError

__all__ = ["MAX_DEPTH", "JSONValue", "adapter", "check_declared", "dumps", "loads", "quoted", "restore", "to_stored"]

_ADAPTER_ERRORS = (PydanticUserError, PydanticUndefinedAnnotation)

JSONValue = None | bool | int | float | str | list["JSONValue"] | dict[str, "JSONValue"]

MAX_DEPTH = 200
"""Levels of nesting that are accepted; deeper values would overflow the parser of another process."""

_SHOWN_CHARACTERS = 40

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

quoted: Callable[[str], str] = json.encoder.encode_basestring
"""Like `dumps`, for what is known to be a text; in a third of the time."""


def to_stored(value: Any, path: str = "output") -> JSONValue:
    """Return the stored form of `value`: a fresh structure of plain JSON types that shares nothing with it.

    Raises `SerializationError` with the path of the first part that JSON cannot hold exactly. `path` names the value
    itself, as in `output` or `inputs['topic']`.
    """
    return _convert(value, path, 0)


def dumps(stored: JSONValue) -> str:
    """Encode a stored form as compact JSON text."""
    # Most outputs are one long text, and this writes the same in a third of the time.
    return to_json(stored).decode() if type(stored) is str else _encode(stored)


def loads(text: str) -> Any:
    """Decode JSON text. Raises `ValueError` for anything that is no strict JSON, NaN and infinities included."""
    if text[:1] != '"':
        return _decode(text)
    # Most outputs are one long text, and this reads it in a third of the time.
    try:
        return from_json(text)
    except ValueError:  # also at a lone surrogate, which JSON has
        return _decode(text)


def restore(stored: JSONValue, declared: Any = Any) -> Any:
    """Return a fresh value of a declared type (an annotation) from its stored form.

    Field names and aliases are both taken, since a dump carries names. `Any` gives plain JSON types. Raises
    `pydantic.ValidationError` if it does not fit.
    """
    kind = type(stored)
    if declared is kind or declared in _UNDECLARED:
        return loads(dumps(stored)) if kind is dict or kind is list else stored
    return adapter(declared).validate_json(dumps(stored), by_alias=True, by_name=True)


def adapter(declared: Any) -> TypeAdapter[Any]:
    """Return the validator of a declared type, built once.

    Raises `ConfigurationError` for an annotation that Pydantic knows no schema for.
    """
    try:
        hash(declared)
    except TypeError:
        return _new_adapter(declared, "")
    # Python says that `date | datetime` equals `datetime | date`, and the order may decide what a value becomes.
    return _kept_adapter(declared, "" if isinstance(declared, type) else repr(declared))


def check_declared(declared: Any) -> None:
    """Raise `ConfigurationError` if values cannot be checked against a declared type."""
    if declared not in _UNDECLARED:
        adapter(declared)


def _new_adapter(declared: Any, _: str) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(declared)
    except _ADAPTER_ERRORS as error:
        raise ConfigurationError(
            f"the annotation {declared!r} cannot be checked: {str(error).splitlines()[0]} Annotate with JSON types or "
            "a Pydantic model."
        ) from error


_kept_adapter = lru_cache(maxsize=1024)(_new_adapter)

_UNDECLARED: tuple[Any, ...] = (Any, object)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode


def _convert(value: Any, path: str, depth: int) -> JSONValue:
    if depth > MAX_DEPTH:
        raise SerializationError(
            _shorten(path), f"is nested more than {MAX_DEPTH} levels deep, or contains itself; flatten it."
        )
    kind = type(value)
    if kind is str:
        return _text(value, path)
    if kind is bool or value is None:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return _integer(value, path)
    if kind is float:
        return _number(value, path)
    if kind is list:
        return [_convert(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    if kind is dict:
        return _object(value, path, depth)
    if isinstance(value, BaseModel):
        from .dumping import checked_dump  # slow to import, and needed only once there is a model

        return _convert(checked_dump(value, path, MAX_DEPTH), path, depth + 1)
    raise SerializationError(path, _refusal(value))


def _object(value: dict[Any, Any], path: str, depth: int) -> JSONValue:
    stored: dict[str, JSONValue] = {}
    for key, item in value.items():
        if type(key) is not str:
            raise SerializationError(
                path,
                f"has the key {key!r} of type {type(key).__name__}; JSON would turn it into text, and it would not be "
                "found again. Use text keys.",
            )
        stored[_text(key, f"the key {_clip(key)} of {path}")] = _convert(item, f"{path}[{key!r}]", depth + 1)
    return stored


def _text(value: str, path: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise SerializationError(
                path,
                f"holds the lone surrogate {value[error.start]!r} at character {error.start}, which is no Unicode "
                "text; decode the source with errors='replace'.",
            ) from None
    return value


def _integer(value: int, path: str) -> int:
    limit = sys.get_int_max_str_digits()
    # 3.32 bits a digit: an int shorter than this many bits surely has fewer digits than the limit.
    if limit and value.bit_length() > limit * 3:
        try:
            str(value)
        except ValueError:
            raise SerializationError(
                path, f"is an integer of more than {limit} digits, which Python itself will not parse back; store text."
            ) from None
    return value


def _number(value: float, path: str) -> float:
    if not math.isfinite(value):
        raise SerializationError(path, f"is {value!r}, which JSON does not have; use None or text for it.")
    return value


_ADVICE: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (lambda v: isinstance(v, tuple), "JSON would turn it into a list; return a list"),
    (lambda v: isinstance(v, set | frozenset), "JSON has no sets; return a sorted list"),
    (lambda v: isinstance(v, bytes | bytearray | memoryview), "JSON has no bytes; return base64 text"),
    (lambda v: isinstance(v, dict), "its class would be lost; return dict(value)"),
    (lambda v: hasattr(v, "isoformat"), "JSON has no dates; return value.isoformat(), or a Pydantic model"),
    (lambda v: hasattr(type(v), "__members__"), "its class would be lost; return value.value, or a Pydantic model"),
    (lambda v: hasattr(v, "__dataclass_fields__"), "return dataclasses.asdict(value), or a Pydantic model"),
    (lambda v: isinstance(v, BaseException), "an error is no output; raise it"),
)


def _refusal(value: Any) -> str:
    advice = next((text for matches, text in _ADVICE if matches(value)), "return JSON types, or a Pydantic model")
    kind = type(value)
    return f"is a {kind.__module__}.{kind.__qualname__}, which JSON cannot hold exactly: {advice}."


def _clip(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…")


def _shorten(path: str) -> str:
    return path if len(path) <= 2 * _SHOWN_CHARACTERS else path[:_SHOWN_CHARACTERS] + "…" + path[-_SHOWN_CHARACTERS:]
