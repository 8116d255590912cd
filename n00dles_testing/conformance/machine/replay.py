"""Playing a sequence of operations again, with the limits of a check: a store may hang or die this time as well."""

from __future__ import annotations

from ...verdicts import ClauseResult
from ..registry import select
from ..runner import Progress, open_runner
from .tokens import PlanToken

__all__ = ["replay"]


def replay(token: PlanToken, *, progress: Progress | None = None) -> ClauseResult:
    """Play the sequence of a token on its store, on a fresh location, and return the verdict.

    Raises `ConfigurationError` if the store cannot be opened.
    """
    [clause] = select(["S17"])
    with open_runner(token.target, seed=token.seed, progress=progress) as runner:
        return runner.check(clause, token.plan.to_dict())
