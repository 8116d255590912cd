"""Rules H1, H7 and H3 without revisions: where the things come from that loads show. They need no order of calls."""

from __future__ import annotations

from collections.abc import Sequence

from .calls import Call
from .violations import Violation, shown

__all__ = ["creator", "fork", "phantom", "two_creations"]


def phantom(calls: Sequence[Call]) -> Violation | None:
    """H1: a load shows a token that nobody saved, or whose save was refused."""
    saves = {call.token: call for call in calls if call.operation == "save"}
    for call in calls:
        if call.operation != "load" or call.outcome != "ok" or call.token is None:
            continue
        save = saves.get(call.token)
        if save is None:
            sentence = f"{shown(call)} shows what nobody has saved."
            return Violation("H1", "PHANTOM", call.run_id, sentence, (call,))
        if save.outcome == "fail":
            sentence = f"{shown(call)} shows a save that was refused ({save.error}), so must have had no effect."
            return Violation("H1", "PHANTOM", call.run_id, sentence, (save, call))
        if call.precedes(save):
            sentence = f"{shown(call)} had returned before its save began."
            return Violation("H1", "PHANTOM", call.run_id, sentence, (call, save))
    return None


def fork(calls: Sequence[Call]) -> Violation | None:
    """H3 for a store without revisions: two acknowledged saves on one base, and no later load holds the work of both.

    A store that merges outputs may accept both, and is believed if outputs were recorded and later loads show them.
    """
    first: dict[tuple[str | None, str | None], Call] = {}
    has_deletes = any(call.operation == "delete" for call in calls)
    for call in calls:
        if call.operation != "save" or call.outcome != "ok":
            continue
        if has_deletes and call.parent is None and call.incarnation is None:
            continue  # two saves upon an empty run, which may be two runs
        other = first.setdefault((call.incarnation, call.parent), call)
        if other is not call and not _merged(calls, other, call):
            base = "the run as it was created" if call.parent is None else f"token {call.parent}"
            sentence = (
                f"{other.client} and {call.client} both saved upon {base}, and both saves were acknowledged: one of "
                "them has overwritten the other."
            )
            return Violation("H3", "LOST_UPDATE", call.run_id, sentence, (other, call))
    return None


def _merged(calls: Sequence[Call], one: Call, two: Call) -> bool:
    if one.outputs is None or two.outputs is None:
        return False
    both = {*one.outputs, *two.outputs}
    later = [
        call.outputs
        for call in calls
        if call.operation == "load" and call.outcome == "ok" and one.precedes(call) and two.precedes(call)
    ]
    return bool(later) and all(outputs is not None and both <= set(outputs) for outputs in later)


def creator(calls: Sequence[Call], first: int = 0) -> Call | None:
    """Return the load that has created a run without deletes, as far as that can be told; the calls are in order."""
    loads = [call for call in calls if call.operation == "load" and call.outcome != "fail"]
    told = next((call for call in loads if call.created), None)
    if told is not None:
        return told
    lives = [call.incarnation for call in loads if call.incarnation is not None]
    possible = (
        call for call in loads if _may_have_created(call, first) and (not lives or call.inputs in (None, lives[0]))
    )
    return next(possible, None)


def _may_have_created(load: Call, first: int) -> bool:
    if load.outcome == "unknown":
        return True
    return load.created is not False and load.revision in (None, first) and load.token is None


def two_creations(calls: Sequence[Call], first: int = 0) -> Violation | None:
    """H7: more than one call created the run, or loads show the inputs of different calls; for runs without deletes."""
    loads = [call for call in calls if call.operation == "load" and call.outcome == "ok"]
    if not loads:
        return None
    created = [call for call in loads if call.created]
    if len(created) > 1:
        sentence = f"{created[0].client} and {created[1].client} were both told that they had created the run."
        return Violation("H7", "DOUBLE_CREATE", loads[0].run_id, sentence, (created[0], created[1]))
    showing = [call for call in loads if call.incarnation is not None]
    for call in showing:
        if call.incarnation != showing[0].incarnation:
            sentence = (
                f"{showing[0].client} was shown the inputs {showing[0].incarnation}, and {call.client} the inputs "
                f"{call.incarnation} of the same run."
            )
            return Violation("H7", "DOUBLE_CREATE", call.run_id, sentence, (showing[0], call))
    return _not_by_its_creator(calls, loads, first)


def _not_by_its_creator(calls: Sequence[Call], loads: Sequence[Call], revision: int) -> Violation | None:
    first = creator(calls, revision)
    if first is None:
        sentence = f"{shown(loads[0])}, though no call can have created the run."
        return Violation("H7", "NOT_CREATED", loads[0].run_id, sentence, (loads[0],))
    if first.outcome == "ok" and (first.token is not None or first.revision not in (None, revision)):
        sentence = f"{first.client} was told that it had created the run, and was shown a record that was saved before."
        return Violation("H7", "DOUBLE_CREATE", first.run_id, sentence, (first,))
    wrong = (call for call in loads if call.incarnation is not None and first.inputs not in (None, call.incarnation))
    if (call := next(wrong, None)) is not None:
        sentence = f"{first.client} created the run with inputs {first.inputs}, and {call.client} was shown others."
        return Violation("H7", "DOUBLE_CREATE", call.run_id, sentence, (first, call))
    if (call := next((call for call in calls if call.precedes(first)), None)) is not None:
        sentence = f"{shown(call)} had returned before {first.client} began the call that created the run."
        return Violation("H7", "NOT_CREATED", call.run_id, sentence, (call, first))
    return None
