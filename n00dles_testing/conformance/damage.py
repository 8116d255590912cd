"""Damage to a file: what a full disk, a failing one, a wrong restore or a later release leave behind."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .raw_files import forms_of

__all__ = [
    "FUTURE",
    "VERSION",
    "Damage",
    "Kind",
    "cuts",
    "flip_in_the_middle",
    "flips",
    "holds",
    "places_of",
    "versions",
]

Kind = Literal["cut", "value", "structure", "version", "foreign"]
"""`value` is a bit of a stored text; `structure` one of the bytes around it, or more than a bit."""

FUTURE = 999
VERSION = re.compile(r"version|schema|format", re.IGNORECASE)

_BIT = 1
"""The lowest: it makes a quote another sign, and a hex digit a letter or a digit, so that a value stays a text."""
_FEW_BYTES = 10


@dataclass(frozen=True, slots=True)
class Damage:
    """A file, what happened to it, and what is in it then."""

    title: str
    kind: Kind
    file: str
    content: bytes


def holds(content: bytes, token: str) -> bool:
    """Whether a file holds a text, in a usual encoding."""
    return any(form in content for form in forms_of(token))


def places_of(content: bytes, token: str) -> list[tuple[int, int]]:
    """Return where a text stands and how long it is there, in the first encoding in which it is found."""
    for form in forms_of(token):
        if found := [(match.start(), len(form)) for match in re.finditer(re.escape(form), content)]:
            return found
    return []


def cuts(file: str, content: bytes, token: str, *, page: int = 1) -> Iterator[Damage]:
    """Return the file cut to nothing, to a few bytes, to half, in the middle of `token`, and before its last byte.

    A database loses whole pages: what is lost of one page, nobody can see without a checksum.
    """
    sizes = {0: "emptied", _FEW_BYTES: f"cut to {_FEW_BYTES} bytes", len(content) // 2 // page * page: "cut to half"}
    for at, length in places_of(content, token)[-1:]:
        sizes[(at + length // 2) // page * page] = "cut in the middle of the last output"
    if page == 1:
        sizes[len(content) - 1] = "without its last byte"
    for size, title in sizes.items():
        if size < len(content):
            yield Damage(title, "cut", file, content[:size])


def flips(file: str, content: bytes, first: str, last: str) -> Iterator[Damage]:
    """Return the file with one bit flipped in a text, in the byte before and the one behind it, wherever it stands."""
    for token, what in ((first, "an input"), (last, "the last output")):
        places = places_of(content, token)
        kinds: tuple[tuple[str, Kind, list[int]], ...] = (
            ("in", "value", [at for at, _ in places]),
            ("before", "structure", [at - 1 for at, _ in places if at]),
            ("behind", "structure", [at + length for at, length in places if at + length < len(content)]),
        )
        for where, kind, flipped in kinds:
            if flipped:
                yield Damage(f"one bit flipped {where} the text of {what}", kind, file, _flipped(content, flipped))


def flip_in_the_middle(file: str, content: bytes) -> Iterator[Damage]:
    """Return the file with one bit flipped, for one in which no text is seen."""
    if content:
        yield Damage("one bit flipped in the middle", "structure", file, _flipped(content, [len(content) // 2]))


def versions(file: str, content: bytes) -> Iterator[Damage]:
    """Return a JSON file as a later release would write it, for each field that looks like the number of a version."""
    try:
        record = json.loads(content)
    except ValueError:
        return
    for name, value in record.items() if isinstance(record, dict) else ():
        if VERSION.search(name) and type(value) is int:
            newer = json.dumps({**record, name: FUTURE}).encode()
            yield Damage(f"{name!r} is {FUTURE}, as a later release may write it", "version", file, newer)


def _flipped(content: bytes, places: list[int]) -> bytes:
    flipped = bytearray(content)
    for place in places:
        flipped[place] ^= _BIT
    return bytes(flipped)
