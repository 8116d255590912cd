"""Where two texts differ, so that a reader's eye need not search for it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

__all__ = ["marked"]

_WORDS = re.compile(r"'[^']{0,40}'|\w+|\s+|[^\w\s]")
"""A short quoted text is one word: keys and names differ as a whole."""
_MOST_WORDS = 1500
_ALIKE = 0.5
"""So much of the shorter text, white space aside, must be in the longer one: marks all over a text show nothing."""

Parts = list[tuple[str, bool]]


def marked(allowed: str, came: str) -> tuple[Parts, Parts]:
    """Return both texts in parts, each with whether only this text has it.

    Nothing is marked of long texts, and of two that have little in common, such as a rule beside a record.
    """
    left, right = _WORDS.findall(allowed), _WORDS.findall(came)
    if max(len(left), len(right)) > _MOST_WORDS:
        return [(allowed, False)], [(came, False)]
    ours, theirs = Parts(), Parts()
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    codes = matcher.get_opcodes()
    common = sum(_count(left[start:end]) for kind, start, end, _, _ in codes if kind == "equal")
    if common < _ALIKE * min(_count(left), _count(right)):
        return [(allowed, False)], [(came, False)]
    for kind, start, end, other_start, other_end in codes:
        _extend(ours, "".join(left[start:end]), is_marked=kind != "equal")
        _extend(theirs, "".join(right[other_start:other_end]), is_marked=kind != "equal")
    return ours, theirs


def _count(words: Sequence[str]) -> int:
    return sum(not word.isspace() for word in words)


def _extend(parts: Parts, text: str, *, is_marked: bool) -> None:
    if text:
        parts.append((text, is_marked))
