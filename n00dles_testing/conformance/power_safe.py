"""What the clauses about power loss have in common: which stores they are about, and how a finding is told."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from ..powerloss.exploring import HANGS
from ..powerloss.faults_found import FaultKind
from ..powerloss.models import MODELS
from .child import TracingProcedure
from .durability import lies_with_a_server, require_durable
from .expect import BrokenClause, MisuseError, NotApplicableError, UnknownOutcomeError, VacuousCheck
from .power_loss import lose_power, lose_power_after_failed_syncs
from .power_workload import Workload, everything_once, saved_again
from .scenario import Scenario
from .subject import StoreSubject
from .traced import token_of, why_no_tracing

__all__ = [
    "KEEPS",
    "OPENS",
    "REQUIRED",
    "STRICTEST",
    "expect_enough",
    "expect_followed",
    "expect_none",
    "expect_survived",
    "failed_syncs",
    "power_losses",
    "recoveries_tried",
    "required",
    "states_tried",
    "strictly",
]

REQUIRED = ("kill", "ext4", "journaled")
"""The models under which a store must be whole."""
OPENS = (FaultKind.CORRUPT, FaultKind.UNSTABLE, FaultKind.RECOVERY, FaultKind.WEDGED)
"""The kinds that are for P01."""
KEEPS = (FaultKind.LOST_ACK, FaultKind.PHANTOM, FaultKind.MIXED, FaultKind.LOST_IN_RECOVERY)
"""The kinds that are for P02."""
STRICTEST = "strict"
"""The model that is tried as well, and told as a note."""
_ATTEMPTS = 2
_MOST = 300
"""How many states of one recording are judged under one model, besides the ends of each crash position.

