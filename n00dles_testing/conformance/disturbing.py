"""Disturbing a store at each of its calls: the clauses C03 and C04 alone, with many more kills and faults."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..verdicts import ClauseResult, Verdict
from .clauses.c04_faults import TITLES
from .deeds import DEEDS
from .left_by_a_kill import DELETED_AFTER_A_KILL
from .progress import Progress
from .registry import select
from .runner import DEFAULT_LIMIT, open_runner
from .served import password_hidden
from .tally import Tally

__all__ = ["BUDGET", "HOWS", "DisturbanceReport", "deeds_of", "disturb_store"]

BUDGET = 600
HOWS = {"kill": ("C03",), "fail": ("C04",), "all": ("C03", "C04")}
"""What can be done to a store, and the clauses that do it."""
_SECONDS = 3600.0
"""How long a clause may take."""


@dataclass(frozen=True, slots=True)
class DisturbanceReport:
    """What became of it: the `results` of the clauses, and `tallies`, one for each deed that a clause has disturbed."""

    target: str
    results: tuple[ClauseResult, ...]
    tallies: tuple[Tally, ...]
    notes: tuple[str, ...]
    seed: int
    budget: int
    seconds: float

    @property
    def conclusion(self) -> str:
        """What may be concluded, in a few words; what nobody could try is no good news."""
        if any(each.verdict is Verdict.FAIL for each in self.results):
            return "a fault was found"
        if untried := list(dict.fromkeys(title for each in self.results for title in each.untried)):
            more = f" and {len(untried) - 1} more" if untried[1:] else ""
            return f"{untried[0]}{more} already fails undisturbed; n00dles-testing check shows how"
        if not all(each.ok for each in self.results):
            return "something could not be shown"
        return "no fault found" if any(each.verdict is Verdict.PASS for each in self.results) else "nothing was tried"

    @property
    def ok(self) -> bool:
        """Whether all was tried that there was to try, and no fault was found."""
        return self.conclusion == "no fault found"

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {
            "target": self.target,
            "ok": self.ok,
            "conclusion": self.conclusion,
            "seed": self.seed,
            "budget": self.budget,
            "seconds": self.seconds,
            "deeds": [each.to_dict() for each in self.tallies],
            "clauses": [each.to_dict() for each in self.results],
            "notes": list(self.notes),
        }


def deeds_of(how: str) -> int:
    """Return how many deeds the clauses of `how` disturb, at most."""
    deeds = {"C03": (*DEEDS, DELETED_AFTER_A_KILL), "C04": TITLES}
    return sum(len(deeds[clause]) for clause in HOWS[how])


def disturb_store(
    target: str,
    *,
    how: str = "all",
    budget: int = BUDGET,
    seed: int = 0,
    limit: float = DEFAULT_LIMIT,
    progress: Progress | None = None,
    on_tally: Callable[[Tally], None] | None = None,
) -> DisturbanceReport:
    """Kill a store, or have its calls fail (see `HOWS`), at most `budget` times each, and return what came.

    `on_tally` hears of each deed when a clause is through with it. For the rest see `check_store`, which tries each
    system call with one fault only. Raises `ConfigurationError` if the target cannot be opened.
    """
    started = time.monotonic()
    tallies: list[Tally] = []
    clauses = select(HOWS[how])
    results: Sequence[ClauseResult]
    with open_runner(target, seed=seed, limit=limit, progress=progress) as runner:

        def hear(tally: Tally) -> None:
            tallies.append(tally)
            if on_tally is not None:
                on_tally(tally)

        runner.on_tally = hear
        results = runner.run(clauses, most=budget, seconds=_SECONDS)
        notes = (runner.note, *runner.notes())
    seconds = time.monotonic() - started
    return DisturbanceReport(password_hidden(target), tuple(results), tuple(tallies), notes, seed, budget, seconds)
