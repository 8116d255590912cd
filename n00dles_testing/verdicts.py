"""What a check says in the end, in one vocabulary for the whole harness.

Nothing counts that cannot fail: a result without a single scenario behind it is never a PASS, whoever builds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

__all__ = ["ClauseResult", "Finding", "Verdict", "overall"]


class Verdict(StrEnum):
    """The six ends of a check. The value is how it is printed."""

    PASS = "PASS"  # noqa: S105 - a verdict, no password
    """The clause was tried, at least once, and held every time."""

    FAIL = "FAIL"
    """The clause was broken; a finding tells how, and how to see it again."""

    NOT_APPLICABLE = "NOT APPLICABLE"
    """The subject does not offer what the clause is about. Proven by a probe, never assumed."""

    NOT_RUN = "NOT RUN"
    """The check could not be run here, or was not asked for; the reason says why."""

    UNKNOWN = "UNKNOWN"
    """The check ran and cannot tell: what it would compare against is itself not settled."""

    VACUOUS = "VACUOUS"
    """The check ran and tried nothing: a kill that did not happen, a race that did not overlap. An error, no pass."""

    @property
    def ok(self) -> bool:
        """Whether a test or a command may end well with it: False for FAIL and VACUOUS."""
        return self not in (Verdict.FAIL, Verdict.VACUOUS)


_WORST_FIRST = (
    Verdict.FAIL,
    Verdict.VACUOUS,
    Verdict.UNKNOWN,
    Verdict.PASS,
    Verdict.NOT_RUN,
    Verdict.NOT_APPLICABLE,
)


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the one verdict that stands for many: the worst of them, and VACUOUS for none at all.

    What was left out does not spoil a PASS, but does not make one either.
    """
    seen = set(verdicts)
    return next((verdict for verdict in _WORST_FIRST if verdict in seen), Verdict.VACUOUS)


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, told to a person.

    `message` is one sentence in the user's words, with what to do where that is known. `story` is what happened, a line
    each: the lives, what was on disk, why. `replay` is the command that shows it again, or None. `picture` is what a
    report can draw, in plain JSON types, or None: of a power loss what was done to which file, and what was left.
    """

    clause: str
    message: str
    story: tuple[str, ...] = ()
    replay: str | None = None
    picture: dict[str, Any] | None = field(default=None, hash=False)

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        form = {"clause": self.clause, "message": self.message, "story": list(self.story), "replay": self.replay}
        return form if self.picture is None else {**form, "picture": self.picture}

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Self:
        """Read what `to_dict` made."""
        return cls(form["clause"], form["message"], tuple(form["story"]), form["replay"], form.get("picture"))

    def __str__(self) -> str:
        lines = [f"{self.clause}  {self.message}", *(f"  {line}" for line in self.story)]
        if self.replay:
            lines.append(f"  replay   {self.replay}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ClauseResult:
    """What became of one clause of the contract: the verdict, why, and how much stands behind it.

    `scenarios` counts what was really tried; with none of them a PASS becomes VACUOUS at once. `seconds` is wall time,
    None where the same scenarios stand behind several clauses. `untried` is what was left out because the subject
    failed at it already undisturbed: that is for another clause to find.
    """

    clause: str
    title: str
    verdict: Verdict
    reason: str = ""
    scenarios: int = 0
    seconds: float | None = None
    findings: tuple[Finding, ...] = ()
    untried: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.verdict is Verdict.PASS and self.scenarios <= 0:
            object.__setattr__(self, "verdict", Verdict.VACUOUS)
            object.__setattr__(self, "reason", self.reason or "no scenario was run, so nothing was shown")

    @property
    def ok(self) -> bool:
        """See `Verdict.ok`."""
        return self.verdict.ok

    def with_seconds(self, seconds: float) -> Self:
        """Return the same result, with the time that it took."""
        return replace(self, seconds=seconds)

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {
            "clause": self.clause,
            "title": self.title,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "scenarios": self.scenarios,
            "seconds": self.seconds,
            "findings": [finding.to_dict() for finding in self.findings],
            "untried": list(self.untried),
        }

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Self:
        """Read what `to_dict` made. Raises `ValueError` for a verdict that there is not."""
        return cls(
            clause=form["clause"],
            title=form["title"],
            verdict=Verdict(form["verdict"]),
            reason=form["reason"],
            scenarios=form["scenarios"],
            seconds=form["seconds"],
            findings=tuple(Finding.from_dict(finding) for finding in form["findings"]),
            untried=tuple(form.get("untried", ())),
        )
