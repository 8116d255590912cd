"""E11: attempts count over all lives, a kill inside the back-off resumes, and a poison node ends as failed.

A retry budget that starts anew with each process is none: a node that fails, or takes its process with it, is then
called, and paid for, for ever. A node is called as often as its `retry` and its fallbacks allow, over all lives
together; only the one attempt that a death has cut short need not count. A life that dies between two attempts goes on
with the next one. A node that kills its process every time ends as a failed run after a stated number of lives. A run
that has failed and is resumed has its attempts again.

Seen in: stepflow-ai/stepflow #637 (attempts start again at 1 after each crash); vectorize-io/hindsight #2675 (a job
that kills its worker is claimed as new each time, and nothing counts that); vercel/workflow PR #3035 (a step that ends
by a hard time limit writes no failure, and is retried without bound).

Fix: the author of an executor saves each failed attempt before the next one is made, and counts a life before its first
call, so that one which dies is known. The author of a pipeline looks at what a poison node does to its process: memory,
signals, native code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from n00dles.executor import MAX_STALLED_LIVES

from ..case import Case
from ..history import Call, Life
from .documentation import documented
from .endings import ended_by_itself, failing, raised, segments, stalled_lives, until_finished
from .wording import named

__all__ = ["CLAUSE"]


def attempts_over_all_lives(case: Case) -> Iterator[tuple[str, str]]:
    """Yield nodes that were called too often, given up too early, or called though they kill every process."""
    for lives in segments(until_finished(case.history)):
        yield from _too_often(case, lives)
        yield from _given_up(case, lives)
        yield from _poison(case, lives)


def attempts_carried_over(case: Case) -> int:
    """Count nodes of which an attempt had failed in a life with another one after it, and rows of deaths."""
    count = 0
    for lives in segments(until_finished(case.history)):
        count += sum(len({call.node for call in life.calls if raised(call)}) for life in lives[:-1])
        count += len(stalled_lives(lives)) >= MAX_STALLED_LIVES
    return count


def _too_often(case: Case, lives: Sequence[Life]) -> Iterator[tuple[str, str]]:
    called: dict[str, list[Call]] = {}
    for life in lives:
        for call in life.calls:
            called.setdefault(call.node, []).append(call)
    for node, calls in called.items():
        allowed = case.baseline.shape.attempts.get(node)
        if allowed is None or len(calls) <= allowed:
            continue
        lost = sum(_may_be_lost(life, node) for life in lives)
        if len(calls) > allowed + lost:
            yield (
                f"`{node}` was called {len(calls)} times in {len(lives)} lives, where its retries allow {allowed}"
                + (f" and the deaths excuse {lost} more" if lost else ""),
                "attempts count over all lives of a run, not anew in each",
            )


def _may_be_lost(life: Life, node: str) -> bool:
    """Whether the end of a life has cut short the node's last attempt there, or kept it from being counted."""
    calls = [call for call in life.calls if call.node == node]
    if not calls or ended_by_itself(life):
        return False
    ended = calls[-1].ended
    if ended is None or not raised(calls[-1]):
        return True
    told = [
        said.position
        for said in life.events
        if said.event in ("node_retried", "node_failed") and said.fields["node"] == node and said.position > ended
    ]
    return not any(save.acknowledged and save.began > told[0] for save in life.saves) if told else True


def _given_up(case: Case, lives: Sequence[Life]) -> Iterator[tuple[str, str]]:
    """A run that fails in a life that calls nothing, though another attempt of a node had been announced."""
    *earlier, last = lives
    if not earlier or not failing(last) or last.calls or len(stalled_lives(earlier, last)) >= MAX_STALLED_LIVES:
        return
    announced = {said.fields["node"] for life in lives for said in life.events if said.event == "node_retried"}
    for node in sorted(announced - set(last.stored)):
        calls = [call for life in lives for call in life.calls if call.node == node]
        allowed = case.baseline.shape.attempts.get(node, 0)
        if calls and raised(calls[-1]) and len(calls) < allowed:
            yield (
                f"`{node}` was given up in life {last.number} after {len(calls)} of its {allowed} attempts",
                "the process died between two attempts; a resume makes the next one",
            )


def _poison(case: Case, lives: Sequence[Life]) -> Iterator[tuple[str, str]]:
    row: list[Life] = []
    for number, life in enumerate(lives):
        row = stalled_lives(lives[:number], life)
        nodes = list(dict.fromkeys(call.node for call in life.calls))
        budgets = [case.baseline.shape.attempts.get(node, 0) for each in row for node in {c.node for c in each.calls}]
        if nodes and len(row) >= max(MAX_STALLED_LIVES, *budgets, 0):
            yield (
                f"{len(row)} lives in a row had died without a completed node, and life {life.number} called "
                f"{named(nodes)} again",
                f"a node that kills its process every time ends as a failed run after {MAX_STALLED_LIVES} lives",
            )
            return


CLAUSE = documented(
    __doc__,
    check=attempts_over_all_lives,
    occasions=attempts_carried_over,
    without="no attempt failed in a life with another one after it",
    sharpens=("E04", "E05"),
)
