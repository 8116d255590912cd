"""E18: a resume can itself be killed and resumed, any number of times.

What brings one process down (a deploy, memory, a spot instance) brings the next one down as well. The second resume has
to find a record as good as the first one did: nothing that was completed in any of the lives is called again, and the
run ends as the undisturbed one.

Seen in: run-llama/llama-agents #281 (the first resume works, and a checkpoint of the resumed run raises);
dbos-inc/dbos-transact-py #688 (a recovery that raises, retries, and never ends).

Fix: the author of an executor writes the same record in a resumed life as in the first, under the same names, and keeps
nothing that only the first life knows.

It is not a fault of your pipeline: report it to the executor's authors with the token that its replay names, and check
the store with `n00dles-testing check`. A home-made loop is its own executor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Case
from ..history import Life
from .documentation import documented
from .e04_same_output import same_output
from .endings import failed_nodes, failing, resumed_after_failure, until_finished
from .wording import whose_fault

__all__ = ["CLAUSE"]


def chains_end_well(case: Case) -> Iterator[tuple[str, str]]:
    """Yield what goes wrong after the second disturbance, and had not before it."""
    lives = until_finished(case.history)
    if not chains(case):
        return
    has_failed = any(failed_nodes(life) or life.outcomes[0].get("blame") == "node" for life in lives if failing(life))
    if not case.baseline.unsettled_output and not has_failed:
        for message, why in same_output(case):
            yield f"after {_disturbed(case)} disturbed lives {message}", why
    went_well = False
    for life in lives[1:]:
        again = _called_again(case, life)
        for node in again if went_well else ():
            yield (
                f"`{node}` was called again in life {life.number}, though an earlier resume had not called it again",
                whose_fault(life, node),
            )
        if again and not went_well:
            return  # one disturbance was enough for that: the affair of E02
        went_well = went_well or bool(life.calls and case.history.completed_before(life))


def chains(case: Case) -> int:
    """Count one, if at least two lives were disturbed before the last one."""
    return int(_disturbed(case) > 1)


def _disturbed(case: Case) -> int:
    return sum(not failing(life) for life in until_finished(case.history)[:-1])


def _called_again(case: Case, life: Life) -> list[str]:
    if life.number in resumed_after_failure(case.history):
        return []
    completed = case.history.completed_before(life)
    return [node for node in dict.fromkeys(call.node for call in life.calls) if node in completed]


CLAUSE = documented(
    __doc__,
    check=chains_end_well,
    occasions=chains,
    without="no run was disturbed twice",
    sharpens=("E02", "E04", "E05", "E06", "E07"),
)
