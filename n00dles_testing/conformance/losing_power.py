"""Losing the power of a store, without the rest of a check: under any models, as many states as are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..interpreters import working_folder
from ..powerloss.exploring import HANGS
from ..powerloss.models import MODELS
from .child import TracingProcedure, name_of
from .nursery import Nursery
from .power_loss import lose_power, lose_power_after_failed_syncs
from .power_safe import REQUIRED
from .power_workload import Workload, everything_once, saved_again
from .processes import HelperProcess, OtherProcess, describe_exit
from .runner import DEFAULT_LIMIT, open_runner
from .served import is_served, password_hidden
from .target import Workspace
from .traced import tracing_here

__all__ = ["BUDGET", "LIMIT", "PowerLossOfStore", "lose_power_of"]

BUDGET = 600
LIMIT = 5.0
"""Seconds that a call may take on a state of the disk; then it hangs."""
_AFTER_A_FAILED_SYNC = 60
_SECONDS = 2400.0
"""How long the store is looked at, once as it is and once while syncs fail."""
_PATIENCE = 60.0
_TIME_TO_DIE = 5.0
_NO_FILE = (
    "the store writes no file in its location, so there is nothing to lose; have it keep its files there. "
    "(What it keeps in /dev/shm, or in another tmpfs, is memory: a power loss takes all of it)"
)

Report = dict[str, Any]
Heard = Callable[[str, int], None]
"""Hears what is going on, and how many states have been judged of it; now and then, also if there are no more."""


@dataclass(frozen=True, slots=True)
class PowerLossOfStore:
    """What became of it.

    `reason` says why nothing could be tried, or why it is not known what the disk may hold; empty if all is well.
    `workload` is what the store did, `operations` and `syncs` how many there were, `models` a report for each model,
    and `failed_syncs` one for each sync that was made to fail (see `power_loss`); there was no time for so many more:
    `untried`. `named` are the models that were asked for, none if all were.
    """

    target: str
    seed: int
    budget: int
    note: str = ""
    reason: str = ""
    workload: tuple[str, ...] = ()
    operations: int = 0
    syncs: int = 0
    models: tuple[Report, ...] = ()
    failed_syncs: tuple[Report, ...] = ()
    untried: int = 0
    named: tuple[str, ...] = ()
    seconds: float = 0.0
    no_failed_syncs: str = ""
    """Why no sync was made to fail, if none was."""
    limit: float = LIMIT
    unknown_after_failed_syncs: bool = False
    """Whether none was though that was meant to be tried."""
    again: tuple[str, ...] = field(default=())
    """What the store did where syncs failed."""

    @property
    def findings(self) -> list[tuple[Report, Report]]:
        """Each report that has a finding under a model that is required, or was named, with the finding."""
        return [(report, found) for report in self._counting() for found in report["findings"]]

    @property
    def unsure(self) -> str:
        """Say what was not tried that must be, so that no fault found means nothing; empty if all was."""
        if self.untried:
            return f"there was no time for {self.untried} more syncs that fail"
        if self.unknown_after_failed_syncs:
            return f"no sync could be made to fail: {self.no_failed_syncs}"
        for report in self._counting():
            if report["missed"] and report["hung"] >= HANGS:
                return f"the store hung in {report['hung']} states, so the others were not tried ({report['model']})"
            if report["missed"]:
                return f"there was no time for what the disk may hold at each crash position ({report['model']})"
            if report["unfollowed"]:
                return (
                    "whether a second power loss is survived, while the store opens, cannot be told "
                    f"({report['model']}): {report['unfollowed']}"
                )
        return ""

    @property
    def ok(self) -> bool:
        """Whether all was tried that must be, and no fault found under the models that are required or were named."""
        return not self.reason and bool(self.models) and not self.findings and not self.unsure

    def _counting(self) -> list[Report]:
        reports = [*self.models, *(report for each in self.failed_syncs for report in each["models"])]
        return [report for report in reports if report["model"] in (*REQUIRED, *self.named)]

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {
            "target": self.target,
            "ok": self.ok,
            "seed": self.seed,
            "budget": self.budget,
            "limit": self.limit,
            "seconds": self.seconds,
            "reason": self.reason,
            "unsure": self.unsure,
            "calls": list(self.workload),
            "again": list(self.again),
            "operations": self.operations,
            "syncs": self.syncs,
            "models": list(self.models),
            "failed_syncs": list(self.failed_syncs),
            "untried": self.untried,
            "no_failed_syncs": self.no_failed_syncs,
            "named": list(self.named),
        }


def lose_power_of(
    target: str,
    *,
    models: Sequence[str] = (),
    budget: int = BUDGET,
    seed: int = 0,
    limit: float = LIMIT,
    on_state: Heard | None = None,
) -> PowerLossOfStore:
    """Lose the power of a store at every moment of a few calls, under these models (all, and failed syncs, if none).

    At most `budget` states are judged of each, in each of which a call may take `limit` seconds. Raises
    `ConfigurationError` if the target cannot be opened.
    """
    began = time.monotonic()
    found = PowerLossOfStore(password_hidden(target), seed, budget, named=tuple(models), limit=limit)
    with Workspace(target) as workspace:
        with open_runner(target, seed=seed, limit=max(limit, DEFAULT_LIMIT), folder=workspace.root) as runner:
            note, has_location = runner.note, runner.takes_location and not is_served(target)
        said: dict[str, Any] = {"note": note}
        if has_location:
            location = workspace.root / "power"
            location.mkdir()
            bounds = {"budget": budget, "seconds": _SECONDS, "seed": seed, "time_limit": limit}
            with _tracing(target) as process:
                said |= _tried(_Asked(process, on_state), str(location), tuple(models), bounds)
        else:
            said["reason"] = (
                "its runs lie with a server, and whether they survive a power loss is for that server; "
                "docs/how-to/share-a-store.md says what it has to be told"
                if is_served(target)
                else "the target takes no location, so nobody knows where the store keeps its files"
            )
    return PowerLossOfStore(**{**_given(found), **said, "seconds": time.monotonic() - began})


def _given(found: PowerLossOfStore) -> dict[str, Any]:
    return {
        "target": found.target,
        "seed": found.seed,
        "budget": found.budget,
        "named": found.named,
        "limit": found.limit,
    }


def _tried(asked: _Asked, location: str, models: Sequence[str], bounds: Report) -> dict[str, Any]:
    why = asked.ask(tracing_here, location)["why_not"]
    if why:
        return {"reason": f"system calls cannot be traced: {why}"}
    workload, again = everything_once("run-1", "run-2"), saved_again("run-1")
    came = asked.lose(lose_power, location, workload, models or tuple(MODELS), bounds)
    if reason := _why_not(came):
        return {"reason": reason}
    said = {"workload": tuple(workload.titles()), "operations": came["operations"], "syncs": came["syncs"]}
    said["models"] = tuple(came["models"])
    breaks = next((report for report in came["models"] if report["model"] in REQUIRED and report["findings"]), None)
    if models:
        said["no_failed_syncs"] = "models were named; without --model each sync fails once as well"
    elif breaks is not None:
        why = f"the store does not survive a power loss without that ({breaks['model']})"
        said["no_failed_syncs"] = f"{why}; mend it, and run powerloss again"
    else:
        less = {**bounds, "budget": min(bounds["budget"], _AFTER_A_FAILED_SYNC), "recoveries": 0}
        failed = asked.lose(lose_power_after_failed_syncs, location, again, REQUIRED[-1:], less)
        if reason := _why_not(failed):  # what was found before that stands
            why = f"where each call is made twice, so that one may fail, {reason}"
            return {**said, "no_failed_syncs": why, "unknown_after_failed_syncs": True}
        said |= {"again": tuple(again.titles()), "untried": failed["untried"]}
        said["failed_syncs"] = (*_without_one(failed), *failed["failed"])
        if not said["failed_syncs"] and not failed["untried"]:
            said["no_failed_syncs"] = (
                "the store makes no sync that could fail (sync() reports no error of a write, so it cannot notice one)"
            )
    return said


def _without_one(failed: Report) -> list[Report]:
    """Return what is found of the same calls though no sync has failed, if anything is."""
    found = [report for report in failed["undisturbed"] if report["findings"]]
    return [{"sync": "no sync", "told": [], "models": found}] if found else []


def _why_not(came: Report) -> str:
    if "broke" in came:
        return str(came["broke"])
    if "unended" in came:
        return str(came["unended"])
    if "unfollowable" in came:
        return f"it cannot be told which states the disk may hold: {came['unfollowable']}"
    if "wrong" in came:
        return f"the store already fails without a power loss: {came['wrong']}"
    return "" if came["operations"] else _NO_FILE


class _Asked:
    """Runs procedures in a process that traces."""

    def __init__(self, process: OtherProcess, on_state: Heard | None) -> None:
        self._process = process
        self._on_state = on_state
        self._last: tuple[str, int] = ("what the store does", 0)

    def lose(
        self, procedure: TracingProcedure, location: str, workload: Workload, models: Sequence[str], bounds: Report
    ) -> Report:
        return self.ask(procedure, location, workload=workload.to_dict(), models=list(models), bounds=bounds)

    def ask(self, procedure: TracingProcedure, location: str, **arguments: Any) -> Report:
        message = {"procedure": name_of(procedure), "location": location, "arguments": arguments}
        try:
            reply = self._process.request(message, _PATIENCE)
            while reply is not None and "alive" in reply:
                if "about" in reply:
                    self._last = (reply["about"], reply["tried"])
                if self._on_state is not None:
                    self._on_state(*self._last)
                reply = self._process.channel.receive(_PATIENCE)
        except TimeoutError:
            return {"wrong": f"a call did not return within {_PATIENCE:g} s"}
        if reply is None:
            ended = describe_exit(self._process.wait(_TIME_TO_DIE))
            return {"broke": f"the check itself broke: the process that traces {ended}"}
        if "came" not in reply:
            return {"broke": str(next(reply[word] for word in ("vacuous", "broken") if word in reply))}
        came: Report = reply["came"]
        return came


@contextmanager
def _tracing(target: str) -> Iterator[OtherProcess]:
    """Yield a process that traces: a fork of one that has imported the target, or a fresh interpreter."""
    folder = working_folder()
    with ExitStack() as stack:
        nursery = Nursery(target, folder)
        stack.callback(nursery.close)
        if nursery.unfit is None:
            yield stack.enter_context(nursery.fork(tracing=True))
            return
        process = stack.enter_context(HelperProcess(f"{__package__}.tracer", folder=folder))
        process.channel.send({"target": target})
        yield process
