"""E07: a branch takes the same route again, and the routed node is not called again.

The record of the routed node is enough: a kill that falls between it and anything that the branch itself notes must
not lead to a second call of the node, nor to another route. Both routes of a refund and a rejection in one run is the
worst that can happen to a branch.

Seen in: mastra-ai/mastra #20225 (the parent's record lags behind its child's, and a resume starts the child again);
mastra-ai/mastra #4811 (a resume takes a route without asking for its condition); mastra-ai/mastra #21592 (a run that is
restarted inside a branch has lost its place).

Fix: the author of an executor lets a branch record nothing: which route it takes follows from the output before it,
which is stored, and whether the route is done from the records of its nodes. That output is given to the choice in its
stored form in every life, so that a model in the first and a dict in the second choose alike.

It is not a fault of your pipeline: report it to the executor's authors with the token that its replay names, and check
the store with `n00dles-testing check`. A home-made loop is its own executor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Case
from ..history import same
from ..shape import Branching
from .documentation import documented
from .endings import resumed_after_failure, until_finished

__all__ = ["CLAUSE"]


def one_route(case: Case) -> Iterator[tuple[str, str]]:
    """Yield changes of route, and routed nodes that are called again though they are complete."""
    for branch in case.baseline.shape.branches:
        yield from _another_route(case, branch)
        yield from _again(case, branch)


def branches_resumed(case: Case) -> int:
    """Count lives that begin with a branch whose route was chosen in an earlier life, and not with a finished run."""
    return sum(
        any(_was_routed(case, branch, life.number) for branch in case.baseline.shape.branches)
        for life in until_finished(case.history)[1:]
    )


def _was_routed(case: Case, branch: Branching, before: int) -> bool:
    return any(
        any(call.node in nodes for call in life.calls for nodes in branch.routes.values())
        or any(said.event == "branch_routed" and said.fields["branch"] == branch.name for said in life.events)
        for life in case.history.working
        if life.number < before
    )


def _another_route(case: Case, branch: Branching) -> Iterator[tuple[str, str]]:
    taken: dict[str, int] = {}
    for life in until_finished(case.history):
        for node, _ in life.starts:
            route = branch.route_of(node)
            if route is not None:
                taken.setdefault(route, life.number)
        for said in life.events:
            if said.event == "branch_routed" and said.fields["branch"] == branch.name:
                taken.setdefault(said.fields["route"], life.number)
    first, *others = taken or [""]
    if others and not _choice_differs(case, branch, taken):
        yield (
            f"{branch.name} took the route `{first}` in life {taken[first]} and `{others[0]}` in life "
            f"{taken[others[0]]}",
            "the output that the branch goes by was the same both times",
        )


def _choice_differs(case: Case, branch: Branching, taken: dict[str, int]) -> bool:
    """Whether something before the branch has itself returned one thing and then another: the choice may differ."""
    before = {
        needed
        for route in taken
        for node in branch.routes.get(route, ())[:1]
        for needed in case.baseline.needs.get(node, ())
    }
    outputs: dict[str, object] = {}
    for call in case.history.calls:
        if call.node in before and call.succeeded and not same(outputs.setdefault(call.node, call.output), call.output):
            return True
    return False


def _again(case: Case, branch: Branching) -> Iterator[tuple[str, str]]:
    for life in until_finished(case.history)[1:]:
        if life.number in resumed_after_failure(case.history):
            continue
        completed = case.history.completed_before(life)
        for node in dict.fromkeys(call.node for call in life.calls):
            if node in completed and branch.route_of(node) is not None:
                yield (
                    f"`{node}`, the route that {branch.name} had taken, was called again in life {life.number}, though "
                    f"{completed[node]}",
                    "the record of the routed node is enough to know that the branch is done",
                )


CLAUSE = documented(
    __doc__,
    check=one_route,
    occasions=branches_resumed,
    without="no branch had chosen its route before a resume",
    unsettled=lambda baseline: baseline.unsettled,
    sharpens=("E02", "E04", "E05"),
)
