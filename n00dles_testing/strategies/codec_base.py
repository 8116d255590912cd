"""Specs as compact JSON bytes, and back; what is left at its default is left out."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

__all__ = ["adapter_of", "dump"]


def dump(spec: Any) -> bytes:
    """Return a spec as JSON: equal specs give equal bytes, in every process."""
    return adapter_of(type(spec)).dump_json(spec, exclude_defaults=True)


def adapter_of(kind: type) -> TypeAdapter[Any]:
    """Return the strict validator of a kind of spec, made once."""
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


_adapters: dict[type, TypeAdapter[Any]] = {}
