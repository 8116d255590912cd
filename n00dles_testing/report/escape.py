"""Text that came from outside, made safe to show: no control sequences, no invisible or reordering characters."""

from __future__ import annotations

from itertools import groupby

__all__ = ["escaped", "one_line", "pieces"]


def escaped(text: str) -> str:
    r"""Return `text` with every character that a terminal would obey or hide written as an escape: `\x1b`, `\u202e`.

    Line breaks stay, a lone surrogate becomes `\udc80`; everything that is printed as itself is left alone.
    """
    return "".join(each if _is_plain(each) else _escape(each) for each in text)


def one_line(text: str) -> str:
    r"""Return `escaped(text)` with line breaks written as `\n`."""
    return escaped(text).replace("\n", "\\n")


def pieces(text: str, most: int = 2000) -> list[tuple[str, bool]]:
    r"""Return `escaped(text)` in pieces, each with whether it is an escape: who shows it can tell it from a typed `\n`.

    Of a text of more than `most` characters the beginning is given, and how long it is.
    """
    shown = text if len(text) <= most else text[:most]
    found = [
        ("".join(group) if is_plain else "".join(map(_escape, group)), not is_plain)
        for is_plain, group in groupby(shown, key=_is_plain)
    ]
    return found if shown is text else [*found, (f"… ({len(text)} characters)", True)]


def _is_plain(character: str) -> bool:
    return character.isprintable() or character == "\n"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