With N00DLES_PROFILE=deep there is no such bound.
"""
_NO_BOUND = 1_000_000
_MOST_AFTER_A_FAILED_SYNC = 30
_PART_OF_THE_TIME = 0.7
"""So much of the time of a clause is for the states: what is found must be told before the clause is ended."""

Came = dict[str, Any]
Alike = tuple[str, tuple[str, ...], str]


async def power_losses(subject: StoreSubject) -> tuple[Workload, Came]:
    """Return the workload `everything_once`, and what `lose_power` found: two clauses ask for the same.

    Raises for a store that the clauses are not about, or that cannot be tried: see `_expect_shown`. Raises
    `VacuousCheck` if the check itself breaks.
    """
    models = (*REQUIRED, STRICTEST)
    bounds = _bounds(subject, _MOST)

    async def find_out() -> tuple[Workload, Came]:
        workload = everything_once(subject.fresh_run_id(), subject.fresh_run_id())
        return workload, await _came(subject, lose_power, workload, models, bounds)

    await _require_files(subject)
    workload, came = await subject.once("power losses", find_out)
    _expect_shown(came)
    return workload, came


async def failed_syncs(subject: StoreSubject) -> tuple[Workload, Came]:
    """Return the workload `saved_again`, and what `lose_power_after_failed_syncs` found. Raises as `power_losses`."""
    await _require_files(subject)
    workload = saved_again(subject.fresh_run_id())
    bounds = {**_bounds(subject, _MOST_AFTER_A_FAILED_SYNC), "recoveries": 0}
    came = await _came(subject, lose_power_after_failed_syncs, workload, REQUIRED[-1:], bounds)
    _expect_shown(came)
    return workload, came


def expect_none(
    s: Scenario,
    workload: Workload,
    report: Came,
    kinds: Sequence[FaultKind],
    told: Sequence[str] = (),
    *,
    among: Sequence[Came] = (),
) -> None:
    """Raise `BrokenClause` with the first finding of these kinds under one model, told as a story.

    `told` is what became of each step; without it, all are acknowledged. `among` are the reports of all models for
    which this is called, one after the other: what was told under one is not told again under another.
    """
    among = among or [report]
    finding = _first_untold(among, report, kinds)
    s.judged()
    if finding is None:
        return
    outcomes = list(told) or ["acknowledged"] * len(workload.steps)
    for number, (title, outcome) in enumerate(zip(workload.titles(), outcomes, strict=True)):
        token = token_of(number)
        if token not in finding["invoked"]:
            break
        has_returned = token in finding["acknowledged"] or outcome != "acknowledged"
        s.tell(f"call {token}: {title} → {outcome if has_returned else 'the power fails before it returns'}")
    s.location = None  # nothing of this lies there
    details = [
        ("on disk", ", ".join(finding["on_disk"]) or "no file"),
        *(("lost", text) for text in finding["lost"][:_SHOWN_LOSSES]),
        ("found", f"in {_counted(among, finding)}"),
        *(("then", text) for text in finding["details"]),
        ("allowed", _ALLOWED[FaultKind(finding["kind"])]),
        ("came", finding["message"]),
        ("why", finding["words"]),
        ("fix", finding.get("fix", "")),
        *(("also", f"{each['words']} → {each['fix']}") for each in finding.get("further", ())),
    ]
    picture = {"model": report["model"], "calls": workload.titles(), "told": outcomes, "finding": finding}
    raise BrokenClause(
        f"{finding['kind']} after a power loss ({report['model']}): {finding['message']}", tuple(details), picture
    )


def _first_untold(among: Sequence[Came], report: Came, kinds: Sequence[FaultKind]) -> Came | None:
    told = set[Alike]()
    for each in among:
        finding = next((found for found in _of_kinds(each, kinds) if _alike(found) not in told), None)
        if each is report:
            return finding
        if finding is not None:
            told.add(_alike(finding))
    return None


def _alike(finding: Came) -> Alike:
    """Return what is equal for findings that another model shows as well: what was lost, or said."""
    cause = tuple(finding.get("cause", ()))
    return finding["kind"], cause, "" if cause else finding["message"]


def _counted(among: Sequence[Came], finding: Came) -> str:
    """Say in how many states of each model the finding is."""
    return ", ".join(
        f"{found['count']} of the {report['tried']} disk states tried under {report['model']}"
        for report in among
        for found in report["findings"]
        if _alike(found) == _alike(finding)
    )


_SHOWN_LOSSES = 6
_SAVED = "what the last acknowledged call left, or what the call in progress would have left"
_ALLOWED = {
    FaultKind.CORRUPT: "that it opens and loads",
    FaultKind.UNSTABLE: "that it loads the same again, also when it is opened once more",
    FaultKind.RECOVERY: "that it opens, loads and goes on, as after the first power loss",
    FaultKind.WEDGED: "that the next save works",
    FaultKind.LOST_ACK: _SAVED,
    FaultKind.PHANTOM: _SAVED,
    FaultKind.MIXED: _SAVED,
    FaultKind.LOST_IN_RECOVERY: f"{_SAVED}, as after the first power loss",
}
"""What must be, whatever the disk holds."""


def _of_kinds(report: Came, kinds: Sequence[FaultKind]) -> Iterator[Came]:
    return (finding for finding in report["findings"] if finding["kind"] in kinds)


def required(reports: Sequence[Came]) -> list[Came]:
    """Return the reports of the models under which a store must be whole."""
    return [report for report in reports if report["model"] in REQUIRED]


def expect_enough(reports: Sequence[Came]) -> None:
    """Raise `UnknownOutcomeError` if under one model not all was tried that must be."""
    for report in reports:
        if report["missed"] and report["hung"] >= HANGS:
            raise UnknownOutcomeError(
                f"the store hung in {report['hung']} states, so the others were not tried ({report['model']})"
            )
        if report["missed"]:
            raise UnknownOutcomeError(
                f"there was time for {_tried(report)} states of the disk ({report['model']}), not for the least and "
                "the most that it may hold at each crash position; give it more with --limit"
            )


def expect_survived(reports: Sequence[Came]) -> None:
    """Raise `MisuseError` if a power loss is not survived though no sync has failed: what fails, and how to see it."""
    for report in reports:
        for finding in report["findings"]:
            clause = "P01" if FaultKind(finding["kind"]) in OPENS else "P02"
            raise MisuseError(
                f"even without a failed sync, a power loss is not survived ({finding['kind']} under {report['model']}: "
                f"{finding['words']}). That is for {clause}: mend it first, check with --clause {clause}"
            )


def expect_followed(reports: Sequence[Came]) -> None:
    """Raise `UnknownOutcomeError` if it could not be followed how the store opens on one of the states."""
    for report in reports:
        if report["unfollowed"]:
            raise UnknownOutcomeError(
                "whether a second power loss is survived, while the store opens, cannot be told "
                f"({report['model']}): {report['unfollowed']}"
            )


def recoveries_tried(reports: Sequence[Came]) -> str:
    """Say how often the power failed a second time."""
    parts = [f"{report['recoveries']} ({report['model']})" for report in required(reports)]
    return f"openings in the midst of which the power failed again: {', '.join(parts)}"


def states_tried(reports: Sequence[Came]) -> str:
    """Say how many states were tried under each model that is required."""
    parts = [f"{_tried(report)} ({report['model']})" for report in required(reports)]
    return f"states of the disk tried: {', '.join(parts)}"


def strictly(reports: Sequence[Came], kinds: Sequence[FaultKind]) -> str:
    """Say how the store does under the strictest model, of which no level depends."""
    (report,) = (report for report in reports if report["model"] == STRICTEST)
    found = ", ".join(f"{finding['kind']} in {finding['count']}" for finding in _of_kinds(report, kinds))
    return f"{STRICTEST} ({MODELS[STRICTEST].about}): {found or 'no fault'} of {_tried(report)} states"


def _tried(report: Came) -> str:
    return str(report["tried"]) if report["at_least"] is None else f"{report['tried']} of at least {report['at_least']}"


def _bounds(subject: StoreSubject, most: int) -> Came:
    budget = _NO_BOUND if os.environ.get("N00DLES_PROFILE") == "deep" else most
    return {
        "budget": budget,
        "seconds": subject.seconds * _PART_OF_THE_TIME,
        "seed": subject.seed,
        "time_limit": subject.call_seconds,
    }


async def _require_files(subject: StoreSubject) -> None:
    """Return if the store keeps runs and its calls can be traced. Raises `NotApplicableError` or `MisuseError`."""
    await require_durable(subject)
    if (lies := await lies_with_a_server(subject)) is not None:
        raise NotApplicableError(f"{lies}: what a power loss does to them is for that server")
    if why := await why_no_tracing(subject):
        raise MisuseError(f"system calls cannot be traced: {why}")


async def _came(
    subject: StoreSubject, procedure: TracingProcedure, workload: Workload, models: Sequence[str], bounds: Came
) -> Came:
    """Run a procedure on a fresh location; once more, if the workload comes out wrong undisturbed."""
    came: Came = {}
    for _ in range(_ATTEMPTS):
        async with subject.probe("power losses") as s, s.elsewhere(tracing=True) as other:
            try:
                came = await other.perform(procedure, workload=workload.to_dict(), models=list(models), bounds=bounds)
            except BrokenClause as broken:  # the store runs in forks of it, so this is none of the store's doing
                raise VacuousCheck(f"the check itself broke: {broken.message}") from broken
        if "wrong" not in came:
            break
    return came


def _expect_shown(came: Came) -> None:
    """Raise `UnknownOutcomeError` if the calls do not tell what happened, `MisuseError` if it was wrong undisturbed.

    And `MisuseError` if nothing was written in the location: nobody knows then where the store keeps its runs.
    """
    if "unended" in came:
        raise UnknownOutcomeError(came["unended"])
    if "unfollowable" in came:
        raise UnknownOutcomeError(f"it cannot be told which states the disk may hold: {came['unfollowable']}")
    if "wrong" in came:
        raise MisuseError(f"the store already fails without a power loss, see S01–S12 and C01: {came['wrong']}")
    if not came["operations"]:
        raise MisuseError(
            "the store writes no file in its location: creations, saves and a delete of it were traced, and made none. "
            "Have it keep its files there. What it keeps in /dev/shm, or in another tmpfs, a power loss takes"
        )
