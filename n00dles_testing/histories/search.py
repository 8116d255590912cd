"""Rule H6: the exhaustive search for an order, for runs with deletes, which show no position.

After Wing and Gong (1993), with the memo of Lowe (2017): from the state before the first call, try every call that may
take effect next, and never visit the same set of calls done with the same state twice. Limits make it UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from .calls import Call

__all__ = ["MOST_CALLS", "MOST_NODES", "SearchLimit", "is_linearizable", "loosened"]

MOST_CALLS = 200
MOST_NODES = 300_000


class SearchLimit(Exception):
    """The search ended without an answer; the message says at which limit."""


class _State(NamedTuple):
    """The run as the store holds it. `life` counts creations; an absent run has `exists` False."""

    exists: bool = False
    was_created: bool = False
    incarnation: str | None = None
    revision: int = 0
    token: str | None = None


def is_linearizable(
    calls: Sequence[Call], first: int = 0, *, most_calls: int = MOST_CALLS, most_nodes: int = MOST_NODES
) -> bool:
    """Whether some order of the calls of one run respects real time and is what a correct store would have done.

    `first` is the revision of a run that was created and never saved.

    Raises `SearchLimit` for more calls, or after more steps.
    """
    relevant = [call for call in calls if _counts(call)]
    if len(relevant) > most_calls:
        raise SearchLimit(f"{len(relevant)} calls on one run, and the search takes {most_calls}")
    return _Search(relevant, first, most_nodes).succeeds()


def loosened(call: Call) -> Call:
    """Return a call that constrains nothing: it may take effect at any time, or never. For making a failure smaller."""
    if call.operation == "save" and call.outcome == "ok":
        return replace(call, outcome="unknown", invoked=-1, returned=None, revision=None)
    if call.operation == "load" and call.outcome == "ok" and call.incarnation in (None, call.inputs):
        return replace(call, outcome="unknown", invoked=-1, returned=None, token=None, revision=None, created=None)
    if call.operation == "delete" or call.outcome == "unknown":
        return replace(call, outcome="unknown", invoked=-1, returned=None)
    return replace(call, outcome="fail", error="left out")


def _counts(call: Call) -> bool:
    """A call that failed took no effect, and only a conflict says anything about the state."""
    return call.outcome != "fail" or call.is_conflict


class _Search:
    def __init__(self, calls: list[Call], first: int, most_nodes: int) -> None:
        self._calls = sorted(calls, key=lambda call: call.invoked)
        self._first, self._most_nodes = first, most_nodes
        self._required = sum(1 << number for number, call in enumerate(self._calls) if call.returned is not None)
        self._nodes = 0

    def succeeds(self) -> bool:
        if not self._required:
            return True
        start = (0, _State())
        seen = {start}
        path = [self._next(*start)]
        while path:
            if not path[-1]:
                path.pop()
                continue
            step = path[-1].pop()
            if step in seen:
                continue
            seen.add(step)
            self._nodes += 1
            if self._nodes > self._most_nodes:
                raise SearchLimit(f"{self._most_nodes} steps of the search were not enough")
            if not self._required & ~step[0]:
                return True
            path.append(self._next(*step))
        return False

    def _next(self, done: int, state: _State) -> list[tuple[int, _State]]:
        """Return what may follow: calls that began before any that is not done has returned."""
        steps = []
        first_end: float = float("inf")
        first_open = (~done & (done + 1)).bit_length() - 1
        for number in range(first_open, len(self._calls)):
            call = self._calls[number]
            if done >> number & 1:
                continue
            if call.invoked > first_end:
                break
            if call.returned is not None:
                first_end = min(first_end, call.returned)
            after = _after(state, call, self._first)
            if after is None:
                continue
            if _only_reads(call):
                # It changes nothing wherever it comes, so if there is an order, there is one in which it comes now.
                return [(done | 1 << number, after)]
            if after != state or call.returned is not None:
                steps.append((done | 1 << number, after))
        steps.reverse()  # the earliest is tried first
        return steps


def _only_reads(call: Call) -> bool:
    """Whether it certainly changed nothing. A load that shows a new run may have created it."""
    if call.operation == "load":
        return call.outcome == "ok" and (call.created is False or call.token is not None)
    return call.is_conflict


def _after(state: _State, call: Call, first: int) -> _State | None:
    """Return the state after a call has taken effect with its recorded outcome, or None if that cannot be."""
    if call.operation == "delete":
        return _State(was_created=state.was_created)
    if call.operation == "load":
        return _after_load(state, call, first)
    is_current = (
        state.exists
        and call.expected in (None, state.revision)
        and call.parent == state.token
        and (None in (call.incarnation, state.incarnation) or call.incarnation == state.incarnation)
    )
    if call.is_conflict:
        return state if state.was_created and not is_current else None
    if not is_current or (call.outcome == "ok" and call.revision != state.revision + 1):
        return None
    return state._replace(revision=state.revision + 1, token=call.token)


def _after_load(state: _State, call: Call, first: int) -> _State | None:
    creates = not state.exists
    if creates:
        state = _State(exists=True, was_created=True, incarnation=call.inputs, revision=first)
    if call.outcome == "unknown":
        return state
    agrees = (
        call.created in (None, creates)
        and (call.revision, call.token) == (state.revision, state.token)
        and (None in (call.incarnation, state.incarnation) or call.incarnation == state.incarnation)
    )
    if not agrees:
        return None
    # A run whose creator told no inputs has those that the first load shows.
    return state if state.incarnation is not None else state._replace(incarnation=call.incarnation)
