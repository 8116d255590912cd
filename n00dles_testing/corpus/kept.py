"""What JSON holds exactly: a store keeps it as it is, or refuses it."""

from __future__ import annotations

import copy
from typing import Any

from .hostile import Hostile

__all__ = ["KEPT"]

_NESTED = 150
_WIDE = 2000
_DIGITS = 4000


def _kept(title: str, value: Any, harm: str) -> Hostile:
    return Hostile(title, "kept", lambda: copy.deepcopy(value), harm)


def _nested_lists() -> Any:
    value: Any = "the innermost"
    for _ in range(_NESTED):
        value = [value]
    return value


def _nested_dicts() -> Any:
    value: Any = "the innermost"
    for _ in range(_NESTED):
        value = {"next": value}
    return value


_TEXTS = (
    _kept("text with a NUL", "three\x00key facts", "ends at the NUL, or is refused by the database"),
    _kept("text of one NUL", "\x00", "becomes empty"),
    _kept("a byte order mark first", "\ufeffthree key facts", "is taken for a mark and dropped"),
    _kept("a byte order mark within", "three\ufeffkey facts", "is dropped by a clean-up"),
    _kept("characters of four bytes", "😺𝄞𐍈", "is cut, or becomes question marks, in a column of three bytes"),
    _kept("an emoji of several code points", "👩‍💻👍🏽", "falls apart when joiners are dropped"),
    _kept("NFC: an accent in one character", "caf\u00e9", "becomes two characters"),
    _kept("NFD: an accent as a character of its own", "cafe\u0301", "becomes one character"),
    _kept("the last code points", "\uffff\U0010ffff", "is refused as no character"),
    _kept("control characters", "\x01\x07\x08\x0b\x0c\x1b[0m\x7f", "is escaped twice, or dropped"),
    _kept("line separators of Unicode", "three\u2028key\u2029facts\x85here", "splits a file of lines"),
    _kept("text from right to left", "\u202eאבג\u202c", "loses its marks of direction"),
    _kept("a letter that grows in upper case", "straße, İstanbul", "changes its length when its case is folded"),
    _kept("an escape of JSON as text", "\\u0000\\ud83d\\n\\\\", "is unescaped once too often"),
    _kept("text in quotes of SQL", "Robert'); DROP TABLE runs;--", "ends the statement"),
    _kept("a format of Python and of C", "%s %d {0} {name} $1 ?", "is taken for a placeholder"),
)
_NUMBERS = (
    _kept("2**53 - 1", 2**53 - 1, "is the last that every parser reads exactly"),
    _kept("2**53 + 1", 2**53 + 1, "becomes 2**53 as a double"),
    _kept("-(2**53) - 1", -(2**53) - 1, "becomes -(2**53) as a double"),
    _kept("2**63", 2**63, "does not fit 64 bits with a sign"),
    _kept("-(2**63) - 1", -(2**63) - 1, "does not fit 64 bits with a sign"),
    _kept("2**64", 2**64, "does not fit 64 bits, and becomes a double"),
    _kept("10**40", 10**40, "becomes 1e40"),
    _kept("an integer of 4000 digits", 10**_DIGITS // 7, "is refused by a parser with a limit, after it was saved"),
    _kept("-0.0", -0.0, "becomes 0, or 0.0"),
    _kept("1.0 beside 1 and true", [1.0, 1, True, 0.0, 0, False], "are made equal"),
    _kept("1e308", 1e308, "becomes infinite, or an integer of 309 digits"),
    _kept("5e-324", 5e-324, "becomes 0.0"),
    _kept("0.1 + 0.2", 0.1 + 0.2, "is rounded to 0.3"),
    _kept("1e16", 1e16, "becomes an integer"),
    _kept("1.7976931348623157e308", 1.7976931348623157e308, "becomes infinite by rounding"),
)
_KEYS = (
    _kept("keys in NFC and NFD", {"caf\u00e9": "NFC", "cafe\u0301": "NFD"}, "collapse into one"),
    _kept("keys that differ by case", {"Run": 1, "run": 2, "RUN": 3}, "collapse into one"),
    _kept("keys that differ by a space", {"run": 1, "run ": 2, " run": 3}, "collapse into one"),
    _kept("keys that look like other types", {"1": 1, "1.0": 2, "true": 3, "null": 4, "": 5}, "become numbers"),
    _kept("keys with dots and dollars", {"a.b": 1, "$set": 2, "a": {"b": 3}}, "become paths or operators"),
    _kept("keys of JavaScript", {"__proto__": {"x": 1}, "constructor": 2, "toString": 3}, "set a prototype"),
    _kept("a key with a NUL", {"three\x00key": 1, "three": 2}, "collapse into one"),
    _kept("a key of 10 000 characters", {"key" * 3333 + "!": 1}, "is cut, or fails in an index"),
)
_SHAPES = (
    Hostile("lists in lists, 150 deep", "kept", _nested_lists, "overflows the parser when it is read"),
    Hostile("dicts in dicts, 150 deep", "kept", _nested_dicts, "overflows the parser when it is read"),
    Hostile("2000 dicts", "kept", lambda: [{"id": n, "none": None} for n in range(_WIDE)], "is cut"),
    _kept("nothings in containers", [None, [], {}, "", 0, False, [[]], {"": {}}], "are dropped as empty"),
)
_LOOK_ALIKES = (
    _kept("text like a time", "2026-10-25T02:30:00+01:00", "comes back as a datetime"),
    _kept("text like a day", "2026-10-25", "comes back as a date"),
    _kept("text like a UUID", "12345678-1234-5678-1234-567812345678", "comes back as a UUID"),
    _kept("text like base64", "aGVsbG8gd29ybGQ=", "comes back as bytes"),
    _kept("texts like numbers", ["NaN", "Infinity", "1e5", "0x10", "007", "1_000", "١٢"], "come back as numbers"),
    _kept("text that is JSON", '{"title": "Cats"}', "is parsed"),
    _kept("text that is a pickle", "gASVCwAAAAAAAAB9lIwBYZRLAXMu", "is unpickled"),
    _kept("the tag of MongoDB", {"$date": "2026-10-25T02:30:00Z"}, "comes back as a datetime"),
    _kept("the tag of jsonpickle", {"py/object": "builtins.set", "py/set": [1]}, "comes back as an object"),
    _kept("the tag of LangChain", {"lc": 1, "type": "constructor", "id": ["x"], "kwargs": {}}, "is constructed"),
    _kept("the tag of a home-made encoder", {"__type__": "set", "value": [1, 2]}, "comes back as a set"),
    _kept("a reference of JSON Schema", {"$ref": "#/defs/x", "$id": "x"}, "is resolved"),
)

KEPT: tuple[Hostile, ...] = (*_TEXTS, *_NUMBERS, *_KEYS, *_SHAPES, *_LOOK_ALIKES)
"""A store keeps each of these exactly; one that has no room for it refuses it, naming the node."""
