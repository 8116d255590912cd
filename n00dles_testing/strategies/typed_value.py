"""What a node gets for a stored value: the type that it declares, made anew."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from .model_classes import annotation
from .types import TypeSpec

__all__ = ["typed_value"]


def typed_value(declared: TypeSpec | None, text: str) -> Any:
    """Return the value that is stored as JSON `text` in a declared type; in plain JSON types where there is none.

    Raises `pydantic.ValidationError` if it does not fit.
    """
    return _validator("Any" if declared is None else declared).validate_json(text, by_alias=True, by_name=True)


@lru_cache(maxsize=1024)
def _validator(declared: TypeSpec) -> TypeAdapter[Any]:
    return TypeAdapter(annotation(declared))
