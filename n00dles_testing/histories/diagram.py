"""The calls that conflict as a time diagram in text: one row a client, then each call with its interval.

Columns keep the order of all starts and ends, not their distances: a call may take a thousand times as long as another.
"""

from __future__ import annotations

from collections.abc import Sequence

from .calls import Call

__all__ = ["diagram"]

_LONGEST_TOKEN = 16
_GAP = 2


def diagram(calls: Sequence[Call], *, origin: int = 0) -> list[str]:
    """Return lines that show when each call began and ended. Times are told in ms since `origin` (nanoseconds)."""
    if not calls:
        return []
    columns, right = _columns(calls)
    clients = list(dict.fromkeys(call.client for call in sorted(calls, key=lambda call: call.invoked)))
    margin = max(len(_short(client)) for client in clients) + 2
    rows = [_row(client, calls, columns, right, margin) for client in clients]
    return [*rows, f"{'time':<{margin}}{'─' * right}▶", *_legend(calls, origin, margin)]


def label(call: Call) -> str:
    """Return a call with its tokens and revisions, in a few words."""
    if call.operation == "delete":
        return "delete" if call.outcome == "ok" else f"delete {_outcome(call)}"
    if call.operation == "load":
        what = "nothing saved" if call.token is None else _short(call.token)
        return f"load: {what}{_revision(call.revision)}" if call.outcome == "ok" else f"load {_outcome(call)}"
    base = "new run" if call.parent is None else _short(call.parent)
    became = f" →{_revision(call.revision)}" if call.revision is not None else ""
    text = f"save {_short(call.token or '')} on {base}{_revision(call.expected)}{became}"
    return text if call.outcome == "ok" else f"{text} {_outcome(call)}"


def _outcome(call: Call) -> str:
    return "? no answer" if call.outcome == "unknown" else f"✗ {_short(call.error or 'refused')}"


def _revision(revision: int | None) -> str:
    return "" if revision is None else f" r{revision}"


def _short(text: str) -> str:
    text = "".join(character if character.isprintable() else "�" for character in text)
    return text if len(text) <= _LONGEST_TOKEN else f"{text[: _LONGEST_TOKEN - 1]}…"


def _columns(calls: Sequence[Call]) -> tuple[dict[int, int], int]:
    """Return the column of every start and end, with room for each call's label, and the width."""
    starts = {call.invoked for call in calls}
    points = sorted(starts | {call.returned for call in calls if call.returned is not None})
    columns: dict[int, int] = {}
    column = 0
    for point in points:
        for call in calls:
            if call.returned == point and call.invoked < point:
                column = max(column, columns[call.invoked] + len(label(call)) + 3)
        columns[point] = column
        column += _GAP
        for call in calls:
            if call.returned == call.invoked == point:
                column = max(column, columns[point] + len(label(call)) + 3 + _GAP)
    ends = [columns[call.invoked] + len(label(call)) + 4 for call in calls]
    return columns, max(column, *ends) + _GAP


def _row(client: str, calls: Sequence[Call], columns: dict[int, int], right: int, margin: int) -> str:
    line = [" "] * (right + 1)
    for call in calls:
        if call.client != client:
            continue
        begin, text = columns[call.invoked], label(call)
        end = right - 1 if call.returned is None else max(columns[call.returned], begin + len(text) + 3)
        bar = "├" + text.center(end - begin - 1, "─") + ("┄" if call.returned is None else "┤")
        line[begin : end + 1] = bar
    return f"{_short(client):<{margin}}{''.join(line).rstrip()}"


def _legend(calls: Sequence[Call], origin: int, margin: int) -> list[str]:
    lines = []
    for call in sorted(calls, key=lambda call: call.invoked):
        end = "no answer" if call.returned is None else f"{_ms(call.returned, origin)} ms"
        lines.append(f"{_short(call.client):<{margin}}{_ms(call.invoked, origin)} ms … {end}   {label(call)}")
    return lines


def _ms(time: int, origin: int) -> str:
    return f"{(time - origin) / 1e6:.3f}"
