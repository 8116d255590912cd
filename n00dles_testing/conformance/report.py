"""What a check of a store comes to: its results, the level reached, and all that was not tried."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..verdicts import ClauseResult, Verdict
from .capabilities import Capability
from .claims import Claims
from .contract import LEVELS, PLAINLY, level_title
from .gaps import Gap, GapState
from .registry import implemented

__all__ = ["Grade", "ReaderReport", "StoreReport", "grade"]


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
class ReaderReport:
    """What the out-of-band reader was good for: its `name`, how many records were `compared`, and its own `fault`.

    The fault is a sentence, empty if there is none. It is the reader's, never the store's; what was asked for was then
    not done, so the run fails.
    """

    name: str
    compared: int
    fault: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {"name": self.name, "compared": self.compared, "fault": self.fault, "ok": not self.fault}


@dataclass(frozen=True, slots=True)
class StoreReport:
    """All about one check of one store.

    `results` has one entry for each clause that was tried, and `grade` the level that follows. `claims` is what the
    store's author says, `capabilities` each of the six with what its probe has seen (empty if only some clauses were
    asked for), `gaps` the declared known gaps with what became of them, and `reader` is there if an out-of-band reader
    was. `notes` are sentences about the target, the first of them what the suite does with it; `seconds` is wall time.
    """

    target: str
    results: tuple[ClauseResult, ...]
    grade: Grade
    notes: tuple[str, ...]
    seed: int
    seconds: float
    claims: Claims = field(default_factory=Claims)
    capabilities: tuple[Capability, ...] = ()
    gaps: tuple[Gap, ...] = ()
    reader: ReaderReport | None = None

    @property
    def ok(self) -> bool:
        """Whether at least one clause has passed, and there is no `problem`."""
        return any(result.verdict is Verdict.PASS for result in self.results) and not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """All that makes the run fail, a sentence each: known gaps are none, claims that are not kept are."""
        excused = {gap.clause for gap in self.gaps if gap.state is GapState.KNOWN}
        return (
            *(
                f"{each.clause} {each.verdict.value}"
                for each in self.results
                if not each.ok and each.clause not in excused
            ),
            *(gap.text for gap in self.gaps if not gap.ok),
            *(f"{each.name} is claimed, and denied: {each.proof}" for each in self.capabilities if not each.ok),
            *([self._level_problem] if self._level_problem else []),
            *([self.reader.fault] if self.reader is not None and self.reader.fault else []),
        )

    @property
    def level_kept(self) -> bool | None:
        """Whether the claimed level was reached; None if none is claimed, or not all clauses of it were asked for."""
        claimed = self.claims.level
        if claimed is None:
            return None
        if self.grade.level is not None and self.grade.level >= claimed:
            return True
        tried = {result.clause for result in self.results}
        checked = {each.id for each in implemented()}
        wanted = {id_ for level in range(1, claimed + 1) for id_ in LEVELS[level][1]}
        return False if wanted & checked <= tried else None

    @property
    def _level_problem(self) -> str:
        if self.level_kept is not False:
            return ""
        reached = level_title(self.grade.level or 0)
        return f"level {self.claims.level} is claimed ({self.claims.source}), and {reached} was reached"

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types; the parts as their own `to_dict` has them.

        `claims` has `level`, `capabilities`, `source` (where they are claimed, in words, or "") and `level_kept`
        (true, false, or null: nothing claimed, or not all of it asked for).
        """
        return {
            "target": self.target,
            "ok": self.ok,
            "problems": list(self.problems),
            "level": self.grade.level,
            "grade": self.grade.text,
            "not_implemented": list(self.grade.not_implemented),
            "results": [result.to_dict() for result in self.results],
            "claims": {**self.claims.to_dict(), "level_kept": self.level_kept},
            "capabilities": [each.to_dict() for each in self.capabilities],
            "gaps": [gap.to_dict() for gap in self.gaps],
            "reader": None if self.reader is None else self.reader.to_dict(),
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
