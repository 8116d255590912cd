"""Values that stores lose: by a falsy test, a clean-up of texts, a column of the wrong kind, a number made a double."""

from __future__ import annotations

from typing import Any

__all__ = ["MAY_BE_REFUSED", "NUMBERS", "OUTPUTS", "TEXTS"]

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
