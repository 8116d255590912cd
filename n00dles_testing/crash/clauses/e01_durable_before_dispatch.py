"""E01: a node's output is stored before any node that depends on it starts.

A node that acts on an output which a kill can still lose has acted on something that never was: after the resume the
earlier node may answer otherwise, and what was done with its first answer cannot be taken back. Checked twice: each
call against the saves acknowledged before it, and each kill against what was on disk after it.

Seen in: langchain-ai/langgraph #8039 (what a node has written is not stored when the next one starts, and a kill has
its effects happen twice); aws-samples/sample-citadel PR #78 (a node was said to be complete before its output was
stored; a lost message was lost work).

Fix: the author of an executor saves after every node, and awaits the store's reply before anything that reads the
output is started. Members of a fan-out may share a save; what follows the fan-out waits for it.

It is not a fault of your pipeline: report it to the executor's authors with the token that its replay names, and check
the store with `n00dles-testing check`. A home-made loop is its own executor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Case
from ..history import History, Life
from .documentation import documented
from .endings import failing

__all__ = ["CLAUSE"]


def durable_before_dispatch(case: Case) -> Iterator[tuple[str, str]]:
    """Yield each pair of nodes of which one was started before the other's output, which it needs, was stored."""
    reported: set[tuple[str, str]] = set()
    called: set[str] = set()
    for life, following in _with_next(case.history):
        # Another route of a branch that only a later life takes is none that this one could have stored.
        called |= {call.node for call in life.calls}
        stored = set(life.stored)
        on_disk = _left_by(life, following)
        for node, position in life.starts:
            needs = case.baseline.needs.get(node, ())
            if not needs:
                continue
            acknowledged = stored.union(*(s.nodes for s in life.saves if s.acknowledged and (s.ended or 0) < position))
            for needed in needs:
                late = needed not in acknowledged or (on_disk is not None and needed not in on_disk)
                if late and needed in called and (node, needed) not in reported:
                    reported.add((node, needed))
                    yield (
                        f"`{node}` was started in life {life.number} before the output of `{needed}` was in the store",
                        f"a kill now loses the output of `{needed}`, on which `{node}` has already acted; save it, and "
                        "wait for the store's reply, before starting what comes next",
                    )


def _left_by(life: Life, following: Life | None) -> set[str] | None:
    """Return what was on disk after a life that was cut short.

    What a run loses that fails by itself is the affair of E10, and of one that has finished, that of E17; a record that
    cannot be read shows nothing of when it was written.
    """
    if following is None or following.disk is None or "error" in following.disk:
        return None
    if failing(life) or following.was_finished:
        return None
    return set(following.stored)


def dependents_started(case: Case) -> int:
    """Count starts of nodes that depend on a node of this run."""
    called = {call.node for call in case.history.calls}
    return sum(
        not called.isdisjoint(case.baseline.needs.get(node, ()))
        for life in case.history.working
        for node, _ in life.starts
    )


def _with_next(history: History) -> list[tuple[Life, Life | None]]:
    lives = history.lives
    following: list[Life | None] = [*lives[1:], None]
    return [(life, after) for life, after in zip(lives, following, strict=True) if not life.again]


CLAUSE = documented(
    __doc__,
    check=durable_before_dispatch,
    occasions=dependents_started,
    without="no node depends on another",
    undisturbed=True,
)
