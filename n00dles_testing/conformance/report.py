"""What a check of a store comes to: its results, the level reached, and all that was not tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..verdicts import ClauseResult, Verdict, overall
from .contract import LEVELS, level_title
from .registry import implemented

__all__ = ["Grade", "StoreReport", "grade"]

_GRADED_LEVELS = (1, 2)


@dataclass(frozen=True, slots=True)
class Grade:
    """The level that a store has reached, with its limits: `text` never claims more than was tried.

    `level_so_far` goes by the checks that there are; 0 for none. `not_implemented` are the clauses of levels 1 and 2
    that this release has no check for: whether the store keeps them, and so reaches their level, nobody knows.
    """

    level_so_far: int
    text: str
    not_implemented: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoreReport:
    """All about one check of one store. `notes` are sentences about the target; `seconds` is wall time."""

    target: str
    results: tuple[ClauseResult, ...]
    grade: Grade
    notes: tuple[str, ...]
    seed: int
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether nothing failed or was vacuous, and at least one clause has passed."""
        return overall(result.verdict for result in self.results).ok and any(
            result.verdict is Verdict.PASS for result in self.results
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {
            "target": self.target,
            "ok": self.ok,
            "level_so_far": self.grade.level_so_far,
            "grade": self.grade.text,
            "not_implemented": list(self.grade.not_implemented),
            "results": [result.to_dict() for result in self.results],
            "notes": list(self.notes),
            "seed": self.seed,
            "seconds": self.seconds,
        }


def grade(results: Sequence[ClauseResult]) -> Grade:
    """Return the highest level all of whose checks have passed, and of every level below it.

    Only PASS counts; a clause that was not asked for, or does not apply, is no pass.
    """
    passed = {result.clause for result in results if result.verdict is Verdict.PASS}
    checks = {number: [each.id for each in implemented() if each.level == number] for number in _GRADED_LEVELS}
    missing = tuple(id_ for number in _GRADED_LEVELS for id_ in LEVELS[number][1] if id_ not in checks[number])
    reached = 0
    for number in _GRADED_LEVELS:
        if not checks[number] or not passed.issuperset(checks[number]):
            break
        reached = number
    return Grade(reached, _text(reached, results, checks), missing)


def _text(reached: int, results: Sequence[ClauseResult], checks: dict[int, list[str]]) -> str:
    if reached:
        tried = sum(len(checks[number]) for number in range(1, reached + 1))
        clauses = sum(len(LEVELS[number][1]) for number in range(1, reached + 1))
        text = f"{level_title(reached)}, as far as it is checked: {tried} of its {clauses} clauses"
    else:
        text = level_title(0)
    return f"{text}{_what_keeps_it(reached, results, checks)}"


def _what_keeps_it(reached: int, results: Sequence[ClauseResult], checks: dict[int, list[str]]) -> str:
    """Say what stands between the store and the next level."""
    following = reached + 1
    if following not in checks:
        return ""
    verdicts = {result.clause: result.verdict for result in results}
    open_ = [(id_, verdicts.get(id_, Verdict.NOT_RUN)) for id_ in checks[following]]
    reasons = [f"{id_} {verdict.value}" for id_, verdict in open_ if verdict is not Verdict.PASS]
    return f"; not {level_title(following)}: {', '.join(reasons)}"
