"""A clause's module says in its docstring what the clause means; here that text becomes the clause's documentation.

The first line is its id and its title, as it stands in a table. Paragraphs on what it means to a user follow. Then come
`Seen in:` with public reports, separated by semicolons (`owner/name #1 (what was seen there)`), where there are any,
and `Fix:` with what the author of a pipeline or of an executor does about it.
"""

from __future__ import annotations

import re
from typing import Any

from ..case import Clause

__all__ = ["documented"]

_SEEN_IN = "Seen in: "
_FIX = "Fix: "
_NEXT_REPORT = re.compile(r"; (?=[\w.-]+/[\w.-]+ (?:PR )?#)")


def documented(doc: str | None, **parts: Any) -> Clause:
    """Return the clause that `doc` documents, with its check and the other `parts` of a `Clause`.

    Raises `ValueError` for a text that lacks one of its parts.
    """
    head, *paragraphs = [" ".join(paragraph.split()) for paragraph in (doc or "").split("\n\n")]
    id_, _, title = head.partition(": ")
    seen_in = next((text for text in paragraphs if text.startswith(_SEEN_IN)), "")
    fixed_from = next((n for n, text in enumerate(paragraphs) if text.startswith(_FIX)), len(paragraphs))
    fix = [text.strip() for text in paragraphs[fixed_from:] if text]
    meaning = [text for text in paragraphs[:fixed_from] if text and text != seen_in]
    if not (title and meaning and fix):
        raise ValueError(f"the docstring of clause {head!r} needs a title, a meaning, and a paragraph 'Fix: …'")
    return Clause(
        id=id_,
        title=title.rstrip("."),
        meaning="\n\n".join(meaning),
        seen_in=tuple(_NEXT_REPORT.split(seen_in.removeprefix(_SEEN_IN).rstrip("."))) if seen_in else (),
        fix="\n\n".join(fix).removeprefix(_FIX),
        **parts,
    )
