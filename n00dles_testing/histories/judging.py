"""From a history to a verdict: the assumptions, then for each run the rules, the cheapest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..verdicts import Verdict
from .assumptions import lacks_coverage, overlap, violated_premise
from .calls import Call, History
from .deletes import not_linearizable, resurrected
from .fencing import takeovers, which_state_wins, zombie
from .origins import fork, phantom, two_creations
from .progress import lost_output, reordered
from .search import SearchLimit
from .sweep import sweep
from .violations import RULES, Violation

__all__ = ["Judgement", "judge"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a history shows: PASS, FAIL, UNKNOWN (a limit of the search) or VACUOUS (an assumption does not hold).

    `reason` says why it is no PASS; `violations` has at most one a run. `not_run` names the rules that this history
    cannot be judged by, and why. `overlap` is the share of saves that met another call. `told` is what is no fault, and
    worth knowing: which state a store without revisions keeps of a worker that was stopped.
    """

    verdict: Verdict
    reason: str
    violations: tuple[Violation, ...]
    unknown: tuple[str, ...]
    not_run: tuple[str, ...]
    calls: int
    runs: int
    overlap: float
    told: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The verdict with the kind of its first violation, as FAIL(LOST_UPDATE)."""
        return f"{self.verdict.value}({self.violations[0].kind})" if self.violations else self.verdict.value

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {
            "verdict": self.verdict.value,
            "reason": self.reason,
            "violations": [
                {
                    "rule": each.rule,
                    "kind": each.kind,
                    "run_id": each.run_id,
                    "sentence": each.sentence,
                    "calls": [{name: getattr(call, name) for name in Call.__dataclass_fields__} for call in each.calls],
                }
                for each in self.violations
            ],
            "unknown": list(self.unknown),
            "not_run": list(self.not_run),
            "calls": self.calls,
            "runs": self.runs,
            "overlap": self.overlap,
            "told": list(self.told),
        }


def judge(history: History) -> Judgement:
    """Judge a history. It runs nothing, and the same history has the same judgement."""
    runs = history.by_run()
    premise = violated_premise(history, runs)
    if premise is not None:
        return _judgement(history, runs, Verdict.VACUOUS, premise)
    first = history.first_revision if history.has_revisions else None
    violations, unknown = [], []
    for calls in runs.values():
        try:
            violation = next(filter(None, _violations(calls, first)), None)
        except SearchLimit as limit:
            unknown.append(f"run {calls[0].run_id!r}: {limit}")
            continue
        if violation is not None:
            violations.append(violation)
    if violations:
        told = violations[0]
        reason = f"{told.rule} {told.kind} on run {told.run_id!r}: {told.sentence}"
        return _judgement(history, runs, Verdict.FAIL, reason, violations=violations, unknown=unknown)
    too_little = lacks_coverage(history, runs)
    if too_little is not None:
        return _judgement(history, runs, Verdict.VACUOUS, too_little, unknown=unknown)
    if unknown:
        return _judgement(history, runs, Verdict.UNKNOWN, unknown[0], unknown=unknown)
    return _judgement(history, runs, Verdict.PASS, "")


def _violations(calls: Sequence[Call], first: int | None) -> Iterator[Violation | None]:
    """Yield what each rule says of one run, the cheapest first. Raises `SearchLimit`.

    `first` is the revision of a run that was never saved, None for a store without revisions.
    """
    has_deletes = any(call.operation == "delete" and call.has_effect for call in calls)
    yield phantom(calls)
    yield resurrected(calls)
    if not has_deletes:
        yield two_creations(calls, first or 0)
    if first is not None:
        yield zombie(calls)
    if first is None:
        yield fork(calls)
    elif not has_deletes:
        yield sweep(calls, first)
    yield lost_output(calls)
    yield reordered(calls)
    if has_deletes and first is not None:
        yield not_linearizable(calls, first)


def _judgement(
    history: History,
    runs: dict[str, list[Call]],
    verdict: Verdict,
    reason: str,
    *,
    violations: Sequence[Violation] = (),
    unknown: Sequence[str] = (),
) -> Judgement:
    return Judgement(
        verdict,
        reason,
        tuple(violations),
        tuple(unknown),
        tuple(_not_run(history)),
        len(history.calls),
        len(runs),
        overlap(runs.values()),
        () if history.has_revisions else tuple(told for calls in runs.values() for told in which_state_wins(calls)),
    )


def _not_run(history: History) -> Iterator[str]:
    calls = history.calls
    if not history.has_revisions:
        yield "H2, H4, H5 and the search of H6: the store keeps no revision, so loads show no order"
    if not any(call.operation == "delete" for call in calls):
        yield f"H6 ({RULES['H6']}): no delete was tried"
    if not any(call.incarnation is not None or call.created is not None for call in calls):
        yield f"H7 ({RULES['H7']}): the history does not say which inputs were shown, or who created a run"
    if not any(call.outputs is not None for call in calls):
        yield f"H8 ({RULES['H8']}): no nodes were recorded"
    if not any(call.executor is not None for call in calls):
        yield f"H9 ({RULES['H9']}): no executor issued saves of its own order"
    if not any(True for calls in history.by_run().values() for _ in takeovers(calls)):
        yield f"H10 ({RULES['H10']}): no worker was stopped while another went on"
