"""E14: when a member of a fan-out fails, its siblings have ended before `run` does, and what they finished is kept.

A sibling of a failing member is cancelled, or awaited, before `run` raises: one that goes on behind the caller's back
costs money, and saves into a run that somebody may have resumed by then. What a sibling has finished is stored, so that
the resume does not call it again.

Seen in: python/cpython #75633 (`asyncio.gather` does not cancel the others when one fails); PrimeIntellect-ai/verifiers
PR #1821 (siblings go on after the failure was raised); microsoft/agent-framework #2075 (one branch fails, and the
resume runs those that had finished again).

Fix: the author of an executor awaits all members, whatever one of them raises (`asyncio.TaskGroup`, or `gather` with a
`finally` that cancels and awaits), and saves what they return before it raises.

It is not a fault of your pipeline: report it to the executor's authors with the token that its replay names, and check
the store with `n00dles-testing check`. A home-made loop is its own executor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Case
from ..history import Life
from ..shape import Group
from .documentation import documented
from .endings import failed_nodes, failing, pairs, still_going

__all__ = ["CLAUSE"]


def siblings_end_first(case: Case) -> Iterator[tuple[str, str]]:
    """Yield siblings of a failing member that outlive `run`, or that had finished and are called again."""
    for life in case.history.working:
        for group, failed in _failing_groups(case, life):
            going = next(still_going(life), None)
            if going is not None:
                yield (
                    f"`{failed}` of {group.name} failed in life {life.number}, and {going} after `run` had raised",
                    "the others are cancelled or awaited before `run` ends",
                )
    for life, following in pairs(case.history):
        if following.was_finished:
            continue
        called = {call.node for call in following.calls}
        for group, failed in _failing_groups(case, life):
            for node in _finished(group, life):
                if node in called:
                    yield (
                        f"`{node}` had finished in life {life.number} as its sibling `{failed}` failed, and was called "
                        f"again in life {following.number}",
                        "what the siblings of a failing member have finished is stored before `run` raises",
                    )


def siblings_of_failures(case: Case) -> int:
    """Count lives in which a member of a fan-out failed, and another one had been called."""
    return sum(any(True for _ in _failing_groups(case, life)) for life in case.history.working)


def _failing_groups(case: Case, life: Life) -> Iterator[tuple[Group, str]]:
    """Yield each fan-out of which a member failed in this life, with that node, and another member was called."""
    failed = failed_nodes(life) if failing(life) else []
    for group in case.baseline.shape.groups if failed else ():
        members = {group.member_of(call.node) for call in life.calls} - {None}
        guilty = next((node for node in failed if group.member_of(node) is not None), None)
        if guilty is not None and len(members) > 1:
            yield group, guilty


def _finished(group: Group, life: Life) -> list[str]:
    """Return the members of which the executor said, or the store, that they have returned."""
    said = [said.fields["node"] for said in life.events if said.event == "node_returned"]
    saved = [node for save in life.saves if save.acknowledged for node in save.nodes]
    return [node for node in dict.fromkeys([*said, *saved]) if group.member_of(node) is not None]


CLAUSE = documented(
    __doc__,
    check=siblings_end_first,
    occasions=siblings_of_failures,
    without="no member of a fan-out failed beside another",
    undisturbed=True,
    sharpens=("E02", "E03", "E10"),
)
