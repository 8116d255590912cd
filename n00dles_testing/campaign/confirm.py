"""Living what was found in this process once more with real processes, killed by a real SIGKILL, on a SQLite file."""

from __future__ import annotations

import itertools

from ..crash import ExplorationError, explore
from ..crash.fork_server import fork_is_available
from ..crash.points import How
from ..strategies import ATTEMPTS_VARIABLE, target_of
from ..temporary_folder import TemporaryFolder
from .lives_family import plan_of
from .rival import RivalError, rivals_in_processes
from .rivals_family import RivalsFamily, faults_of_rivals
from .search import Found

__all__ = ["confirmed"]

_TIME_LIMIT = 10.0
_OF_A_FRESH_RUN = 2
"""What the rest of a trial of rivals holds if both begin a fresh run."""


def confirmed(found: Found, executor: str | None) -> str:
    """Say whether real processes show the same fault; `executor` is a target, None the one of n00dles."""
    if found.trial.family == RivalsFamily.name:
        return _rivals(found, executor)
    if not found.trial.family.startswith("lives"):
        return ""
    if not found.trial.rest:
        return "in this process, in a run that nobody disturbed"
    if not fork_is_available():
        return "in this process only: this platform cannot fork"
    numbers = itertools.count()
    with TemporaryFolder("n00dles-confirm-") as folder:

        def world(scenario: str) -> dict[str, str]:
            """Give each scenario a world of its own, which outlives its processes."""
            return {ATTEMPTS_VARIABLE: str(folder.path / f"{next(numbers)}.attempts")}

        try:
            report = explore(
                target_of(found.trial.spec),
                found.trial.spec.input_values(),
                plans=[plan_of(found.trial)],
                mode="fork",
                workers=1,
                environment=world,
                executor=executor,
                time_limit=_TIME_LIMIT,
            )
        except ExplorationError as error:
            return f"in this process only; with real processes: {error}"
    clause = found.fault[0]
    killed = any(point.how is How.KILL for point in plan_of(found.trial))
    really = f"processes of their own{', killed for real' if killed else ''}"
    if any(finding.clause == clause for finding in report.findings):
        return f"in this process, and again in {really}"
    broken = sorted({finding.clause for finding in report.findings})
    if broken:
        return f"in this process; in {really}, {', '.join(broken)} instead"
    return f"in this process only, and not in {really}"


def _rivals(found: Found, executor: str | None) -> str:
    """Say whether two processes on one SQLite file do the same."""
    if len(found.trial.rest) > _OF_A_FRESH_RUN:
        return "in this process; with processes of their own only two that begin a fresh run are tried"
    with TemporaryFolder("n00dles-confirm-") as folder:
        try:
            first, second = rivals_in_processes(found.trial.spec, found.trial.rest[0], executor, folder.path)
        except RivalError as error:
            return f"in this process only; of two processes: {error}"
    faults = list(faults_of_rivals(found.trial.spec, first, second))
    if faults:
        return f"in this process, and again in two processes on one SQLite file: {faults[0][1]}"
    return f"in this process only; of two processes on one SQLite file the second one {second.told}"
