"""What a check of a store comes to: results, the level reached, what was claimed, and all that speaks against it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..verdicts import ClauseResult, Verdict
from .capabilities import Capability
from .claims import Claims
from .contract import LEVELS, level_title
from .gaps import Gap, GapState
from .grade import Grade, counts_for, grade, settled
from .registry import implemented

__all__ = ["Grade", "ReaderReport", "StoreReport", "grade"]


@dataclass(frozen=True, slots=True)
class ReaderReport:
    """What the out-of-band reader was good for: its `name`, how many records were `compared`, and its own `fault`.

    The fault is a sentence, empty if there is none. It is the reader's, never the store's; what was asked for was then
    not done, so the run fails.
    """

    name: str
    compared: int
    fault: str = ""

    def with_more(self, compared: int, fault: str) -> ReaderReport:
        """Return it with what another clause has compared; the first fault stays."""
        return ReaderReport(self.name, self.compared + compared, self.fault or fault)

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {"name": self.name, "compared": self.compared, "fault": self.fault, "ok": not self.fault}


@dataclass(frozen=True, slots=True)
class StoreReport:
    """All about one check of one store.

    `results` has one entry for each clause that was tried, and `grade` the level that follows. `claims` is what the
    store's author says, `capabilities` each of the six with what its probe has seen (empty if only some clauses were
    asked for), `gaps` the declared known gaps with what became of them, and `reader` is there if an out-of-band reader
    was. `shares_data` says how two locations were found to hold the same data, and is empty if they did not. `notes`
    are sentences about the target, the first of them what the suite does with it; `seconds` is wall time.
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
    shares_data: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "results", settled(self.results))

    @property
    def ok(self) -> bool:
        """Whether there is no `problem`."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """All that makes the run fail, a sentence each: known gaps are none, claims that are not kept are.

        That nothing has passed is one, too: a run that has shown nothing is no success.
        """
        excused = {gap.clause for gap in self.gaps if gap.state is GapState.KNOWN}
        found = (
            *([self.shares_data] if self.shares_data else []),
            *(
                f"{each.clause} {each.verdict.value}"
                for each in self.results
                if not each.ok and each.clause not in excused
            ),
            *(gap.text for gap in self.gaps if not gap.ok),
            *(f"{each.name} is claimed, and denied: {each.proof}" for each in self.capabilities if not each.ok),
            *([self.level_text] if self.level_kept is False else []),
            *([self.reader.fault] if self.reader is not None and self.reader.fault else []),
        )
        if found or any(result.verdict is Verdict.PASS for result in self.results):
            return found
        return ("no clause passed, so nothing was shown",)

    @property
    def level_kept(self) -> bool | None:
        """Whether the claimed level was reached; None if none is claimed, or that cannot be told.

        It cannot if not all clauses of it were asked for, or if all that this release checks of it have passed and the
        others have no check.
        """
        claimed = self.claims.level
        if claimed is None:
            return None
        if (self.grade.level or 0) >= claimed:
            return True
        tried = {result.clause: result.verdict for result in self.results}
        checked = {each.id for each in implemented()}
        wanted = [id_ for level in range(1, claimed + 1) for id_ in LEVELS[level][1] if id_ in checked]
        if any(id_ not in tried for id_ in wanted):
            return None
        applies = any(tried.get(id_) is not Verdict.NOT_APPLICABLE for id_ in LEVELS[claimed][1])
        return None if applies and all(counts_for(id_, tried[id_]) for id_ in wanted) else False

    @property
    def unprobed(self) -> str:
        """Say that capabilities are claimed, and were not probed; empty if that is not so."""
        if self.capabilities or not self.claims.capabilities:
            return ""
        names = ", ".join(self.claims.capabilities)
        return f"claimed: {names}; not probed, since only a part was asked for"

    @property
    def level_text(self) -> str:
        """What became of the claimed level, in a sentence; empty if none is claimed."""
        if self.claims.level is None:
            return ""
        claimed = f"{level_title(self.claims.level)} is claimed"
        if self.level_kept:
            return f"{claimed}, and reached"
        if self.level_kept is None:
            return f"{claimed}; whether it is reached cannot be told from what was checked"
        return f"{claimed}, and not reached ({self.claims.source})"

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
            "shares_data": self.shares_data,
            "notes": list(self.notes),
            "seed": self.seed,
            "seconds": self.seconds,
        }
