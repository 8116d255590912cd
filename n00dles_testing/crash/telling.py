"""A whole report as a text: what a failing test shows, and what `str(report)` is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..findings import few
from ..verdicts import Verdict
from .points import How

if TYPE_CHECKING:
    from .exploration import ExplorationReport

__all__ = ["CLAUSES_PAGE", "told"]

CLAUSES_PAGE = "What each clause means, and what to do about it: docs/reference/executor-clauses.md"
"""Shown once under all findings."""


def told(report: ExplorationReport) -> str:
    """Return what is broken, how often, and the stories of the first few faults; a line if nothing is."""
    lines = [f"{report.target} {_end(report)} (store: {report.store}, mode: {report.mode})"]
    for clause in report.clauses:
        if not clause.ok:
            lines.append(f"{clause.verdict} {clause.clause}  {clause.title}: {clause.reason}")
            shown, left = few(clause.findings)
            for finding in shown:
                lines += ["", str(finding)]
            if left:
                lines += ["", f"  … and {left} more like {'it' if len(shown) == 1 else 'these'}"]
            lines.append("")
    if report.findings:
        lines.append(CLAUSES_PAGE)
    vacuous = [row for row in report.rows if row.verdict is Verdict.VACUOUS]
    lines += [f"VACUOUS {row.point}: {row.reason}" for row in vacuous]
    if not report.rows:
        lines.append("VACUOUS: no crash point was tried")
    if report.unknown:
        lines.append(f"UNKNOWN {report.unknown}.")
    if report.bodies:
        lines.append(f"bodies ran {report.bodies} times")
    lines += [f"note: {note}" for note in report.notes]
    return "\n".join(lines).rstrip()


def _end(report: ExplorationReport) -> str:
    kills_only = all(row.point.how is How.KILL for row in report.rows)
    what = "every kill" if kills_only else "every kill and every other disturbance"
    if report.verdict is Verdict.UNKNOWN:
        return "cannot be judged"
    return f"survives {what}, {len(report.rows)} in all" if report.ok else f"does not survive {what}"
