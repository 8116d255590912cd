"""Where the links of a Markdown page lead, and what of a page can be linked to on a code host. The site has its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["anchors_of", "dead_links", "links_of"]

_FENCED = re.compile(r"(?ms)^( *)```.*?^\1```$")
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_HEADING = re.compile(r"(?m)^#{1,6} +(.*?) *$")
_ID = re.compile(r'<a id="([^"]+)"></a>')


def dead_links(page: Path) -> list[str]:
    """Return the relative links of a page that lead to no file, or to nothing in it."""
    return [
        f"{path}#{anchor}"
        for path, anchor in links_of(page)
        if not (target := page.parent / path if path else page).exists()
        or (anchor and anchor not in anchors_of(target.resolve()))
    ]


def links_of(page: Path) -> Iterator[tuple[str, str]]:
    """Yield file and anchor of each relative link; either may be empty."""
    for path, anchor in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        if "://" not in path and not path.startswith("mailto:"):
            yield path, anchor


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """Return the anchors of a page: of its headings, as a code host makes them, and those that it has of its own."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return frozenset([*map(_slug, _HEADING.findall(text)), *_ID.findall(text)])


def _slug(heading: str) -> str:
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown).replace(" ", "-").lower()
