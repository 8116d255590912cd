"""In which order the calls of several threads took effect, where they overlapped: all that could have been."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

from ..tracing.calls import Event, TracedCall
from .contents import BLOCK
from .operations import NEVER

__all__ = ["alone", "orders"]

_AT_MOST = 128
_OPENS = ("open", "openat", "openat2", "creat")
_SYNCS = ("fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync")
_WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2")
_SIZES = ("truncate", "ftruncate", "fallocate")


def orders(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Give the orders to be tried, at most 128, the likeliest first.

    A call took effect between its beginning and its end, so calls that did not overlap are in order. The first guess is
    the order in which they ended. Where two overlapped that are about the same bytes, size or name, the other order of
    these two is tried as well. A call that never returned, because its process was killed in it, comes last and may
    have done nothing, all of it, or, if it was a long write, its first pages.
    """
    ended = sorted((event for event in events if _end(event) != NEVER), key=_end)
    unended = [call for call in events if isinstance(call, TracedCall) and call.exited is None]
    swaps = _swaps([event for event in ended if isinstance(event, TracedCall)])
    choices = [_outcomes(call) for call in unended]
    plans = product(product((False, True), repeat=len(swaps)), product(*choices))
    for swapped, outcomes in islice(plans, _AT_MOST):
        order = list(ended)
        for (earlier, later), is_swapped in zip(swaps, swapped, strict=True):
            if is_swapped:
                order.remove(later)
                order.insert(order.index(earlier), later)
        yield order + [call for outcome in outcomes for call in outcome]


def alone(events: Sequence[Event]) -> set[int]:
    """Return the calls, by the position at which they began, that no call which may change something overlapped."""
    spans = sorted((event.entered, _end(event)) for event in events if isinstance(event, TracedCall))
    found = set()
    latest = -1
    for number, (entered, exited) in enumerate(spans):
        following = bisect_left(spans, (exited, -1))
        if latest < entered and following == number + 1:
            found.add(entered)
        latest = max(latest, exited)
    return found


def _end(event: Event) -> int:
    if isinstance(event, TracedCall):
        return NEVER if event.exited is None else event.exited
    return event.entered


def _outcomes(call: TracedCall) -> list[tuple[TracedCall, ...]]:
    """Return what a call that never returned may have done: itself, cut, or nothing."""
    if call.injected == "SIGKILL":  # killed before it began
        return [()]
    parts = []
    if call.name in _WRITES and call.offset is not None:
        first = BLOCK - call.offset % BLOCK
        parts = [replace(call, data=call.data[:length]) for length in range(first, len(call.data), BLOCK)]
    return [(), (call,), *((part,) for part in reversed(parts))]


def _swaps(calls: Sequence[TracedCall]) -> list[tuple[TracedCall, TracedCall]]:
    """Return the pairs that overlapped and whose order matters, at most 7: each one more doubles what must be tried."""
    found = []
    for number, later in enumerate(calls):
        for earlier in reversed(calls[:number]):
            if _end(earlier) < later.entered:
                break
            if _matters(earlier, later):
                found.append((earlier, later))
    return found[:7]


def _matters(one: TracedCall, other: TracedCall) -> bool:
    if one.name in _SYNCS or other.name in _SYNCS:
        return False
    if one.name in _WRITES and other.name in _WRITES:
        return _same_file(one, other) and _bytes_overlap(one, other)
    return _same_file(one, other) or bool(_paths(one) & _paths(other))


def _same_file(one: TracedCall, other: TracedCall) -> bool:
    return bool(_numbers(one) & _numbers(other))


def _numbers(call: TracedCall) -> set[int]:
    """Return the files whose bytes or size a call changes."""
    numbers = {call.inode if call.name in _OPENS else 0}
    if call.file is not None and call.name in _WRITES + _SIZES:
        numbers.add(call.file.inode)
    return numbers - {0}


def _paths(call: TracedCall) -> set[str]:
    """Return the names that a call makes, takes away or needs; that of a folder as well, since it may be moved."""
    if call.name in _WRITES + _SIZES:
        return set()
    return {file.path for file in (call.file, call.other) if file is not None}


def _bytes_overlap(one: TracedCall, other: TracedCall) -> bool:
    if one.offset is None or other.offset is None:
        return False
    return max(one.offset, other.offset) < min(one.offset + len(one.data), other.offset + len(other.data))
