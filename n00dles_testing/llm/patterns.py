"""A text that matches a regular expression."""

from __future__ import annotations

import re
from typing import Any

from .dice import Dice
from .schema_error import SchemaError

__all__ = ["matching"]

_TRIES = 500
_REPEATS = 4
_PRINTABLE = [chr(code) for code in range(0x20, 0x7F)]


def matching(pattern: str, dice: Dice, least: int = 0, most: int | None = None) -> str:
    """Return a text in which `pattern` is found, of `least` to `most` characters.

    Look-around and back-references are not built but tried: raises `SchemaError` if no try matches.
    """
    try:
        # Python parses patterns with this module and offers no other way to the parsed form.
        parsed: list[tuple[Any, Any]] = list(re._parser.parse(pattern))  # type: ignore[attr-defined]
    except re.error as error:
        raise SchemaError(f"the pattern {pattern!r} is none: {error}") from None
    for attempt in range(_TRIES):
        repeats = _REPEATS + attempt % 30  # longer texts too, for a large minLength
        made = "".join(_part(part, dice, repeats) for part in parsed)
        if least <= len(made) and (most is None or len(made) <= most) and re.search(pattern, made):
            return made
    raise SchemaError(f"no text was found that matches the pattern {pattern!r}")


def _part(part: tuple[Any, Any], dice: Dice, repeats: int) -> str:
    operation, argument = part
    match str(operation):
        case "LITERAL":
            return chr(argument)
        case "NOT_LITERAL":
            return dice.choice([character for character in _PRINTABLE if character != chr(argument)])
        case "ANY":
            return dice.choice(_PRINTABLE)
        case "IN":
            return dice.choice(_members(argument))
        case "BRANCH":
            return "".join(_part(inner, dice, repeats) for inner in dice.choice(argument[1]))
        case "SUBPATTERN":
            return "".join(_part(inner, dice, repeats) for inner in argument[-1])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            low, high, inside = argument
            count = dice.between(low, min(int(high), low + repeats))
            return "".join(_part(inner, dice, repeats) for _ in range(count) for inner in inside)
    return ""  # positions and look-around have no text of their own


def _members(items: list[tuple[Any, Any]]) -> list[str]:
    negated = bool(items) and str(items[0][0]) == "NEGATE"
    inside: set[str] = set()
    for operation, argument in items:
        match str(operation):
            case "LITERAL":
                inside.add(chr(argument))
            case "RANGE":
                inside.update(chr(code) for code in range(argument[0], min(argument[1], argument[0] + 0xFF) + 1))
            case "CATEGORY":
                inside.update(_category(str(argument)))
    chosen = set(_PRINTABLE) - inside if negated else inside
    if not chosen:
        raise SchemaError("a set of characters in the pattern has no printable one")
    return sorted(chosen)


def _category(name: str) -> set[str]:
    kind = name.removeprefix("CATEGORY_").removeprefix("NOT_")
    test = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}[kind]
    return {character for character in _PRINTABLE if bool(re.match(test, character)) != ("NOT_" in name)}
