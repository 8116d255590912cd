"""The anchors of headings on the site, as a code host makes them; those of clauses are their ids."""

from __future__ import annotations

import re

__all__ = ["anchor"]

_CLAUSE = re.compile(r"([A-Z]\d\d)(?:$|:)")


def anchor(heading: str) -> str:
    """Return the anchor of a heading: `S03: a value is kept` has the id of its clause, as a short heading would."""
    clause = _CLAUSE.match(heading)
    words = clause[1] if clause else re.sub(r"[^\w\- ]", "", heading.strip()).replace(" ", "-")
    return words.lower()
