"""Rules H8 and H9: completed nodes stay, and one executor's saves land in its own order. Neither needs a revision."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from .calls import Call
from .violations import Violation, shown

__all__ = ["lost_output", "reordered"]


def lost_output(calls: Sequence[Call]) -> Violation | None:
    """H8: a load lacks a node of a save that was acknowledged before the load began, with no delete since."""
    deletes = [call for call in calls if call.operation == "delete" and call.has_effect]
    ends = sorted(
        (call for call in calls if call.operation == "save" and call.outcome == "ok" and call.outputs), key=_returned
    )
    kept: dict[str, Call] = {}
    next_end = 0
    for call in calls:
        if call.operation != "load" or call.outcome != "ok" or call.outputs is None:
            continue
        while next_end < len(ends) and ends[next_end].precedes(call):
            for node in ends[next_end].outputs or ():
                if node not in kept or deletes:  # the latest may be the only one after a delete
                    kept[node] = ends[next_end]
            next_end += 1
        for node in kept.keys() - set(call.outputs):
            save = kept[node]
            if not any(_may_be_between(save, delete, call) for delete in deletes):
                sentence = f"{shown(call)} lacks the node {node!r} of {shown(save)}, which was acknowledged before."
                return Violation("H8", "LOST_OUTPUT", call.run_id, sentence, (save, call))
    return None


def _may_be_between(save: Call, delete: Call, load: Call) -> bool:
    return not delete.precedes(save) and not load.precedes(delete)


def _returned(call: Call) -> int:
    return call.returned or 0


def reordered(calls: Sequence[Call]) -> Violation | None:
    """H9: of two saves that an executor issued at once, the first has landed last."""
    by_executor: dict[str, list[Call]] = {}
    for call in calls:
        if call.operation == "save" and call.outcome == "ok" and call.executor is not None:
            by_executor.setdefault(call.executor, []).append(call)
    for executor, saves in by_executor.items():
        for first, second in pairwise(saves):
            if first.precedes(second) or first.invoked == second.invoked:
                continue
            proof = _landed_last(calls, first, second)
            if proof is not None:
                sentence = (
                    f"the executor {executor} issued the save of token {first.token} before that of {second.token}, "
                    "and the first has landed last."
                )
                return Violation("H9", "REORDERED", first.run_id, sentence, (first, second, *proof))
    return None


def _landed_last(calls: Sequence[Call], first: Call, second: Call) -> tuple[Call, ...] | None:
    """Return what proves that `second` is not after `first`, beyond the two; None if nothing does."""
    if first.revision is not None and second.revision is not None and first.incarnation == second.incarnation:
        return () if first.revision > second.revision else None
    for call in calls:
        if call.operation != "load" or call.outcome != "ok" or call.token != first.token:
            continue
        holds_both = call.outputs is not None and second.outputs is not None and {*second.outputs} <= {*call.outputs}
        if first.precedes(call) and second.precedes(call) and not holds_both:
            return (call,)
    return None
