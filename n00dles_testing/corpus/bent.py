"""What `json.dumps` takes without a word and turns into something else."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from .hostile import Hostile

__all__ = ["BENT", "Mood", "Priority"]


class Mood(str, enum.Enum):  # noqa: UP042 - the form that is in use everywhere
    """An Enum that is a text as well."""

    CALM = "calm"


class Priority(enum.IntEnum):
    """An Enum that is a number as well."""

    HIGH = 3


class _Point(NamedTuple):
    x: int
    y: int


class _Text(str):
    """A text that knows where it comes from."""

    __slots__ = ()


class _Number(float):
    """A number with a unit."""

    __slots__ = ()


def _bent(title: str, make: Callable[[], Any], harm: str, path: str = "") -> Hostile:
    return Hostile(title, "refused", make, harm, path)


BENT: tuple[Hostile, ...] = (
    _bent("NaN", lambda: math.nan, "is written as NaN, which no strict parser reads: the whole record is lost"),
    _bent("infinity, deep inside", lambda: {"scores": [0.5, math.inf]}, "becomes null or 1e999", "['scores'][1]"),
    _bent("minus infinity", lambda: -math.inf, "becomes null or -1e999"),
    _bent("a high surrogate alone", lambda: "\ud83d", "cannot be encoded: the save of all others fails"),
    _bent("a low surrogate in a list", lambda: ["fine", "x\udc81y"], "becomes a question mark", "[1]"),
    _bent("a lone surrogate as a key", lambda: {"\udc81": 1}, "becomes a question mark"),
    _bent("a key that is a number", lambda: {1: "one"}, 'becomes "1", so it is not found again'),
    _bent("keys that collide", lambda: {1: "number", "1": "text"}, "collapse into one: a value is lost"),
    _bent("a key that is True", lambda: {True: "yes"}, 'becomes "true"'),
    _bent("a key that is None", lambda: {None: "nothing"}, 'becomes "null"'),
    _bent("a key that is a float", lambda: {"a": {0.5: "half"}}, 'becomes "0.5"', "['a']"),
    _bent("a tuple", lambda: (1, 2), "becomes a list"),
    _bent("a tuple in a list", lambda: [[], (1,)], "becomes a list", "[1]"),
    _bent("a named tuple", lambda: _Point(1, 2), "becomes a list without names"),
    _bent("an Enum of texts", lambda: Mood.CALM, "becomes its value"),
    _bent("an Enum of numbers", lambda: {"p": Priority.HIGH}, "becomes its value", "['p']"),
    _bent("a key that is an Enum", lambda: {Mood.CALM: 1}, "becomes its value"),
    _bent("a subclass of str", lambda: _Text("from the web"), "loses its class"),
    _bent("a subclass of float", lambda: _Number(1.5), "loses its class"),
    _bent("an OrderedDict", lambda: OrderedDict(b=1, a=2), "loses its class"),
    _bent("a defaultdict", lambda: defaultdict(list, a=[1]), "loses its class"),
)
"""A context refuses each, naming its path; stores that get their runs from one never see them."""
