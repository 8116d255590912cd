"""How a life ended: by itself or not, at which node, and with what still going on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ..history import Call, History, Life
from ..points import How

__all__ = [
    "ended_by_itself",
    "failed_nodes",
    "failing",
    "pairs",
    "raised",
    "resumed_after_failure",
    "segments",
    "stalled_lives",
    "still_going",
    "until_finished",
]

_FROM_OUTSIDE = ("CancelledError", "KeyboardInterrupt", "SystemExit", "GeneratorExit", "SimulatedDeath")


def pairs(history: History) -> Iterator[tuple[Life, Life]]:
    """Yield each working life with the working life after it."""
    yield from itertools.pairwise(history.working)


def until_finished(history: History) -> list[Life]:
    """Return the working lives that did not begin with a finished run: what comes after that is the affair of E17."""
    return list(itertools.takewhile(lambda life: not life.was_finished, history.working))


def resumed_after_failure(history: History) -> set[int]:
    """Return the numbers of the lives after one in which the run failed: what they call again is told by E10."""
    failed = [life.number for life in history.working if failing(life)]
    return {life.number for life in history.working if failed and life.number > failed[0]}


def _was_killed(life: Life) -> bool:
    """Whether its process died, by a kill or by something that a node did to it."""
    return not life.outcomes and not (life.end is not None and life.end.timed_out)


def ended_by_itself(life: Life) -> bool:
    """Whether it came to an outcome, and not because it was disturbed; a slow save is no reason to end."""
    return bool(life.outcomes) and (life.at_point is None or life.how is How.SLOW)


def failing(life: Life) -> bool:
    """Whether the run failed in it at a node, or else by itself and not by its store."""
    if not life.outcomes or life.outcomes[0]["ok"]:
        return False
    blame = life.outcomes[0].get("blame")
    return blame == "node" or (ended_by_itself(life) and blame != "store")


def segments(lives: Sequence[Life]) -> list[list[Life]]:
    """Return lives in rows, each ended by a failure of the run: what follows has its attempts again."""
    rows: list[list[Life]] = [[]]
    for life in lives:
        rows[-1].append(life)
        # A run that is told to end while it is failing ends as one that was told to end, and has failed all the same.
        if failing(life) or _given_up(life):
            rows.append([])
    return [row for row in rows if row]


def stalled_lives(lives: Sequence[Life], then: Life | None = None) -> list[Life]:
    """Return the deaths in a row, at the end of `lives`, in which a node was called and none was completed.

    `then` is the life after them, which shows what of the last one has landed in the store.
    """
    row: list[Life] = []
    for number, life in enumerate(lives, 1):
        following = lives[number] if number < len(lives) else then
        # A save that was under way at the death may have landed.
        has_landed = following is not None and not set(following.stored) <= set(life.stored)
        if not _was_killed(life) or _has_completed_a_node(life) or has_landed:
            row = []
        elif life.calls:
            row.append(life)
    return row


def _has_completed_a_node(life: Life) -> bool:
    return any(
        save.acknowledged and call.node in save.nodes
        for call in life.calls
        if call.succeeded
        for save in life.saves
        if save.began > (call.ended or 0)
    )


def raised(call: Call) -> bool:
    """Whether a call ended with an error of its own; one that was cancelled has not failed."""
    return call.error is not None and not call.error.startswith(_FROM_OUTSIDE)


def failed_nodes(life: Life) -> list[str]:
    """Return the nodes whose last call in this life raised, or returned what the executor then refused."""
    last = {call.node: call for call in life.calls}
    given_up = _given_up(life)
    return [node for node, call in last.items() if raised(call) or (call.succeeded and node in given_up)]


def _given_up(life: Life) -> set[str]:
    """Return the nodes of which the executor said that no attempt is left."""
    return {
        said.fields["node"]
        for said in life.events
        if said.event == "node_failed" and said.fields.get("fallback") is None
    }


def still_going(life: Life) -> Iterator[str]:
    """Yield what was running, or has begun, after the executor had returned or raised."""
    end = life.outcome_at
    if end is None or len(life.outcomes) > 1:
        return
    for call in life.calls:
        if call.began > end:
            yield f"`{call.node}` was started"
        elif call.ended is None or call.ended > end:
            yield f"`{call.node}` was still running"
    for save in life.saves:
        if save.began > end:
            yield "a save was begun"
        elif save.ended is None or save.ended > end:
            yield "a save was still going on"
