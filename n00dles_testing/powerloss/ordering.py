"""In which order calls took effect, and what a call did that never returned."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

from ..tracing.calls import Event, TracedCall
from .contents import BLOCK
from .operations import NEVER

__all__ = ["alone", "orders"]

_AT_MOST = 1000
_WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2")


def orders(events: Sequence[Event], found: Callable[[int], bytes]) -> Iterator[list[Event]]:
    """Give what may have happened, in its order, the likeliest first; at most 1000 guesses.

    Calls are taken in the order in which they ended. Of two threads, too: the tracer lets no two calls overlap that are
    about the same bytes, sizes or names, so the order of those that do makes no difference to the files. Only what
    makes a file is taken where it began, since another thread may open and use the file before it has ended. A call
    that never returned, because its process was killed in it, comes last. It may have done nothing, all of it, or, if
    it was a write, as many first pages as are in the file, whose bytes `found` gives for its number.
    """
    ended = sorted((event for event in events if _end(event) != NEVER), key=_moment)
    unended = [call for call in events if isinstance(call, TracedCall) and call.exited is None]
    for outcomes in islice(product(*(_outcomes(call, found) for call in unended)), _AT_MOST):
        yield ended + [call for outcome in outcomes for call in outcome]


def alone(events: Sequence[Event]) -> set[int]:
    """Return the calls, by the position at which they began, that no other call overlapped."""
    spans = sorted((event.entered, _end(event)) for event in events if isinstance(event, TracedCall))
    found = set()
    latest = -1
    for number, (entered, exited) in enumerate(spans):
        if latest < entered and bisect_left(spans, (exited, -1)) == number + 1:
            found.add(entered)
        latest = max(latest, exited)
    return found


def _end(event: Event) -> int:
    if isinstance(event, TracedCall):
        return NEVER if event.exited is None else event.exited
    return event.entered


def _moment(event: Event) -> int:
    makes = isinstance(event, TracedCall) and event.flags & os.O_CREAT and event.file and event.file.kind == "none"
    return event.entered if makes else _end(event)


def _outcomes(call: TracedCall, found: Callable[[int], bytes]) -> list[tuple[TracedCall, ...]]:
    """Return what a call that never returned may have done: nothing, itself, or a part of itself."""
    outcomes: list[tuple[TracedCall, ...]] = [(), (call,)]
    if call.name in _WRITES and call.offset is not None and call.file is not None:
        there = memoryview(found(call.file.inode))[call.offset :]
        data, end = memoryview(call.data), 0
        for cut in range(BLOCK - call.offset % BLOCK, len(data), BLOCK):
            if data[end:cut] != there[end:cut]:
                break
            end = cut
        if end:
            outcomes.append((replace(call, data=call.data[:end]),))
    return outcomes
