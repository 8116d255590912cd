"""Rule H6, for runs with deletes: what was deleted stays away; else the exhaustive search, and what remains of it."""

from __future__ import annotations

from collections.abc import Sequence

from .calls import Call
from .search import SearchLimit, is_linearizable, loosened
from .violations import Violation, shown

__all__ = ["not_linearizable", "resurrected"]

_NODES_TO_SHRINK = 3_000


def resurrected(calls: Sequence[Call]) -> Violation | None:
    """A call after a delete shows, or was saved upon, what was there before it. Needs no revision and no search."""
    deletes = [call for call in calls if call.operation == "delete" and call.outcome == "ok"]
    if not deletes:
        return None
    saves = {call.token: call for call in calls if call.operation == "save" and call.outcome == "ok"}
    creations = {call.inputs: call for call in calls if call.operation == "load" and call.outcome == "ok"}
    for call in calls:
        if call.outcome != "ok" or call.operation == "delete":
            continue
        shows = call.token if call.operation == "load" else call.parent
        origins = [saves.get(shows) if shows is not None else None]
        if call.incarnation is not None:
            origins.append(creations.get(call.incarnation))
        for origin in origins:
            if origin is None or origin is call:
                continue
            between = next((each for each in deletes if origin.precedes(each) and each.precedes(call)), None)
            if between is not None:
                sentence = f"{shown(call)} goes on with the run as it was before {shown(between)}."
                return Violation("H6", "RESURRECTED", call.run_id, sentence, (origin, between, call))
    return None


def not_linearizable(calls: Sequence[Call], first: int = 0) -> Violation | None:
    """Search for an order of the calls of one run. Raises `SearchLimit` if that takes too long."""
    if is_linearizable(calls, first):
        return None
    conflicting = _shrunk(list(calls), first)
    sentence = "no order of these calls within their times is what a store with one record would have answered."
    return Violation("H6", "NOT_LINEARIZABLE", calls[0].run_id, sentence, tuple(conflicting))


def _shrunk(calls: list[Call], first: int) -> list[Call]:
    """Return the calls without which there would be an order: all others may take effect at any time, or never."""
    loose: set[int] = set()
    size = max(1, len(calls) // 2)
    while True:
        for start in range(0, len(calls), size):
            chunk = set(range(start, min(start + size, len(calls)))) - loose
            if chunk and _still_fails(calls, loose | chunk, first):
                loose |= chunk
        if size == 1:
            break
        size = max(1, size // 2)
    return [call for number, call in enumerate(calls) if number not in loose]


def _still_fails(calls: list[Call], loose: set[int], first: int) -> bool:
    weaker = [loosened(call) if number in loose else call for number, call in enumerate(calls)]
    try:
        return not is_linearizable(weaker, first, most_nodes=_NODES_TO_SHRINK)
    except SearchLimit:
        return False
