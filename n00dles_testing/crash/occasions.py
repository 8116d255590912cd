"""How often a scenario could have broken a clause at all: a check that had no occasion to fail has shown nothing."""

from __future__ import annotations

from .case import Case

__all__ = [
    "calls_to_compare",
    "dependents_started",
    "finished_and_tried_again",
    "killed_and_finished",
    "nodes_before_a_kill",
    "resumed_half_way",
]


def dependents_started(case: Case) -> int:
    """E01: starts of nodes that depend on a node of this run."""
    called = {call.node for call in case.history.calls}
    return sum(
        not called.isdisjoint(case.baseline.needs.get(node, ()))
        for life in case.history.working
        for node, _ in life.starts
    )


def resumed_half_way(case: Case) -> int:
    """E02: lives after the first that begin with a completed node, and not with all of them."""
    return sum(bool(case.history.completed_before(life)) and not life.was_finished for life in case.history.working[1:])


def nodes_before_a_kill(case: Case) -> int:
    """E03: nodes that had returned or were in flight at a kill, with a life after it that could call them again."""
    return sum(len({node for node, _ in life.starts}) for life in case.history.working[:-1])


def killed_and_finished(case: Case) -> int:
    """E04: one, if the run was killed and came to its end all the same."""
    return int(len(case.history.working) > 1 and case.history.outcome is not None)


def calls_to_compare(case: Case) -> int:
    """E05: calls and requests of later lives than the first that the undisturbed run has made too."""
    return sum(
        call.node in case.baseline.calls and (call.arguments is not None or call.request is not None)
        for life in case.history.working[1:]
        for call in life.calls
    )


def finished_and_tried_again(case: Case) -> int:
    """E17: lives that began with a finished run."""
    return sum(life.was_finished for life in case.history.lives)
