"""The calls of a store above the lanes of a picture: from where each began to where it returned, in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .power_loss import PowerLoss, ToldMoment

__all__ = ["Span", "spans"]

ROWS = 3
"""Calls that overlap stand one above the other; more than so many share the last row."""
_HALF = 18
_FIRST = 14


@dataclass(frozen=True, slots=True)
class Span:
    """One call. `word` says how it ended, "ACK 2" or "error"; it is empty where that is not in the picture.

    `is_open` says that the power failed before it returned; then it goes on to the end. `row` counts from 0.
    """

    token: str
    title: str
    x: int
    end: int
    row: int
    word: str
    is_open: bool


def spans(
    loss: PowerLoss, moments: Sequence[ToldMoment], places: Sequence[int], stretch: int, crash: int
) -> tuple[Span, ...]:
    """Return the calls of which something is shown; `stretch` is half the width of a stretch that is left out."""
    at = list(zip(moments, places, strict=True))
    begun = {moment.during: x for moment, x in at if moment.what == "call"}
    returned = {moment.during: x for moment, x in at if moment.what == "return"}
    gaps = [x for moment, x in at if moment.what == "more"]
    rows = [0] * ROWS
    found = []
    for token, title, outcome in loss.ends():
        acknowledged = token in loss.finding.acknowledged
        raised = not acknowledged and outcome != loss.UNANSWERED
        start, end = begun.get(token), returned.get(token)
        if start is None and end is None and (acknowledged or raised):
            continue  # all of it is left out
        limit = crash if end is None else end
        if start is None:
            start = min(limit, max((x + stretch + _HALF for x in gaps if x < limit), default=_FIRST))
        word = "error" if raised else f"ACK {token}" if end is not None else ""
        if end is None and (acknowledged or raised):
            following = [x - 2 * _HALF - 4 for x in begun.values() if x > start] if raised else []
            end = min([*following, *(x - stretch - _HALF for x in gaps if x > start)], default=crash - _HALF)
        is_open = end is None
        stop = crash if end is None else end
        row = next((row for row, taken in enumerate(rows) if taken <= start), ROWS - 1)
        rows[row] = stop
        found.append(Span(token, title, start, max(stop, start), row, word, is_open))
    return tuple(found)
