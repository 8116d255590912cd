"""What an exploration found: one row a crash point, one result a clause, and what the reader has to know about both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..verdicts import ClauseResult, Finding, Verdict, overall
from .points import OPENING, Plan, Point
from .telling import told

__all__ = ["ExplorationError", "ExplorationReport", "ExplorationRow", "Progress"]


class ExplorationError(Exception):
    """There is nothing to explore: the target cannot be imported, or fails undisturbed. The message says what to do."""


_ALLOW = "Or allow it with allow_unknown=True (--allow-unknown)"


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

    def __str__(self) -> str:
        first = f"{self.verdict} {self.path}{f': {self.reason}' if self.reason else ''}"
        return "\n".join([first, *(f"  {line}" for line in self.story), *map(str, self.findings)])

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


@dataclass(frozen=True, slots=True, repr=False)
class ExplorationReport:
    """All rows and all clauses of one exploration. `str` tells all that is wrong: `assert report.ok, str(report)`.

    `nodes` are those that the undisturbed run called, `calls` how often in all, `paid` what its LLM server was paid for
    (None if nobody counts). `points` is how many crash points there are; `left_out` were not tried. `notes` are what a
    reader must know: another mode than asked for, an output that differs by itself, points that are not offered.
    `seconds` is wall time of the whole, `scenario_seconds` of the scenarios alone. `bodies` is how often bodies of
    nodes were run for real, in all lives of all runs. `may_run_twice` are those of `notes` that name nodes whose effect
    may happen twice. `has_models` says that a model was called.
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
    bodies: int = 0
    may_run_twice: tuple[str, ...] = ()
    has_models: bool = False

    def __str__(self) -> str:
        return told(self)

    def __repr__(self) -> str:
        # pytest shows it where `assert report.ok` fails.
        return f"<ExplorationReport of {self.target}: {self.verdict}, {len(self.findings)} findings; str() tells them>"

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
        untold = [f"{', '.join(clauses)} could not be told: {reason}" for reason, clauses in reasons.items()]
        return f"{'; '.join(untold)}. {self._advice(' '.join(reasons))}" if untold else ""

    def _advice(self, reason: str) -> str:
        where = "in every run under the fake LLM" if self.has_models else "in every run"
        node = re.search("`.+?`", reason)
        return (
            f"Make it the same {where} (take a date or a random number as an input of the run), or "
            f"{node[0] if node else 'a node'} reads something that an earlier run has changed (a file, a database, a "
            f"global): give each run a fresh one, or something that each process makes anew (a key at import, hash() "
            f"of a text): a resume would meet another one. {_ALLOW}"
        )

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
            "bodies": self.bodies,
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
