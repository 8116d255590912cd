"""Values that stores lose: by a falsy test, a clean-up of texts, a column of the wrong kind, a number made a double."""

from __future__ import annotations

from typing import Any

__all__ = ["LONG_NAMES", "LONG_TEXTS", "MAY_BE_REFUSED", "NUMBERS", "OUTPUTS", "OVERWRITTEN", "TEXTS"]

OUTPUTS: tuple[tuple[str, Any], ...] = (
    ("text", "three key facts"),
    ("a dict", {"title": "Cats"}),
    ("None", None),
    ("an empty list", []),
    ("an empty dict", {}),
    ("False", False),
    ("True", True),
    ("a nested value", {"title": "Cats", "facts": [{"id": 1, "source": None}, [], {}], "tags": {}}),
    ("a list of nothings", [None, [], {}, "", 0, False]),
    ("an embedding of 300 numbers", [number / 7 - 20 for number in range(300)]),
    ("keys that look like numbers, or like nothing", {"1": "one", "": "empty", "None": None, "true": False}),
)
TEXTS: tuple[tuple[str, str], ...] = (
    ("an empty text", ""),
    ("a text of one space", " "),
    ("text with spaces before it", "  three key facts"),
    ("text with spaces behind it", "three key facts  "),
    ("text between tabs", "\tthree key facts\t"),
    ("text between newlines", "\nthree key facts\n"),
    ("lines that end with CRLF", "three\r\nkey facts\r\n"),
    ("lines that end with CR", "three\rkey facts\r"),
    ("text between no-break spaces", "\u00a0three key facts\u00a0"),
    ("quotes, lines and a backslash", 'she said "purr",\n\tthen C:\\cats'),
    ("text that is JSON", '{"title": "Cats"}'),
    ("the text 'null'", "null"),
    ("the text 'None'", "None"),
    ("the text 'true'", "true"),
    ("the text '1'", "1"),
    ("the text '007'", "007"),
    ("the text '1e5'", "1e5"),
    ("a byte order mark first", "\ufeffthree key facts"),
    ("an accent in one character (NFC)", "caf\u00e9"),
    ("the accent as a character of its own (NFD)", "cafe\u0301"),
    ("characters of three and four bytes", "猫, 😺"),
)
"""Also the whole of an output, part of one, and an input: a store may treat each in another way."""
NUMBERS: tuple[tuple[str, int | float], ...] = (
    ("0", 0),
    ("0.0", 0.0),
    ("1.0", 1.0),
    ("-1", -1),
    ("0.1 + 0.2", 0.1 + 0.2),
    ("2**53", 2**53),
)
MAY_BE_REFUSED: tuple[tuple[str, Any], ...] = (
    ("text with a NUL", "three\x00key facts"),
    ("2**53 + 1", 2**53 + 1),
    ("2**63", 2**63),
    ("-0.0", -0.0),
    ("1e308", 1e308),
    ("5e-324", 5e-324),
)
"""What a database may have no room for. A refusal is told, and is not a fault; another value in its place is one."""

_LONG = 40_000
LONG_TEXTS: tuple[tuple[str, str], ...] = (
    ("160 KB of characters of four bytes", "a" + "😺" * _LONG),
    ("120 KB of characters of three bytes", "猫" * _LONG),
    ("100 KB of lines that end with CRLF, CR and LF", "three\r\nkey\rfacts\n" * (_LONG // 6)),
)
"""Whatever is cut at 64 KB, or at another power of two, is cut in the middle of a character."""
LONG_NAMES: tuple[tuple[str, dict[str, Any]], ...] = tuple(
    (f"names that differ behind {length} characters", {"n" * length + end: end for end in ("", "a", "b")})
    for length in (64, 255)
)
OVERWRITTEN: tuple[tuple[Any, Any], ...] = (
    ("three key facts", "two"),
    ("three key facts", None),
    (None, "three key facts"),
    ({"title": "Cats", "facts": ["a", "b"]}, {"title": "Dogs"}),
    ({"part": {"title": "Cats", "tags": {"a": 1, "b": 2}}}, {"part": {"tags": {"b": 3}}}),
    ({"title": "Cats"}, {}),
    (["a", "b", "c"], ["c"]),
    (["a"], []),
    ([{"id": 1, "by": "a"}], [{"id": 1}]),
    ("three key facts", {"facts": 3}),
    ({"facts": 3}, ["three"]),
    ("three key facts", ""),
    (7, 0),
    (1, True),
    (1, 1.0),
    (True, False),
    ("purr" * _LONG, "purr"),
    ("purr", "meow" * _LONG),
    ("purr" * _LONG, "meow" * _LONG),
)
"""Outputs of a node, and what it completes with again: less, nothing, more, another type, what compares equal."""
