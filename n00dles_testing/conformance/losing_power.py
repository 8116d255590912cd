"""Losing the power of a store, without the rest of a check: under any models, as many states as are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..interpreters import working_folder
from ..powerloss.models import MODELS
from .child import TracingProcedure, name_of
from .nursery import Nursery
from .power_loss import lose_power, lose_power_after_failed_syncs
from .power_safe import REQUIRED
from .power_workload import Workload, everything_once, saved_again
from .processes import HelperProcess, OtherProcess, describe_exit
from .runner import DEFAULT_LIMIT, open_runner
from .target import Workspace
from .traced import tracing_here

__all__ = ["BUDGET", "PowerLossOfStore", "lose_power_of"]

BUDGET = 600
_AFTER_A_FAILED_SYNC = 60
_SECONDS = 600.0
"""How long one recording is looked at under one model."""
_PATIENCE = 60.0
_TIME_TO_DIE = 5.0

Report = dict[str, Any]
Heard = Callable[[str, int], None]
"""Hears what is going on, and how many states have been judged of it."""


@dataclass(frozen=True, slots=True)
class PowerLossOfStore:
    """What became of it.

    `reason` says why nothing could be tried, or why it is not known what the disk may hold; empty if all is well.
    `workload` is what the store did, `operations` and `syncs` how many there were, `models` a report for each model,
    and `failed_syncs` one for each sync that was made to fail (see `power_loss`).
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
    seconds: float = 0.0
    again: tuple[str, ...] = field(default=())
    """What the store did where syncs failed."""

    @property
    def findings(self) -> list[tuple[Report, Report]]:
        """Each report that has a finding under a model that is required, with the finding."""
        reports = [*self.models, *(report for each in self.failed_syncs for report in each["models"])]
        return [(report, found) for report in reports if report["model"] in REQUIRED for found in report["findings"]]

    @property
    def ok(self) -> bool:
        """Whether something was tried, and no fault was found under the models that are required."""
        return not self.reason and bool(self.models) and not self.findings

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {
            "target": self.target,
            "ok": self.ok,
            "seed": self.seed,
            "budget": self.budget,
            "seconds": self.seconds,
            "reason": self.reason,
            "calls": list(self.workload),
            "again": list(self.again),
            "operations": self.operations,
            "syncs": self.syncs,
            "models": list(self.models),
            "failed_syncs": list(self.failed_syncs),
        }


def lose_power_of(
    target: str,
    *,
    models: Sequence[str] = (),
    budget: int = BUDGET,
    seed: int = 0,
    on_state: Heard | None = None,
) -> PowerLossOfStore:
    """Lose the power of a store at every moment of a few calls, under these models (all, and failed syncs, if none).

    At most `budget` states are judged of each. Raises `ConfigurationError` if the target cannot be opened.
    """
    began = time.monotonic()
    found = PowerLossOfStore(target, seed, budget)
    with Workspace(target) as workspace:
        with open_runner(target, seed=seed, limit=DEFAULT_LIMIT, folder=workspace.root) as runner:
            note, has_location = runner.note, runner.takes_location
        said: dict[str, Any] = {"note": note}
        if has_location:
            location = workspace.root / "power"
            location.mkdir()
            with _tracing(target) as process:
                said |= _tried(_Asked(process, on_state), str(location), tuple(models), budget, seed)
        else:
            said["reason"] = "the target takes no location, so nobody knows where the store keeps its files"
    return PowerLossOfStore(**{**_given(found), **said, "seconds": time.monotonic() - began})


def _given(found: PowerLossOfStore) -> dict[str, Any]:
    return {"target": found.target, "seed": found.seed, "budget": found.budget}


def _tried(asked: _Asked, location: str, models: Sequence[str], budget: int, seed: int) -> dict[str, Any]:
    why = asked.ask(tracing_here, location)["why_not"]
    if why:
        return {"reason": f"system calls cannot be traced: {why}"}
    bounds = {"budget": budget, "seconds": _SECONDS, "seed": seed}
    workload, again = everything_once("run-1", "run-2"), saved_again("run-1")
    came = asked.lose(lose_power, location, workload, models or tuple(MODELS), bounds)
    if reason := _why_not(came):
        return {"reason": reason}
    said = {"workload": tuple(workload.titles()), "operations": came["operations"], "syncs": came["syncs"]}
    said["models"] = tuple(came["models"])
    if not models and not any(report["findings"] for report in came["models"] if report["model"] in REQUIRED):
        less = {**bounds, "budget": min(budget, _AFTER_A_FAILED_SYNC), "recoveries": 0}
        failed = asked.lose(lose_power_after_failed_syncs, location, again, REQUIRED[-1:], less)
        if reason := _why_not(failed):
            return {"reason": reason}
        said |= {"failed_syncs": tuple(failed["failed"]), "again": tuple(again.titles())}
    return said


def _why_not(came: Report) -> str:
    if "unfollowable" in came:
        return f"which states the disk may hold cannot be told: {came['unfollowable']}"
    if "wrong" in came:
        return f"the store's calls come out wrong without a power loss: {came['wrong']}"
    return "" if came["operations"] else "the store writes no file in its location, so there is nothing to lose"


class _Asked:
    """Runs procedures in a process that traces."""

    def __init__(self, process: OtherProcess, on_state: Heard | None) -> None:
        self._process = process
        self._on_state = on_state

    def lose(
        self, procedure: TracingProcedure, location: str, workload: Workload, models: Sequence[str], bounds: Report
    ) -> Report:
        return self.ask(procedure, location, workload=workload.to_dict(), models=list(models), bounds=bounds)

    def ask(self, procedure: TracingProcedure, location: str, **arguments: Any) -> Report:
        message = {"procedure": name_of(procedure), "location": location, "arguments": arguments}
        try:
            reply = self._process.request(message, _PATIENCE)
            while reply is not None and "alive" in reply:
                if self._on_state is not None and "about" in reply:
                    self._on_state(reply["about"], reply["tried"])
                reply = self._process.channel.receive(_PATIENCE)
        except TimeoutError:
            return {"wrong": f"a call did not return within {_PATIENCE:g} s"}
        if reply is None:
            return {"wrong": f"the process {describe_exit(self._process.wait(_TIME_TO_DIE))}"}
        if "came" not in reply:
            return {"wrong": str(next(reply[word] for word in ("broken", "vacuous", "raised") if word in reply))}
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
