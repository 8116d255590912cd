"""E13: after a cancel, an interrupt or a timeout nothing starts, runs or saves, and the record resumes.

A deploy cancels, a user presses Ctrl-C, a request runs out of time. The run ends as what it is (`CancelledError`,
`KeyboardInterrupt`, `TimeoutError`), no later node starts, and when `run` has returned or raised, nothing of it is
running or saving any more. What was stored stays, and the run can be resumed.

Seen in: agno-agi/agno #7718 (a cancellation is swallowed as a skipped step, and the run goes on); agno-agi/agno #6089
(Ctrl-C leaves a session that is refused later); langchain-ai/langgraph PR #6701 (a cancelled save still lands, behind
newer ones).

Fix: the author of an executor never catches `BaseException` or `CancelledError` without raising it again, awaits what
it has cancelled before it raises, and waits for what cannot be cancelled (a body in a thread, a commit). The author of
a pipeline does the same in its bodies.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Case
from ..history import Life
from ..points import How
from .documentation import documented
from .endings import failed_nodes, pairs, still_going

__all__ = ["CLAUSE"]

_ENDS = {
    How.CANCEL: ("CancelledError",),
    How.TIMEOUT: ("TimeoutError",),
    How.INTERRUPT: ("KeyboardInterrupt", "CancelledError"),
}
_WORDS = {How.CANCEL: "cancelled", How.TIMEOUT: "out of time", How.INTERRUPT: "interrupted"}


def nothing_goes_on(case: Case) -> Iterator[tuple[str, str]]:
    """Yield what went on after a run was told to end, wrong ends, and records that cannot be read afterwards."""
    for life in case.history.working:
        if _was_told_to_end(life):
            yield from _wrong_end(life)
            yield from _goes_on(life)
    for life, following in pairs(case.history):
        if _was_told_to_end(life) and following.disk is not None and "error" in following.disk:
            yield (
                f"the record cannot be read after life {life.number} was {_word(life)}: {following.disk['error']}",
                "the last checkpoint stays as it was, and loads",
            )


def told_to_end(case: Case) -> int:
    """Count lives that were cancelled, interrupted, or ran out of time."""
    return sum(_was_told_to_end(life) for life in case.history.working)


def _was_told_to_end(life: Life) -> bool:
    delivered = life.left is None or life.left.get("delivered", True)
    return life.how in _ENDS and life.at_point is not None and bool(life.outcomes) and delivered


def _word(life: Life) -> str:
    return _WORDS.get(life.how or How.CANCEL, "")


def _wrong_end(life: Life) -> Iterator[tuple[str, str]]:
    outcome = life.outcomes[0]
    if outcome["ok"]:
        # One that was told as it was ending may well end.
        after = [call.node for call in life.calls if call.began > (life.point_at or 0)]
        if after:
            yield (
                f"life {life.number} was {_word(life)}, and went on to its end: `{after[0]}` was called after that",
                "whoever cancels a run wants no more calls to be made and paid for",
            )
    elif outcome["error"] not in _ENDS[life.how or How.CANCEL] and not _has_a_reason(life):
        wanted = _ENDS[life.how or How.CANCEL][0]
        yield (
            f"life {life.number} was {_word(life)}, and ended as {outcome['error']}: {outcome['message']}",
            f"the caller has to see {wanted}, or it takes the end for a failure of a node",
        )


def _has_a_reason(life: Life) -> bool:
    """Whether the store is at fault, or a node: in this life, or in earlier ones if this one calls none."""
    return life.outcomes[0].get("blame") == "store" or bool(failed_nodes(life)) or not life.calls


def _goes_on(life: Life) -> Iterator[tuple[str, str]]:
    # A task that is alive and neither calls nor saves may be of the store: the worker of a pool, say.
    going = next(still_going(life), None)
    if going is not None:
        yield (
            f"life {life.number} was {_word(life)}, and {going} after `run` had ended",
            "what is cancelled is awaited before `run` ends, and what cannot be cancelled as well",
        )


CLAUSE = documented(
    __doc__,
    check=nothing_goes_on,
    occasions=told_to_end,
    without="no life was cancelled, interrupted or out of time",
    sharpens=("E04",),
)
