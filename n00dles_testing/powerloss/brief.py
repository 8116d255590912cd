"""Lines of a story, as long as a person reads them: of names that are numbers, and of long texts, only the ends."""

from __future__ import annotations

import re

__all__ = ["brief"]

_NAME = re.compile(r"[0-9A-Za-z_]{25,}")
_HEAD, _TAIL = 8, 4
_TEXT = re.compile(r"'([^'{}\n]{30})[^'{}\n]{20,}?(… \(\d+ characters\)|'|$)")


def brief(line: str) -> str:
    """Return a line with `4e65d3fb…5db0` for a name of 64 digits, and the beginning of each long text in quotes."""
    line = _TEXT.sub(_text, line)
    return _NAME.sub(lambda found: f"{found[0][:_HEAD]}…{found[0][-_TAIL:]}", line)


def _text(found: re.Match[str]) -> str:
    if " " not in found[1]:  # a path, perhaps
        return found[0]
    end = found[2] if found[2].startswith("…") else f"…{found[2]}"
    return f"'{found[1].rstrip()}{end}"
