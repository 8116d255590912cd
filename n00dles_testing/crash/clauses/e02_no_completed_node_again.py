"""E02: no node whose save was acknowledged is called again.

This is what a checkpoint is for: what was paid for once, and is in the store, is not paid for again. It holds for any
number of kills, wherever they fall.

Seen in: microsoft/agent-framework #2075 (finished branches of a fan-out run again); microsoft/agent-framework #1695
(the first step runs again); mastra-ai/mastra #20225 (finished children are started again); HomericIntelligence/Scylla
PR #368 (keys came back as text, so nothing was ever complete).

Fix: the author of an executor asks the store's record of the node itself, and nothing that is written a step later (a
group, a parent, a frontier). Names of nodes have to come back as the text that they were.

It is not a fault of your pipeline: report it to the executor's authors with the token that its replay names, and check
the store with `n00dles-testing check`. A home-made loop is its own executor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Case
from .documentation import documented
from .endings import until_finished
from .wording import whose_fault

__all__ = ["CLAUSE"]


def no_completed_node_again(case: Case) -> Iterator[tuple[str, str]]:
    """Yield each call of a node that was complete as its life began."""
    for life in until_finished(case.history)[1:]:
        completed = case.history.completed_before(life)
        for node in dict.fromkeys(call.node for call in life.calls):
            if node in completed:
                paid = " (paid twice)" if any(c.request is not None for c in life.calls if c.node == node) else ""
                lost = "" if node in life.stored or not life.knows_disk else "; the store no longer had it"
                yield (
                    f"`{node}` was called again in life {life.number}{paid}, though {completed[node]}{lost}",
                    whose_fault(life, node),
                )


def resumed_half_way(case: Case) -> int:
    """Count lives after the first that begin with a completed node, and not with all of them."""
    return sum(bool(case.history.completed_before(life)) for life in until_finished(case.history)[1:])


CLAUSE = documented(
    __doc__,
    check=no_completed_node_again,
    occasions=resumed_half_way,
    without="no life began with a completed node and something left to do",
)
