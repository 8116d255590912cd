"""Text that came from outside, made safe to show: no control sequences, no invisible or reordering characters."""

from __future__ import annotations

__all__ = ["escaped", "one_line"]


def escaped(text: str) -> str:
    r"""Return `text` with every character that a terminal would obey or hide written as an escape: `\x1b`, `\u202e`.

    Line breaks stay, a lone surrogate becomes `\udc80`; everything that is printed as itself is left alone.
    """
    return "".join(each if each.isprintable() or each == "\n" else _escape(each) for each in text)


def one_line(text: str) -> str:
    r"""Return `escaped(text)` with line breaks written as `\n`."""
    return escaped(text).replace("\n", "\\n")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
