"""Numbers for a JSON schema."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from .dice import Dice
from .schema_error import SchemaError

__all__ = ["number"]

_SPREAD = 1000


def number(schema: dict[str, Any], dice: Dice, *, whole: bool) -> int | float:
    """Return a number within the bounds of `schema`, a multiple of what it asks for; two decimal places if free.

    Raises `SchemaError` if none is found.
    """
    # Counted in steps of Decimal, since 3 * 0.1 is no multiple of 0.1 in binary.
    step = Decimal(str(schema.get("multipleOf", 1 if whole else "0.01")))
    if whole:
        step *= step.as_integer_ratio()[1]
    low, high = _lowest(schema, step), _highest(schema, step)
    if low is None:
        low = 0 if high is None else high - _SPREAD
    high = low + _SPREAD if high is None else min(high, low + _SPREAD * _SPREAD)
    if low > high:
        return _in_a_narrow_gap(schema, whole)
    value = step * dice.between(low, high)
    return int(value) if whole else float(value)


def _lowest(schema: dict[str, Any], step: Decimal) -> int | None:
    bounds = []
    if schema.get("minimum") is not None:
        bounds.append(math.ceil(Decimal(str(schema["minimum"])) / step))
    if schema.get("exclusiveMinimum") is not None:
        bounds.append(math.floor(Decimal(str(schema["exclusiveMinimum"])) / step) + 1)
    return max(bounds, default=None)


def _highest(schema: dict[str, Any], step: Decimal) -> int | None:
    bounds = []
    if schema.get("maximum") is not None:
        bounds.append(math.floor(Decimal(str(schema["maximum"])) / step))
    if schema.get("exclusiveMaximum") is not None:
        bounds.append(math.ceil(Decimal(str(schema["exclusiveMaximum"])) / step) - 1)
    return min(bounds, default=None)


def _in_a_narrow_gap(schema: dict[str, Any], whole: bool) -> float:
    """Return the middle of bounds that are closer together than a hundredth."""
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if whole or "multipleOf" in schema or low is None or high is None or low > high:
        raise SchemaError(f"no number fits the schema {schema!r}")
    return float(low + high) / 2
