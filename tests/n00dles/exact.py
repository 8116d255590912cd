"""Comparing values so that what JSON tells apart is told apart."""

from __future__ import annotations

from typing import Any


def typed(value: Any) -> Any:
    """Return a form in which 1, 1.0 and True differ, and 0.0 and -0.0 too."""
    if isinstance(value, dict):
        return {key: typed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [typed(part) for part in value]
    return type(value).__name__, repr(value)
