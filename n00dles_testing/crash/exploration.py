"""What an exploration found: one row a crash point, one result a clause, and what the reader has to know about both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..verdicts import ClauseResult, Finding, Verdict, overall
from .points import OPENING, Plan, Point

__all__ = ["ExplorationError", "ExplorationReport", "ExplorationRow", "Progress"]


class ExplorationError(Exception):
    """There is nothing to explore: the target cannot be imported, or fails undisturbed. The message says what to do."""


_WHAT_TO_DO = (
    "Make it the same in every run under the fake LLM (take a date or a random number as an input of the run), or "
    "allow it with allow_unknown=True (--allow-unknown)"
)


@dataclass(frozen=True, slots=True)
class ExplorationRow:
    """One scenario: killed or disturbed at `point`, resumed, and judged. `plan` has those of earlier lives before it.

    `killed_by` is the number of the signal that it died by, None if it did not die so; `simulated` if death was an
    exception; `disturbed` if it was disturbed otherwise, as planned. `on_disk` are the nodes that the store held after
    it, None if it had no record of the run, or if `disk_note` says that it cannot be told. `paid` is what the LLM
    server was paid for in all lives (None if nobody counts), `recalled` the completed nodes that were called again.
    `same_output` is None if that could not be told. `occasions` says how often this scenario could have broken each
    clause; it is empty if the kill or disturbance did not happen. `lives` counts those that had to work.
    """

    plan: Plan
    killed_by: int | None
    simulated: bool
    disturbed: bool
    on_disk: tuple[str, ...] | None
    paid: int | None
    calls: int
    recalled: tuple[str, ...]
    same_output: bool | None
    verdict: Verdict
    reason: str
    findings: tuple[Finding, ...]
    occasions: dict[str, int]
    story: tuple[str, ...]
    lives: int
    seconds: float
    disk_note: str = ""

    @property
    def point(self) -> Point:
        """The crash point that was tried."""
        return self.plan[-1]

    @property
    def label(self) -> str:
        """The crash point in words, for a table: of a later life its opening save, or else the whole `path`."""
        life = len(self.plan)
        return self.path if self.point.kind not in OPENING else _label(self.point, life)

    @property
    def path(self) -> str:
        """Where each of its lives is killed, in words."""
        return ", then ".join(_label(point, life) for life, point in enumerate(self.plan, 1))

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {
            "point": str(self.point),
            "label": self.label,
            "plan": [str(point) for point in self.plan],
            "killed_by": self.killed_by,
            "how": str(self.point.how),
            "simulated": self.simulated,
            "disturbed": self.disturbed,
            "on_disk": None if self.on_disk is None else list(self.on_disk),
            "disk_note": self.disk_note,
            "paid": self.paid,
            "calls": self.calls,
            "recalled": list(self.recalled),
            "same_output": self.same_output,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "findings": [finding.to_dict() for finding in self.findings],
            "occasions": self.occasions,
            "story": list(self.story),
            "lives": self.lives,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an exploration is. `row` is the one just judged; None while the undisturbed runs are made."""

    done: int
    total: int
    row: ExplorationRow | None = None


@dataclass(frozen=True, slots=True)
class ExplorationReport:
    """All rows and all clauses of one exploration.

    `nodes` are those that the undisturbed run called, `calls` how often in all, `paid` what its LLM server was paid for
    (None if nobody counts). `points` is how many crash points there are; `left_out` were not tried. `notes` are what a
    reader must know: another mode than asked for, an output that differs by itself, points that are not offered.
    `seconds` is wall time of the whole, `scenario_seconds` of the scenarios alone.
    """

    target: str
    mode: str
    store: str
    inputs: dict[str, Any]
    nodes: tuple[str, ...]
    calls: int
    paid: int | None
    points: int
    left_out: int
    rows: tuple[ExplorationRow, ...]
    clauses: tuple[ClauseResult, ...]
    notes: tuple[str, ...]
    workers: int
    seconds: float
    scenario_seconds: float
    allow_unknown: bool = False

    @property
    def verdict(self) -> Verdict:
        """The one verdict for all: FAIL if anything failed, VACUOUS if a kill did not happen or nothing was shown."""
        if not self.rows:
            return Verdict.VACUOUS
        broken = [row.verdict for row in self.rows if not row.verdict.ok]
        found = overall([*broken, *(clause.verdict for clause in self.clauses)])
        return Verdict.VACUOUS if found is Verdict.NOT_APPLICABLE else found

    @property
    def ok(self) -> bool:
        """Whether a test may pass with it. What could not be told is no pass, unless `allow_unknown` says so."""
        return self.verdict.ok and (self.allow_unknown or self.verdict is not Verdict.UNKNOWN)

    @property
    def unknown(self) -> str:
        """Which clauses could not be told, and why, in a sentence; empty if there are none."""
        reasons: dict[str, list[str]] = {}
        for clause in self.clauses:
            if clause.verdict is Verdict.UNKNOWN:
                reasons.setdefault(clause.reason, []).append(clause.clause)
        told = [f"{', '.join(clauses)} could not be told: {reason}" for reason, clauses in reasons.items()]
        return f"{'; '.join(told)}. {_WHAT_TO_DO}" if told else ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every fault found, by clause."""
        return tuple(finding for clause in self.clauses for finding in clause.findings)

    @property
    def scenarios_per_second(self) -> float:
        """The rate of the scenarios alone, without the import and the undisturbed runs."""
        return len(self.rows) / self.scenario_seconds if self.scenario_seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types, for a file that another program reads."""
        return {
            "target": self.target,
            "mode": self.mode,
            "store": self.store,
            "inputs": self.inputs,
            "verdict": self.verdict.value,
            "unknown": self.unknown,
            "nodes": list(self.nodes),
            "calls": self.calls,
            "paid": self.paid,
            "points": self.points,
            "left_out": self.left_out,
            "rows": [row.to_dict() for row in self.rows],
            "clauses": [clause.to_dict() for clause in self.clauses],
            "notes": list(self.notes),
            "workers": self.workers,
            "seconds": self.seconds,
            "scenario_seconds": self.scenario_seconds,
            "scenarios_per_second": self.scenarios_per_second,
        }


def _label(point: Point, life: int) -> str:
    if life > 1 and point.kind in OPENING:
        opening = "the opening save" if point.how.is_store_fault else f"{point.kind.partition('-')[0]} opening save"
        return f"life {life}, {point.how.label(opening)}"
    return point.label
