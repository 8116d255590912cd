"""What stands behind the `crash_safety` fixture: one call in a test that fails with the story of what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..verdicts import Verdict
from .backends import Environment
from .exploration import ExplorationReport
from .explorer import DEFAULT_TIME_LIMIT, explore
from .player import Paid

__all__ = ["CrashSafety"]

_TOLD = 3
"""How many faults a failure tells in full."""


class CrashSafety:
    """Checks that a pipeline survives being killed anywhere.

        def test_survives(crash_safety):
            crash_safety.check(content_pipeline, topic="agentic search")

    `reports` keeps what each call found. `environment` and `paid` are those of `explore`, for all calls.
    """

    def __init__(self, *, environment: Environment = None, paid: Paid | None = None) -> None:
        self.reports: list[ExplorationReport] = []
        self._environment = environment
        self._paid = paid

    def check(
        self,
        pipeline: Any,
        /,
        *,
        mode: str | None = None,
        at: Sequence[str] | None = None,
        budget: int | None = None,
        store: Any = None,
        time_limit: float = DEFAULT_TIME_LIMIT,
        **inputs: Any,
    ) -> ExplorationReport:
        """Kill and resume `pipeline` at its crash points, with these inputs, and return the report.

        The options are those of `explore`. A pipeline at the top level of a module is killed in processes of its own;
        one that is made inside a test function is run in-process, and the report says so. Raises `AssertionError` if a
        clause is broken, or if a kill did not happen.
        """
        __tracebackhide__ = True
        report = explore(
            pipeline,
            inputs,
            store=store,
            mode=mode,
            at=at,
            budget=budget,
            time_limit=time_limit,
            environment=self._environment,
            paid=self._paid,
        )
        self.reports.append(report)
        if not report.ok:
            raise AssertionError(told(report))
        return report


def told(report: ExplorationReport) -> str:
    """Return the failure of a report as a text: what is broken, how often, and the stories of the first few faults."""
    lines = [f"{report.target} does not survive every kill (store: {report.store}, mode: {report.mode})"]
    for clause in report.clauses:
        if not clause.ok:
            lines.append(f"{clause.verdict} {clause.clause}  {clause.title}: {clause.reason}")
            findings = sorted(clause.findings, key=lambda finding: len(finding.story))
            for finding in findings[:_TOLD]:
                lines += ["", str(finding)]
            if len(findings) > _TOLD:
                lines += ["", f"  … and {len(findings) - _TOLD} more like it"]
            lines.append("")
    vacuous = [row for row in report.rows if row.verdict is Verdict.VACUOUS]
    lines += [f"VACUOUS {row.point}: {row.reason}" for row in vacuous]
    if not report.rows:
        lines.append("VACUOUS: no crash point was tried")
    lines += [f"note: {note}" for note in report.notes]
    return "\n".join(lines).rstrip()
