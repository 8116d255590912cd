"""Rule H0: what must hold of a history so that judging it means anything; else it is VACUOUS.

Two kinds. Without the *premises* a check would be wrong: it would blame the store for the recorder's fault, so nothing
is judged. What lacks *coverage* shows too little for a PASS, but a fault in it is a fault all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from .calls import Call, History

__all__ = ["LEAST_OVERLAP", "lacks_coverage", "overlap", "violated_premise"]

LEAST_OVERLAP = 0.3
"""The share of saves that must overlap another call on the same run."""


def violated_premise(history: History, runs: Mapping[str, Sequence[Call]]) -> str | None:
    """Say which premise does not hold, or return None."""
    if not history.calls:
        return "the history holds no call"
    if not history.starts_empty:
        return "the store was not known to be empty at the start, so what a load shows may come from before"
    return (
        _repeated("saves", (call.token for call in history.calls if call.operation == "save"))
        or _repeated("inputs", (call.inputs for call in history.calls if call.operation == "load"))
        or _not_sequential(history)
        or _mixed_revisions(history)
        or next(filter(None, (_not_learned(calls) for calls in runs.values())), None)
    )


def lacks_coverage(history: History, runs: Mapping[str, Sequence[Call]]) -> str | None:
    """Say why too little was tried for a PASS, or return None."""
    succeeded = {call.operation for call in history.calls if call.outcome == "ok"}
    tried = {"load", "save", *(call.operation for call in history.calls)}
    if missing := sorted(tried - succeeded):
        return f"no {missing[0]} succeeded, so nothing was shown about it"
    share = overlap(runs.values())
    if share < LEAST_OVERLAP:
        return (
            f"{share:.0%} of the saves overlapped another call on the same run, and {LEAST_OVERLAP:.0%} must: the "
            "clients hardly met. Use more clients on fewer runs, or a slower connection"
        )
    return None


def overlap(runs: Iterable[Sequence[Call]]) -> float:
    """Return the share of saves that overlap another call on their run; the calls are in order of invocation."""
    saves = overlapping = 0
    for calls in runs:
        last = -1.0  # the latest return among earlier calls
        for number, call in enumerate(calls):
            end = _end(call)
            if call.operation == "save":
                saves += 1
                next_begins = calls[number + 1].invoked if number + 1 < len(calls) else float("inf")
                overlapping += last >= call.invoked or (call.returned is not None and next_begins <= end)
            if call.returned is not None:  # one without an end would overlap all that follow: it proves nothing
                last = max(last, end)
    return overlapping / saves if saves else 0.0


def _end(call: Call) -> float:
    return float("inf") if call.returned is None else call.returned


def _repeated(what: str, tokens: Iterable[str | None]) -> str | None:
    counts = Counter(token for token in tokens if token is not None)
    for token, count in counts.items():
        if count > 1:
            return f"{count} {what} carry the token {token!r}, so what a load shows has no one origin"
    return None


def _not_sequential(history: History) -> str | None:
    by_client: dict[str, list[Call]] = {}
    for call in sorted(history.calls, key=lambda call: call.invoked):
        by_client.setdefault(call.client, []).append(call)
    for client, calls in by_client.items():
        for earlier, later in pairwise(calls):
            if earlier.returned is None:
                return f"the client {client} went on after a call with an unknown outcome, instead of being retired"
            if earlier.returned > later.invoked:
                return f"the client {client} made two calls at once"
    return None


def _mixed_revisions(history: History) -> str | None:
    told = {
        call.revision is not None
        for call in history.calls
        if call.outcome == "ok" and call.operation in ("load", "save")
    }
    return "some calls were told a revision and some were not" if len(told) > 1 else None


def _not_learned(calls: Sequence[Call]) -> str | None:
    """Look for a save based on what no returned call has shown: the fast check would blame the store for it."""
    returns = sorted((call for call in calls if call.outcome == "ok"), key=_end)
    learned: set[tuple[str | None, int | None]] = set()
    position = 0
    for call in calls:
        while position < len(returns) and _end(returns[position]) <= call.invoked:
            learned.add((returns[position].token, returns[position].revision))
            position += 1
        if call.operation != "save" or (call.expected is None and call.executor is not None):
            continue  # an executor may issue a save before the one that it builds upon has returned
        if (call.parent, call.expected) not in learned:
            return (
                f"the client {call.client} saved {call.token!r} from token {call.parent!r} at revision "
                f"{call.expected}, which no call on run {call.run_id!r} had shown by then"
            )
    return None
