"""Where `sleep` is kept: modules have it by name, and the user's modules in dicts, classes and default arguments too.

What holds a builtin cannot be asked for its other holders at a bearable price, so these are the places that are looked
at. Everything that takes it from them later (a call, a thread that it is passed to) then has the stand-in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType
from typing import Any

from .callers import is_library

__all__ = ["replaced"]


def replaced(stand_ins: dict[int, Any], is_spared: Callable[[str], bool]) -> Iterator[Callable[[], None]]:
    """Put stand-ins in the place of the objects with these ids, but in spared modules; yield what undoes it."""
    for module_name, module in list(sys.modules.items()):
        names = getattr(module, "__dict__", None)
        if type(names) is not dict or is_spared(module_name):
            continue
        yield from _in_dict(names, stand_ins)
        file = names.get("__file__")
        if isinstance(file, str) and not is_library(file):
            for value in list(names.values()):
                yield from _in_value(value, module_name, stand_ins)


def _in_value(value: Any, module_name: str, stand_ins: dict[int, Any]) -> Iterator[Callable[[], None]]:
    if type(value) is dict:
        yield from _in_dict(value, stand_ins)
    elif isinstance(value, FunctionType):
        yield from _in_defaults(value, stand_ins)
    elif isinstance(value, type) and value.__module__ == module_name:
        yield from _in_class(value, stand_ins)


def _in_dict(names: dict[Any, Any], stand_ins: dict[int, Any]) -> Iterator[Callable[[], None]]:
    for name, value in list(names.items()):
        if id(value) in stand_ins:
            names[name] = stand_ins[id(value)]
            yield partial(names.__setitem__, name, value)


def _in_defaults(function: FunctionType, stand_ins: dict[int, Any]) -> Iterator[Callable[[], None]]:
    before = function.__defaults__ or ()
    if any(id(value) in stand_ins for value in before):
        function.__defaults__ = tuple(stand_ins.get(id(value), value) for value in before)
        yield partial(setattr, function, "__defaults__", before)
    if function.__kwdefaults__:
        yield from _in_dict(function.__kwdefaults__, stand_ins)


def _in_class(owner: type, stand_ins: dict[int, Any]) -> Iterator[Callable[[], None]]:
    for name, held in list(vars(owner).items()):
        inner = held.__func__ if isinstance(held, staticmethod | classmethod) else held
        if id(inner) in stand_ins:
            # A builtin in a class is not bound to its instances, and a function would be.
            setattr(owner, name, staticmethod(stand_ins[id(inner)]))
            yield partial(setattr, owner, name, held)
        elif isinstance(inner, FunctionType):
            yield from _in_defaults(inner, stand_ins)
