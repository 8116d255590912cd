"""Rule H10: a worker that was stopped, and wakes up when another has gone on with its run, is refused.

The recorder must have stopped the client's process before its save was carried out (`Call.woken`). Then the save is
late beyond doubt: no overlap explains it, whatever the store's own order is. A store that keeps no revision cannot
refuse it; which of the two states it then keeps is told, and that nothing is lost is for the rules H3 and H8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .calls import Call
from .violations import Violation, shown

__all__ = ["takeovers", "which_state_wins", "zombie"]


def takeovers(calls: Sequence[Call]) -> Iterator[tuple[Call, Call]]:
    """Yield each save of a client that was stopped, and the last call by which another went on meanwhile, or deleted.

    Went on: after the last call of the stopped client had returned, so that it cannot have seen it, and before it woke.
    """
    for save in calls:
        if save.operation != "save" or save.woken is None:
            continue
        seen = max(
            (call.returned or 0 for call in calls if call.client == save.client and call.precedes(save)), default=0
        )
        meanwhile = [
            call
            for call in calls
            if call.client != save.client
            and call.has_effect
            and call.returned is not None
            and seen < call.invoked
            and call.returned < save.woken
        ]
        if meanwhile:
            yield save, max(meanwhile, key=lambda call: call.returned or 0)


def zombie(calls: Sequence[Call]) -> Violation | None:
    """Look for a late save that a store with revisions has acknowledged."""
    for save, other in takeovers(calls):
        if save.outcome == "ok":
            sentence = (
                f"{save.client} was stopped before its save, and woke up after {shown(other)}: its save had to be "
                "refused, and was acknowledged."
            )
            return Violation("H10", "ZOMBIE", save.run_id, sentence, (other, save))
    return None


def which_state_wins(calls: Sequence[Call]) -> Iterator[str]:
    """Say what a store without revisions keeps of each late save: what the loads after it show."""
    for save, other in takeovers(calls):
        if save.outcome != "ok" or other.operation != "save":
            continue
        later = next((call for call in calls if call.operation == "load" and save.precedes(call)), None)
        if later is None or later.outputs is None or save.outputs is None or other.outputs is None:
            continue
        theirs, late = {*other.outputs} <= {*later.outputs}, {*save.outputs} <= {*later.outputs}
        keeps = {(True, True): "both", (True, False): "the other's", (False, True): "the stopped worker's"}
        told = keeps.get((theirs, late), "neither")
        yield f"run {save.run_id!r}: {save.client} woke up after {shown(other)}, and of the two states {told} was kept"
