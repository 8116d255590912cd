"""From lived scenarios to rows and results: who was really killed, what the judge says, how much stands behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..verdicts import ClauseResult, Finding, Verdict, overall
from .case import Baseline, Case, Clause
from .clauses import JUDGED as CLAUSES
from .exploration import ExplorationRow
from .history import History, Life
from .points import OF_A_NODE, How, Plan
from .story import tell

__all__ = ["TOO_LATE", "Played", "assess", "clause_results", "not_disturbed"]


TOO_LATE = "it was there, and ended before it could be told"


@dataclass(frozen=True, slots=True)
class Played:
    """A scenario that was lived. `paid` is what the LLM server was paid for, None if nobody counts."""

    plan: Plan
    history: History
    paid: int | None
    seconds: float


def _judge(case: Case, clauses: Sequence[Clause], replay: str | None) -> list[Finding]:
    """Return all faults of one scenario."""
    return [
        Finding(clause.id, message.rstrip(".") + ".", tell(case.history, why), replay)
        for clause in clauses
        for message, why in clause.faults(case)
    ]


def assess(played: Played, baseline: Baseline, usually_paid: int | None, replay: str | None) -> ExplorationRow:
    """Judge one scenario. One whose kill did not happen is VACUOUS, whatever else it shows."""
    history = played.history
    vacuous = not_disturbed(history, played.plan)
    if vacuous:
        vacuous += _gone(played.plan, baseline)
    paid = None if played.paid is None or usually_paid is None else (played.paid, usually_paid)
    case = Case(history, baseline, paid)
    findings = [] if vacuous else _judge(case, CLAUSES, replay)
    settled = not vacuous and not baseline.unsettled
    verdict = overall(
        [
            Verdict.VACUOUS if vacuous else Verdict.PASS if settled else Verdict.UNKNOWN,
            *(Verdict.FAIL for _ in findings[:1]),
        ]
    )
    killed = _life(history, len(played.plan))
    return ExplorationRow(
        plan=played.plan,
        killed_by=killed.end.signal if killed is not None and killed.end is not None else None,
        simulated=killed is not None and killed.end is not None and killed.end.simulated,
        disturbed=not vacuous and played.plan[-1].how is not How.KILL,
        on_disk=_on_disk(_life(history, len(played.plan) + 1)),
        disk_note=_disk_note(_life(history, len(played.plan) + 1)),
        paid=played.paid,
        calls=len(history.calls),
        recalled=_recalled(history),
        same_output=not any(finding.clause == "E04" for finding in findings)
        if not vacuous and not baseline.unsettled_output
        else None,
        verdict=verdict,
        reason=vacuous or ("" if settled else baseline.unsettled),
        findings=tuple(findings),
        occasions={} if vacuous else {clause.id: clause.occasions(case) for clause in CLAUSES},
        story=tell(history),
        lives=len(history.working),
        seconds=played.seconds,
    )


def clause_results(
    rows: Sequence[ExplorationRow], undisturbed: Sequence[History], baseline: Baseline, replay: str | None
) -> list[ClauseResult]:
    """Sum up each clause over all rows and the undisturbed runs. `replay` shows the faults of the latter.

    Only scenarios that could have broken the clause stand behind its verdict; without any it is NOT APPLICABLE.
    """
    runs = [Case(history, baseline) for history in undisturbed]
    results = []
    for clause in CLAUSES:
        own = [finding for row in rows for finding in row.findings if finding.clause == clause.id]
        scenarios = sum(row.occasions.get(clause.id, 0) > 0 for row in rows)
        if clause.undisturbed:
            own += [finding for run in runs for finding in _judge(run, [clause], replay)]
            scenarios += sum(clause.occasions(run) > 0 for run in runs)
        results.append(_result(clause, own, scenarios, baseline, skipped=sum(not row.occasions for row in rows)))
    return results


def _result(clause: Clause, own: list[Finding], scenarios: int, baseline: Baseline, *, skipped: int) -> ClauseResult:
    not_counted = _skipped(skipped)
    if untold := baseline.shape.untold.get(clause.id):
        verdict, reason = Verdict.NOT_APPLICABLE, untold
    elif own:
        verdict, reason = Verdict.FAIL, _times(len(own), "fault")
    elif not scenarios:
        verdict, reason = Verdict.NOT_APPLICABLE, f"{clause.without}{f'; {not_counted}' if not_counted else ''}"
    elif unsettled := clause.unsettled(baseline):
        verdict, reason = Verdict.UNKNOWN, unsettled
    else:
        verdict, reason = Verdict.PASS, not_counted
    return ClauseResult(clause.id, clause.title, verdict, reason, scenarios, findings=tuple(own))


def not_disturbed(history: History, plan: Plan) -> str:
    """Say why this scenario shows nothing, if so: a life did not die at its point by signal 9, or was not disturbed."""
    for number, point in enumerate(plan, 1):
        life = _life(history, number)
        if life is None or not life.was_disturbed:
            what = "the kill" if point.how is How.KILL else "the disturbance"
            return f"{what} {point} of life {number} did not happen: {_instead(life)}"
        if others := _may_have_hit(life):
            return (
                f"whether the kill {point} of life {number} hit the request that was meant cannot be told: {others} "
                "sent one at the same time, and none of them has an idempotency key"
            )
    return ""


def _gone(plan: Plan, baseline: Baseline) -> str:
    """Name the nodes of a plan that there are none of any more: it was made of other code."""
    nodes = [point.subject for point in plan if point.kind in OF_A_NODE and point.subject not in baseline.calls]
    if not nodes:
        return ""
    now = ", ".join(f"`{node}`" for node in baseline.calls)
    return f"; {', '.join(f'`{node}`' for node in dict.fromkeys(nodes))} is no node that is called now, those are {now}"


def _may_have_hit(life: Life) -> str:
    """Name the nodes whose request may have set off a kill that was armed for whichever request comes next."""
    at_point = life.at_point or {}
    if "node" not in at_point or at_point["key"] is not None:
        return ""
    waiting = {call.node for call in life.calls if call.request is not None and call.ended is None}
    return ", ".join(f"`{node}`" for node in sorted(waiting - {at_point["node"]}))


def _life(history: History, number: int) -> Life | None:
    return next((life for life in history.lives if life.number == number), None)


def _instead(life: Life | None) -> str:
    if life is None:
        return "there was no such life"
    if life.end is not None and life.end.timed_out:
        return f"it did not get there within {life.end.seconds:.0f} s"
    if life.at_point is not None:
        if life.how is not How.KILL:
            return TOO_LATE
        how = f"signal {life.end.signal}" if life.end is not None and life.end.signal else "no signal at all"
        return f"it was there, and ended by {how}"
    if life.outcomes and not life.outcomes[-1]["ok"]:
        return f"it raised {life.outcomes[-1]['error']} before: {life.outcomes[-1]['message']}"
    return "it never passed there"


def _disk_note(after: Life | None) -> str:
    """Say in two words why it cannot be said what was on disk, if so."""
    if after is None or after.disk is None:
        return ""
    return "unreadable" if "error" in after.disk else "" if after.knows_disk else "not known"


def _on_disk(after: Life | None) -> tuple[str, ...] | None:
    if after is None or after.disk is None or not after.disk.get("exists") or not after.knows_disk:
        return None
    return tuple(after.stored)


def _recalled(history: History) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for life in history.lives[1:]:
        completed = history.completed_before(life)
        found |= dict.fromkeys(call.node for call in life.calls if call.node in completed)
    return tuple(found)


def _times(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def _skipped(count: int) -> str:
    return f"{_times(count, 'scenario')} not counted: the kill or disturbance did not happen" if count else ""
