"""E10: a failing node leaves the earlier checkpoints; a resume runs it and what follows, and nothing before it.

A node that fails for good ends the run, and costs nothing that was paid for before it. When its cause is repaired, a
resume calls it again, and goes on from there. That it failed is never stored as if it were its output.

Seen in: PrefectHQ/prefect #15658 (a failed attempt is stored as a result, and a later run loads the exception);
microsoft/agent-framework #2075 (one branch fails, and a resume runs all of them again).

Fix: the author of an executor stores an output only when the node has returned one, and keeps errors apart from
outputs. A failed run stays resumable: a resume skips what is stored, and calls the node that failed.

It is not a fault of your pipeline: report it to the executor's authors with the token that its replay names, and check
the store with `n00dles-testing check`. A home-made loop is its own executor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Case
from ..history import Life
from .documentation import documented
from .endings import failed_nodes, failing, pairs, raised
from .wording import named

__all__ = ["CLAUSE"]


def failures_leave_checkpoints(case: Case) -> Iterator[tuple[str, str]]:
    """Yield checkpoints that a failure took along, nodes before it that run again, and failures stored as outputs."""
    yield from _failures_stored(case)
    for life, following in pairs(case.history):
        failed = failed_nodes(life) if failing(life) else []
        if failed:
            yield from _lost(life, following, failed)
            yield from _again(case, following, failed)
            yield from _not_run(case, following, failed)


def failures_resumed(case: Case) -> int:
    """Count lives in which the run failed at a node, with a life after it."""
    return sum(failing(life) and bool(failed_nodes(life)) for life, _ in pairs(case.history))


def _lost(life: Life, following: Life, failed: list[str]) -> Iterator[tuple[str, str]]:
    if following.disk is None or "error" in following.disk or not following.knows_disk:
        return
    kept = dict.fromkeys(life.stored) | {node: None for s in life.saves if s.acknowledged for node in s.nodes}
    lost = [node for node in kept if node not in following.stored]
    if lost:
        yield (
            f"{named(failed)} failed in life {life.number}, and the checkpoint of {named(lost)} was gone with it",
            "a failure leaves what was stored before it",
        )


def _again(case: Case, following: Life, failed: list[str]) -> Iterator[tuple[str, str]]:
    if following.was_finished:
        return
    completed = case.history.completed_before(following)
    again = [node for node in dict.fromkeys(call.node for call in following.calls) if node in completed]
    if again:
        yield (
            f"{named(failed)} had failed, and the resume in life {following.number} called {named(again)} again, which "
            "had not",
            "a resume runs what failed and what follows it, and nothing before",
        )


def _not_run(case: Case, following: Life, failed: list[str]) -> Iterator[tuple[str, str]]:
    """A resume that was left alone, and did not call what had failed. Another node may fail before its turn comes."""
    if not following.outcomes or following.at_point is not None:
        return
    due = [node for node in failed if node not in case.history.completed_before(following)]
    started = {node for node, _ in following.starts}
    if due and started.isdisjoint(due) and (following.outcomes[0]["ok"] or not started):
        outcome = following.outcomes[0]
        ended = "reported success" if outcome["ok"] else f"raised {outcome['error']}"
        yield (
            f"{named(due)} had failed, and the resume in life {following.number} {ended} without calling it",
            "a failed run can be resumed, once the cause is repaired",
        )


def _failures_stored(case: Case) -> Iterator[tuple[str, str]]:
    suspects = {call.node for call in case.history.calls if raised(call)}
    for life in case.history.working if suspects else ():
        for save in life.saves:
            if not save.acknowledged:
                continue
            for node in suspects.intersection(save.nodes):
                # What completes while a save waits may be stored with it.
                done = save.ended or save.began
                before = [c for c in case.history.calls if c.node == node and c.began < done]
                if before and all(raised(call) and (call.ended or 0) < done for call in before):
                    suspects.discard(node)
                    yield (
                        f"`{node}` had only failed, and a save of life {life.number} stored an output of it",
                        f"a resume takes the error of `{node}` for its output",
                    )


CLAUSE = documented(
    __doc__,
    check=failures_leave_checkpoints,
    occasions=failures_resumed,
    without="no run failed at a node and was resumed",
    sharpens=("E02", "E04"),
)
