"""Declared types as text, to be compared when a run is resumed.

The text has to be the same in every process: it names no module, since a script is `__main__` in one life and imported
in the next; it has no address; and `Optional[int]` reads like `int | None`, since Python itself prints them differently
from version to version. A model is written with its fields, since one that has got another field is another type:

    Article{title: str, tags: list[str], status: Status('draft', 'done')}

What only checks a value (bounds, patterns, validators) is left out.
"""

from __future__ import annotations

import dataclasses
import enum
import re
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel

__all__ = ["type_name"]

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def type_name(declared: Any) -> str:
    """Return a declared type in one line, with the fields of models at their first mention."""
    return _ADDRESS.sub("", _name(declared, set()))


def _name(declared: Any, told: set[type]) -> str:
    if declared is None or declared is type(None):
        return "None"
    if declared is ...:
        return "..."
    origin, arguments = get_origin(declared), get_args(declared)
    if origin is Annotated:
        return _name(arguments[0], told)
    if origin is Union or origin is types.UnionType:
        names = [_name(each, told) for each in arguments if each is not type(None)]
        return " | ".join([*names, *(["None"] if type(None) in arguments else [])])
    if origin is Literal:
        return f"Literal[{', '.join(map(_literal, arguments))}]"
    if origin is not None and arguments:
        return f"{_name(origin, told)}[{', '.join(_argument(each, told) for each in arguments)}]"
    if isinstance(declared, type):
        return _short(declared) + _content(declared, told)
    # A NewType, a type alias, a type variable.
    name = getattr(declared, "__name__", None)
    return name if isinstance(name, str) else str(declared)


def _argument(argument: Any, told: set[type]) -> str:
    if isinstance(argument, list):  # of a Callable
        return f"[{', '.join(_name(each, told) for each in argument)}]"
    return _name(argument, told)


def _literal(value: Any) -> str:
    return f"{type(value).__name__}.{value.name}" if isinstance(value, enum.Enum) else repr(value)


def _short(kind: type) -> str:
    """Return the name of a class without what it was defined in."""
    return kind.__qualname__.rpartition("<locals>.")[2]


def _content(kind: type, told: set[type]) -> str:
    """Return what a class consists of, if it can be told; nothing at its second mention, since it may hold itself."""
    if kind in told:
        return ""
    told.add(kind)
    if issubclass(kind, enum.Enum):
        return f"({', '.join(repr(each.value) for each in kind)})"
    fields = [f"{name}: {_name(declared, told)}" for name, declared in _fields(kind)]
    return f"{{{', '.join(fields)}}}" if fields else ""


def _fields(kind: type) -> Iterator[tuple[str, Any]]:
    if issubclass(kind, BaseModel):
        if not kind.__pydantic_complete__ and not kind.model_rebuild(raise_errors=False):
            return  # it waits for a class that is not there yet, and no run starts with it
        for name, field in kind.model_fields.items():
            alias = field.serialization_alias or field.alias
            yield name if alias in (None, name) else f"{name} ({alias})", field.annotation
        for name, computed in kind.model_computed_fields.items():
            yield name, computed.return_type
    elif dataclasses.is_dataclass(kind) or is_typeddict(kind):
        try:
            yield from get_type_hints(kind).items()
        except (NameError, TypeError, SyntaxError):
            yield from getattr(kind, "__annotations__", {}).items()
