"""The page for people who were not there: one file, clauses × stores, and the story and time line of every failure.

It needs no network and no script, and a policy in its head forbids both. Whatever came from a store, a run id or a
model is escaped by the template, its control and bidirectional characters are shown as escapes, and its length is
bounded. Equal reports give an equal page.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from .check_report import CheckReport
from .escape import one_line, pieces
from .page_view import ClauseText, Page

__all__ = ["render_page"]


def render_page(reports: Sequence[CheckReport], contract: Sequence[ClauseText]) -> str:
    """Return the page about these reports, one store each; `contract` says what the clauses are, in its order.

    Raises `ValueError` if there is no report: an empty page would look like a good one.
    """
    if not reports:
        raise ValueError("there is no report to show")
    environment = _environment()
    style = environment.get_template("page.css").render()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page = Page.of(reports, contract)
    return environment.get_template("page.html.jinja").render(page=page, style_digest=digest) + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("n00dles_testing", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["pieces"] = pieces
    environment.filters["plain"] = _plain
    environment.filters["fitting"] = _fitting
    return environment


_WIDTH_OF_A_CHARACTER = 6.2
"""Of the small text in a picture, in pixels: rather more than most have."""


def _plain(text: str, most: int) -> str:
    """Return a text for a place where no element can stand: on one line, with escapes, and not longer than `most`."""
    shown = one_line(text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def _fitting(text: str, width: int) -> str:
    """Return as much of a text as fits into so many pixels."""
    most = int(width / _WIDTH_OF_A_CHARACTER)
    return text if len(text) <= most else f"{text[: most - 1]}…" if most > 1 else ""
