"""Values that follow from a seed: the same in every process, another for another seed, and hostile where it is allowed.

    value_from(ListOf("int"), "b:5f3c")

A generated node derives its output from its name and its arguments in this way, so no spec has to carry values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from .model_classes import TAG, annotation, build_model
from .types import Choice, DictOf, ListOf, ModelSpec, OneOf, OptionalOf, Record, TupleOf, TypeSpec

__all__ = ["HOSTILE_TEXTS", "json_form", "value_from"]

HOSTILE_TEXTS = (
    "",
    "\x00",
    "\ufeff",
    "é",
    "e\u0301",
    "\U0001d54f🧨",
    '"\\\n\r\t',
    "null",
    "NaN",
    "1e999",
    "\u2028\u2029",
    "\x7f\x1f",
    "' OR 1=1 --",
    "%s {0} ${x}",
    "</script>",
    " \u00a0trailing ",
    "\u017f İ ß",
    "\ud7ff\ue000\uffff",
)
"""Texts that have broken stores: each is valid Unicode, and has to come back as it is."""

SEAL = "seal"
"""The key of a record that always holds the seed."""

_INTEGERS = (0, 2**31, 2**53, 2**63, 2**64, 10**40)
_FLOATS = (-0.0, 5e-324, 1e308, 1e22, 1e16, 0.1)
_ZONES = tuple(timezone(timedelta(minutes=minutes)) for minutes in (0, 330, -210, 845, -720))
_EPOCH = datetime(2001, 9, 9, 1, 46, 40, tzinfo=timezone.utc)  # noqa: UP017 - one way to write a zone
_MAX_ITEMS = 2


def value_from(  # noqa: PLR0911 - one a kind of type
    spec: TypeSpec, seed: str, payload: str | None = None
) -> Any:
    """Return the value of the type `spec` that follows from `seed`; `payload` (JSON text) is put in where it fits."""
    if isinstance(spec, str):
        return _scalar(spec, seed, payload)
    if isinstance(spec, Choice):
        kind = annotation(spec)
        chosen = spec.choices[_number(seed) % len(spec.choices)]
        return kind(chosen) if spec.is_enum else chosen
    if isinstance(spec, ModelSpec):
        return _instance(spec, seed)
    if isinstance(spec, OneOf):
        index = _number(seed) % len(spec.variants)
        return _instance(spec.variants[index], seed, f"v{index}")
    if isinstance(spec, Record):
        content = {each.name: value_from(each.type, f"{seed}.{each.name}") for each in spec.record}
        return {**content, SEAL: seed} | ({"payload": json.loads(payload)} if payload is not None else {})
    if isinstance(spec, ListOf):
        return [value_from(spec.item, f"{seed}[{index}]") for index in range(1 + _number(seed) % _MAX_ITEMS)]
    if isinstance(spec, TupleOf):
        return tuple(value_from(item, f"{seed}[{index}]") for index, item in enumerate(spec.items))
    if isinstance(spec, DictOf):
        keys = [HOSTILE_TEXTS[_number(seed) % len(HOSTILE_TEXTS)], "key"]
        return {key: value_from(spec.value, f"{seed}[{key}]") for key in dict.fromkeys(keys)}
    assert isinstance(spec, OptionalOf)
    return None if _number(seed) % 3 == 0 else value_from(spec.inner, f"{seed}?")


def json_form(value: Any) -> Any:
    """Return the JSON form in which a value has to be stored. Raises `TypeError` for what JSON cannot hold.

    This is a second opinion on `n00dles.serialization.to_stored`, and shares nothing with it.
    """
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {key: json_form(item) for key, item in value.items()}
    if isinstance(value, list):
        return [json_form(item) for item in value]
    if value is None or type(value) in (str, int, float, bool):
        return value
    raise TypeError(f"{value!r} is no JSON")


def _number(seed: str) -> int:
    return int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=7).digest())


def _instance(spec: ModelSpec, seed: str, tag: str | None = None) -> BaseModel:
    fields: dict[str, Any] = {}
    for each in spec.all_fields:
        inner = f"{seed}.{each.name}"
        if not (each.has_default and _number(inner) % 2):
            fields[each.name] = value_from(each.type, inner)
    if spec.extra == "allow" and _number(seed) % 2:
        fields["undeclared"] = [seed, None]
    if tag is not None:
        fields[TAG] = tag
    return build_model(spec, tag).model_validate(fields)


def _scalar(name: str, seed: str, payload: str | None) -> Any:
    number = _number(seed)
    if name == "str":
        text = json.loads(payload) if payload is not None else HOSTILE_TEXTS[number % len(HOSTILE_TEXTS)]
        return seed + text if isinstance(text, str) else seed
    if name == "Any":
        return [seed, 1, 1.0, True, None] if payload is None else {SEAL: seed, "payload": json.loads(payload)}
    if name == "int":
        return (number + _INTEGERS[number % len(_INTEGERS)]) * (-1 if number % 2 else 1)
    return _OTHERS[name](number)


def _float(number: int) -> float:
    # One in eight is a special value, which does not depend on the rest of the seed.
    return _FLOATS[number % len(_FLOATS)] if number % 8 == 0 else number / 7


def _decimal(number: int) -> Decimal:
    return Decimal(number - 2**55).scaleb(-(number % 20))


def _datetime(number: int) -> datetime:
    moment = _EPOCH + timedelta(microseconds=number % (10**15))
    return moment.astimezone(_ZONES[number % len(_ZONES)])


_OTHERS: Mapping[str, Any] = {
    "float": _float,
    "bool": lambda number: bool(number % 2),
    "None": lambda number: None,
    "Decimal": _decimal,
    "UUID": lambda number: UUID(int=number * 2**64 + number),
    "datetime": _datetime,
    "date": lambda number: date.fromordinal(1 + number % date.max.toordinal()),
    "time": lambda number: time(number % 24, number % 60, number % 59, number % 1_000_000),
    "timedelta": lambda number: timedelta(microseconds=number % (2 * 10**12) - 10**12),
}
