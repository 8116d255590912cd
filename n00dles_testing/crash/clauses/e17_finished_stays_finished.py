"""E17: a finished run returns its stored result and calls nothing.

A worker that dies after the last save and before its reply leads to one more resume, and so does a queue that delivers
twice. Such a resume costs nothing and gives the result that is stored. Records of earlier releases are read as well:
that is tried with the golden files in `tests/golden`, and not by killing.

Seen in: microsoft/agent-framework #1695 (the first step runs again); dbos-inc/dbos-transact-ts PR #726 (another run's
result is given); utensils/mold #1181 (after an upgrade no record of an earlier build passes its checksum).

Fix: the author of an executor stores that the run is finished with the save of its last output, not after it, and
looks there before anything is called.

It is not a fault of your pipeline: report it to the executor's authors with the token that its replay names, and check
the store with `n00dles-testing check`. A home-made loop is its own executor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..case import Case
from ..history import same
from ..typed import show
from .documentation import documented
from .endings import until_finished
from .wording import named, whose_fault

__all__ = ["CLAUSE", "results"]


def finished_stays_finished(case: Case) -> Iterator[tuple[str, str]]:
    """Yield calls of a finished run, and results that are not its own."""
    finished = [life for life in case.history.lives if life.was_finished]
    known = results(case)
    for life in finished:
        nodes = list(dict.fromkeys(call.node for call in life.calls))
        if nodes:
            yield (
                f"the run was finished, and life {life.number} called {named(nodes)} again",
                whose_fault(life, nodes[0]),
            )
        for outcome in life.outcomes if life.at_point is None else ():
            if not outcome["ok"]:
                yield f"{outcome['how']} of the finished run failed: {outcome['error']}: {outcome['message']}", ""
            elif known and not any(same(outcome["output"], output) for output in known):
                yield (
                    f"{outcome['how']} of the finished run returned {show(outcome['output'])}, where the run itself "
                    f"had returned {show(known[-1])}",
                    "",
                )


def results(case: Case) -> list[Any]:
    """Return what the finished run may give: what the life that finished it gave, or else the undisturbed run.

    Of a run that a resumed life has finished, and was killed before it gave anything, only E04 can tell.
    """
    lives = until_finished(case.history)
    given = [life.outcomes[-1]["output"] for life in lives if life.outcomes and life.outcomes[-1]["ok"]]
    is_known = len(lives) == 1 and case.baseline.finishes and not case.baseline.unsettled_output
    return [*given, *([case.baseline.outcome.get("output")] if is_known else [])]


def finished_and_tried_again(case: Case) -> int:
    """Count lives that began with a finished run."""
    return sum(life.was_finished for life in case.history.lives)


CLAUSE = documented(
    __doc__,
    check=finished_stays_finished,
    occasions=finished_and_tried_again,
    without="no run was finished and tried again",
    undisturbed=True,
    sharpens=("E04",),
)
