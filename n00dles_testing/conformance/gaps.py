"""Known gaps: clauses that a store is declared to break, each with a reason. A gap that is none any more is a fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..verdicts import ClauseResult, Verdict

__all__ = ["Gap", "GapState", "judge_gaps"]


class GapState(StrEnum):
    """What became of a declared gap. The value is how it is printed."""

    KNOWN = "known gap"
    """The clause failed, as declared: told, and the run does not fail for it."""

    PASSED = "unexpected pass"
    """The clause passed: the declaration is out of date, and the run fails for it."""

    UNSETTLED = "neither failed nor passed"
    """The clause did not apply, was not run, or showed nothing: the declaration says nothing about this run."""

    NOT_CHECKED = "not checked"
    """The clause was not asked for, or has no check in this release."""


@dataclass(frozen=True, slots=True)
class Gap:
    """One declared gap: the clause, the author's reason, and what became of it; `text` is that in a sentence."""

    clause: str
    reason: str
    state: GapState
    text: str

    @property
    def ok(self) -> bool:
        """False for an unexpected pass."""
        return self.state is not GapState.PASSED

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types, with `ok`."""
        return {
            "clause": self.clause,
            "reason": self.reason,
            "state": self.state.value,
            "text": self.text,
            "ok": self.ok,
        }


def judge_gaps(declared: Mapping[str, str], results: Sequence[ClauseResult], file: str) -> tuple[Gap, ...]:
    """Hold the declared gaps (clause to reason, from `file`) against what came."""
    by_clause = {result.clause: result for result in results}
    return tuple(_judged(clause, reason, by_clause.get(clause), file) for clause, reason in declared.items())


def _judged(clause: str, reason: str, result: ClauseResult | None, file: str) -> Gap:
    if result is None:
        return Gap(
            clause, reason, GapState.NOT_CHECKED, f"{clause} is declared as a known gap ({reason}), and was not checked"
        )
    if result.verdict is Verdict.FAIL:
        return Gap(clause, reason, GapState.KNOWN, f"{clause} FAIL (known gap: {reason})")
    if result.verdict is Verdict.PASS:
        text = f"{clause} is declared as a known gap ({reason}), and passed: remove it from {file}"
        return Gap(clause, reason, GapState.PASSED, text)
    text = f"{clause} is declared as a known gap ({reason}), and is {result.verdict.value}: nothing is known about it"
    return Gap(clause, reason, GapState.UNSETTLED, text)
