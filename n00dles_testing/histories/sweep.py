"""Rules H2 to H5: is the history of one run linearizable? For runs without deletes, by one pass over it.

The store's own revisions say in which order the saves took effect: the save at revision r has position 2r, a load of r
has position 2r+1, and a conflict on expected e comes after the save at e+1. An order by position respects real time if
and only if no call begins after one of a higher position has returned, so the check is exact, and takes O(n log n).
"""

from __future__ import annotations

from collections.abc import Sequence

from .calls import Call
from .violations import Violation, shown

__all__ = ["sweep"]


def sweep(calls: Sequence[Call], first: int = 0) -> Violation | None:
    """Judge the calls of one run, in order of invocation, of which none is a delete.

    `first` is the revision of a run that was created and never saved.
    """
    at: dict[int, Call] = {}
    found = _split(calls, at, first) or _lost_update(calls, at) or _gap(calls, at, first)
    return found or _real_time(calls, {id(save): revision for revision, save in at.items()})


def _split(calls: Sequence[Call], at: dict[int, Call], first: int) -> Violation | None:
    """H2; fills `at` with the save of each revision: acknowledged, or seen by a load."""
    saves = {call.token: call for call in calls if call.operation == "save" and call.outcome != "fail"}
    tokens: dict[int, tuple[str | None, Call]] = {}
    revisions: dict[str, tuple[int, Call]] = {}
    for call in calls:
        revision, token = call.revision, call.token
        if revision is None or call.outcome != "ok" or call.operation == "delete":
            continue
        kept, other = tokens.setdefault(revision, (token, call))
        if kept != token:
            sentence = f"revision {revision} is both {_named(kept)} and {_named(token)}."
            return Violation("H2", "SPLIT_REV", call.run_id, sentence, (other, call))
        if (token is None) != (revision == first):
            sentence = f"{shown(call)}: revision {first} is the run as it was created, and every other is a save."
            return Violation("H2", "SPLIT_REV", call.run_id, sentence, (call,))
        if token is None:
            continue
        before, other = revisions.setdefault(token, (revision, call))
        if before != revision:
            sentence = f"token {token} is both at revision {before} and at revision {revision}."
            return Violation("H2", "SPLIT_REV", call.run_id, sentence, (other, call))
        at[revision] = saves[token]
    return None


def _named(token: str | None) -> str:
    return "the run without a save" if token is None else f"token {token}"


def _lost_update(calls: Sequence[Call], at: dict[int, Call]) -> Violation | None:
    """H3: a save that has taken effect at another revision than the one after its base."""
    for revision, save in sorted(at.items()):
        if save.expected is None or save.expected == revision - 1:
            continue
        overwritten = at.get(revision - 1)
        sentence = (
            f"{save.client} saved token {save.token} from revision {save.expected}, and it has become revision "
            f"{revision}: what was saved in between is overwritten."
        )
        others = () if overwritten is None or overwritten is save else (overwritten,)
        return Violation("H3", "LOST_UPDATE", save.run_id, sentence, (*others, save))
    return None


def _gap(calls: Sequence[Call], at: dict[int, Call], first: int) -> Violation | None:
    """H4; fills the gaps in `at` by saves with an unknown outcome: the earliest, since none of them has an end."""
    unknown: dict[int, Call] = {}
    seen = {id(save) for save in at.values()}
    for call in calls:
        if (
            call.operation == "save"
            and call.outcome == "unknown"
            and id(call) not in seen
            and call.expected is not None
        ):
            unknown.setdefault(call.expected + 1, call)
    highest = max(at, default=first)
    for revision in range(first + 1, highest + 1):
        if revision not in at and revision not in unknown:
            above = at[min(higher for higher in at if higher > revision)]
            sentence = f"{shown(above)} has taken effect, and nobody has saved revision {revision}."
            return Violation("H4", "REV_GAP", above.run_id, sentence, (above,))
        if revision not in at:
            at[revision] = unknown[revision]
    conflicts = [(call.expected + 1, call) for call in calls if call.is_conflict and call.expected is not None]
    for needed, call in sorted(conflicts, key=lambda pair: pair[0]):
        if needed in at:
            continue
        if needed not in unknown or (needed > first + 1 and needed - 1 not in at):
            sentence = f"{shown(call)} had no competitor: nobody has saved revision {needed}."
            return Violation("H4", "SPURIOUS_CONFLICT", call.run_id, sentence, (call,))
        at[needed] = unknown[needed]
    return None


def _real_time(calls: Sequence[Call], revisions: dict[int, int]) -> Violation | None:
    """H5: sweep the calls by time, and keep the highest position among those that have returned."""
    positions: dict[int, int] = {}
    ends = sorted((call for call in calls if call.returned is not None), key=_returned)
    highest, holder, next_end = -1, None, 0
    for call in calls:
        begin = call.invoked
        while next_end < len(ends) and ends[next_end].returned < begin:  # type: ignore[operator]
            reached = positions.get(id(ends[next_end]), -1)
            if reached > highest:
                highest, holder = reached, ends[next_end]
            next_end += 1
        position = _position(call, revisions, highest)
        if position is None:
            continue
        if position < highest and holder is not None:
            sentence = f"{shown(call)} began after {shown(holder)} had returned."
            if holder.is_conflict and call.operation == "save" and position == 2 * (holder.expected or 0) + 2:
                # What it was refused for had not begun: that blames the conflict, not the save.
                return Violation("H4", "SPURIOUS_CONFLICT", call.run_id, sentence, (holder, call))
            return Violation("H5", "REALTIME", call.run_id, sentence, (holder, call))
        positions[id(call)] = position
    return None


def _returned(call: Call) -> int:
    return call.returned or 0


def _position(call: Call, revisions: dict[int, int], highest: int) -> int | None:
    if call.operation == "load":
        return None if call.revision is None or call.outcome != "ok" else 2 * call.revision + 1
    if call.is_conflict:
        return None if call.expected is None else max(2 * call.expected + 3, highest)
    revision = revisions.get(id(call))
    return None if revision is None else 2 * revision
