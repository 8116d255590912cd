"""What a campaign found: a result for each clause, and what stands behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..verdicts import ClauseResult, Finding, Verdict, overall

__all__ = ["CampaignError", "CampaignProgress", "CampaignReport"]


class CampaignError(Exception):
    """There is nothing to prove: the executor is none, or nothing was asked for. The message says what to do."""


@dataclass(frozen=True, slots=True)
class CampaignProgress:
    """How far a campaign is. `total` is None while only the time is limited; `broken` are clauses broken so far.

    With `is_telling` the search is over, and what was found is made simpler, and tried with real processes.
    """

    doing: str
    done: int
    total: int | None
    broken: tuple[str, ...] = ()
    is_telling: bool = False


@dataclass(frozen=True, slots=True)
class CampaignReport:
    """All clauses of one campaign.

    `scenarios` were tried on `pipelines` different pipelines; `disturbances` says how often lives were disturbed in
    which way. `vacuous` are scenarios that tried nothing, by reason; they stand behind no clause. With `seed` and the
    same number of examples the same scenarios are drawn again.
    """

    executor: str
    seed: int
    scenarios: int
    pipelines: int
    clauses: tuple[ClauseResult, ...]
    disturbances: dict[str, int]
    vacuous: dict[str, int]
    notes: tuple[str, ...]
    seconds: float
    scenario_seconds: float
    met: dict[str, int]
    """After how many scenarios of its family each broken clause was first met."""
    sizes: dict[str, int]
    """How many nodes the simplest pipeline has that breaks each broken clause."""

    @property
    def verdict(self) -> Verdict:
        """The one verdict for all; VACUOUS if nothing was tried."""
        return overall(clause.verdict for clause in self.clauses) if self.scenarios else Verdict.VACUOUS

    @property
    def ok(self) -> bool:
        """Whether a test may pass with it: something was tried, all of what was asked for, and nothing failed."""
        return self.verdict is Verdict.PASS

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every fault found, by clause."""
        return tuple(finding for clause in self.clauses for finding in clause.findings)

    @property
    def broken(self) -> frozenset[str]:
        """The clauses that failed."""
        return frozenset(clause.clause for clause in self.clauses if clause.verdict is Verdict.FAIL)

    @property
    def summary(self) -> str:
        """The line that sums up."""
        return (
            f"{self.executor}: {self.verdict.value}, {self.scenarios} scenarios on {self.pipelines} generated "
            f"pipelines in {self.seconds:.1f} s ({self.scenarios_per_second:.0f} a second, seed {self.seed})"
        )

    def __str__(self) -> str:
        """Tell it to a person: the clauses that were asked for, and every fault with its story and replay."""
        asked = [clause for clause in self.clauses if clause.verdict is not Verdict.NOT_RUN]
        lines = [f"{each.clause}  {each.verdict.value:<8}  {_behind(each)}" for each in asked]
        told = [f"\n{finding}" for finding in self.findings]
        return "\n".join([self.summary, *lines, *self.notes, *told])

    @property
    def scenarios_per_second(self) -> float:
        """The rate of the scenarios alone, without shrinking and confirming."""
        return self.scenarios / self.scenario_seconds if self.scenario_seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types, for a file that another program reads."""
        return {
            "executor": self.executor,
            "seed": self.seed,
            "verdict": self.verdict.value,
            "scenarios": self.scenarios,
            "pipelines": self.pipelines,
            "clauses": [clause.to_dict() for clause in self.clauses],
            "disturbances": self.disturbances,
            "vacuous": self.vacuous,
            "notes": list(self.notes),
            "seconds": self.seconds,
            "scenario_seconds": self.scenario_seconds,
            "scenarios_per_second": self.scenarios_per_second,
            "met": self.met,
            "sizes": self.sizes,
        }


def _behind(result: ClauseResult) -> str:
    return ": ".join(filter(None, (f"{result.scenarios} scenarios", result.reason)))
