"""What a check of a store comes to: its results, the level reached, and all that was not tried."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..verdicts import ClauseResult, Verdict, overall
from .contract import LEVELS, PLAINLY, level_title
from .registry import implemented

__all__ = ["Grade", "StoreReport", "grade"]


@dataclass(frozen=True, slots=True)
class Grade:
    """The level that a store has reached, with its limits: `text` never claims more than was tried.

    `level` is None unless every clause of a level, and of those below it, has a check in this release and has passed.
    `not_implemented` are the clauses that have none: whether the store keeps them, nobody knows.
    """

    level: int | None
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
            "level": self.grade.level,
            "grade": self.grade.text,
            "not_implemented": list(self.grade.not_implemented),
            "results": [result.to_dict() for result in self.results],
            "notes": list(self.notes),
            "seed": self.seed,
            "seconds": self.seconds,
        }


def grade(results: Sequence[ClauseResult]) -> Grade:
    """Return the highest level all of whose clauses have passed, and of every level below it.

    Only PASS counts; a clause that has no check, was not asked for, or does not apply, is no pass.
    """
    passed = {result.clause for result in results if result.verdict is Verdict.PASS}
    level = None
    for number, (_, clauses) in LEVELS.items():
        if not passed.issuperset(clauses):
            break
        level = number
    checked = {each.id for each in implemented()}
    missing = tuple(id_ for _, clauses in LEVELS.values() for id_ in clauses if id_ not in checked)
    given = "no level is given" if level is None else level_title(level)
    return Grade(level, f"{_found(results)}\n{_not_checked(missing, len(checked))}{given}", missing)


def _found(results: Sequence[ClauseResult]) -> str:
    """Say what came of the clauses that were tried: never that the store is good."""
    with_verdict = {verdict: [each.clause for each in results if each.verdict is verdict] for verdict in Verdict}
    failed, passed = with_verdict.pop(Verdict.FAIL), with_verdict.pop(Verdict.PASS)
    others = [f"{id_} {verdict.value}" for verdict, ids in with_verdict.items() for id_ in ids]
    if failed:
        text = f"the store breaks {', '.join(failed)}"
    elif passed:
        text = f"no fault found by {', '.join(passed)}"
    else:
        text = "nothing was shown"
    return "; ".join([text, *others])


def _not_checked(missing: Sequence[str], checked: int) -> str:
    """Name what nobody has tried, the worst of it in words."""
    if not missing:
        return ""
    plainly = [(words, [id_ for id_ in ids if id_ in missing]) for words, ids in PLAINLY]
    named = ", ".join(f"{words} ({_span(ids)})" for words, ids in plainly if ids)
    total = checked + len(missing)
    return f"not checked by this release: {named}, and more, {len(missing)} of {total} clauses; so "


def _span(ids: Sequence[str]) -> str:
    """Write many ids of one letter as the first and the last."""
    groups = [list(group) for _, group in itertools.groupby(ids, key=lambda id_: id_[0])]
    return ", ".join(group[0] if len(group) == 1 else f"{group[0]}–{group[-1]}" for group in groups)
