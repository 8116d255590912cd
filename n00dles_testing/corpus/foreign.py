"""What JSON has no form for, and what no parser gets through."""

from __future__ import annotations

import dataclasses
import enum
import pathlib
import uuid
from collections import deque
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pydantic import SecretStr

from .hostile import Hostile

__all__ = ["BOTTOMLESS", "FOREIGN", "Colour", "Finding"]

_BOTTOM = 5000


class Colour(enum.Enum):
    """An Enum that is nothing else."""

    RED = "red"


@dataclasses.dataclass
class Finding:
    """A dataclass as agents return it."""

    title: str
    score: float


def _foreign(title: str, make: Callable[[], Any], harm: str, path: str = "") -> Hostile:
    return Hostile(title, "refused", make, harm, path)


FOREIGN: tuple[Hostile, ...] = (
    _foreign("bytes", lambda: b"\x00\xff", "becomes the text \"b'\\x00\\xff'\""),
    _foreign("a bytearray", lambda: {"raw": bytearray(b"abc")}, "becomes a text or a list of numbers", "['raw']"),
    _foreign("a set", lambda: {1, 2}, "becomes a list in any order, or the text '{1, 2}'"),
    _foreign("a frozenset in a list", lambda: [frozenset({"a"})], "becomes a list or a text", "[0]"),
    _foreign("a deque", lambda: deque([1, 2]), "becomes a list or a text"),
    _foreign("a time without a zone", lambda: datetime(2026, 10, 25, 2, 30), "becomes a text, or one in UTC"),
    _foreign("a time in UTC", lambda: datetime(2026, 10, 25, 2, 30, tzinfo=UTC), "becomes a text"),
    _foreign(
        "a time with zone and fold",
        lambda: datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=timezone(timedelta(hours=1), "CET")),
        "loses its fold, which is an hour",
    ),
    _foreign("a date", lambda: {"due": date(2026, 10, 25)}, "becomes a text, or midnight", "['due']"),
    _foreign("a time of day", lambda: time(2, 30, fold=1), "becomes a text"),
    _foreign("a duration", lambda: timedelta(days=1, microseconds=1), "becomes seconds as a double"),
    _foreign("a Decimal", lambda: {"price": Decimal("0.10")}, "becomes 0.1 as a double", "['price']"),
    _foreign("a Fraction", lambda: Fraction(1, 3), "becomes a double or a text"),
    _foreign("a complex number", lambda: 1 + 2j, "becomes the text '(1+2j)'"),
    _foreign("a UUID", lambda: uuid.UUID(int=7), "becomes a text"),
    _foreign("an Enum", lambda: {"colour": Colour.RED}, "becomes None, or the text 'Colour.RED'", "['colour']"),
    _foreign("a dataclass", lambda: Finding("purr", 0.5), "becomes None, or its repr as a text"),
    _foreign("a dataclass deep inside", lambda: {"a": [0, {"b": Finding("purr", 0.5)}]}, "is dropped", "['a'][1]['b']"),
    _foreign("a secret", lambda: {"key": SecretStr("sk-1")}, "becomes asterisks, which a resume uses", "['key']"),
    _foreign("a path", lambda: pathlib.PurePosixPath("a/b"), "becomes a text"),
    _foreign("a range", lambda: range(3), "becomes the text 'range(0, 3)'"),
    _foreign("a class", lambda: Finding, "becomes a text, or fails in another process"),
    _foreign("an Ellipsis", lambda: [...], "becomes null or a text", "[0]"),
)
"""A context refuses each, naming its path. A store that takes one from elsewhere has a form of its own for it."""


def _too_deep() -> Any:
    value: Any = []
    for _ in range(_BOTTOM):
        value = [value]
    return value


def _list_in_itself() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def _dict_in_itself() -> Any:
    value: dict[str, Any] = {}
    value["parent"] = {"child": value}
    return value


BOTTOMLESS: tuple[Hostile, ...] = (
    _foreign("lists in lists, 5000 deep", _too_deep, "is saved, and overflows the parser when it is read", "[0][0]"),
    _foreign("a list that contains itself", _list_in_itself, "never ends", "[0][0]"),
    _foreign("a dict that contains itself", _dict_in_itself, "never ends", "['parent']['child']"),
)
"""A context refuses each. They are not handed to a store: what a crash of its parser would show is C03's."""
