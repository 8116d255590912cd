"""A store's power fails: what it did is recorded, and it is opened on all that the disk may hold then.

`lose_power` and `lose_power_after_failed_syncs` are procedures, for a process that traces (see `tracer`). Recordings
and states stay in that process; what travels are verdicts, as plain data.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EIO
from itertools import islice
from typing import Any

from ..powerloss.exploring import PowerLossFinding, PowerLossReport, explore_power_loss
from ..powerloss.folding import folded
from ..powerloss.models import MODELS
from ..powerloss.operations import Marked, Sync, SyncAll
from ..powerloss.recording import Recording, Unfollowable, record
from ..tracing import Fail, Injection, Marks, TracedCall
from ..tracing.unsynced import skip_syncs
from .child import still_alive
from .power_judge import PowerJudge
from .power_opened import OpenedStore
from .power_workload import Workload
from .records import Record, difference
from .traced import Steps, kind_of, token_of
from .tracer import GetTarget

__all__ = ["Bounds", "lose_power", "lose_power_after_failed_syncs"]

EXCUSED = ("lock.mdb",)
"""LMDB's table of readers, which whoever opens the environment first makes anew. SQLite's `-shm` is always excused."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is tried of each recording under each model: at most `budget` states, for at most `seconds`.

    Of the states that the store changes when it opens them, the power fails in the midst of that for so many that
    differ: `recoveries`.
    """

    budget: int = 600
    seconds: float = 20.0
    recoveries: int = 4
    seed: int = 0


def lose_power(
    target: GetTarget, location: str, *, workload: dict[str, Any], models: Sequence[str], bounds: dict[str, Any]
) -> dict[str, Any]:
    """Record a workload, lose the power at every moment of it under each model, and judge what is then found.

    Returns `unfollowable`, a sentence if the calls do not tell what happened, else `wrong`, a sentence if the workload
    comes out wrong undisturbed; else `operations` and `syncs`, how many there were of each, and `models`, one report
    for each: `model`, `tried`, `at_least` (None, or how many states there are at least, if not all were tried),
    `seconds`, and `findings`, see `_told_finding`.
    """
    played = _Played(target, location, Workload.from_dict(workload))
    try:
        recording, outcomes = played.recorded(location)
    except Unfollowable as reason:
        return {"unfollowable": str(reason)}
    if wrong := _wrong(played.workload, recording, outcomes):
        return {"wrong": wrong}
    with played.judging(Bounds(**bounds)) as explored:
        reports = [_told(explored(recording, name)) for name in models]
    return {**_counted(recording), "models": reports}


def lose_power_after_failed_syncs(
    target: GetTarget, location: str, *, workload: dict[str, Any], models: Sequence[str], bounds: dict[str, Any]
) -> dict[str, Any]:
    """Have the first sync of a file fail with EIO, then the second, and so on; each time lose the power.

    The location is a folder for folders, one for each time. Returns as `lose_power` does, with `failed`, a list with an
    entry for each sync that failed, instead of `models`: `sync`, which it was, in words, `told`, what the store said of
    each step, and `models`, the reports. `undisturbed` are the reports without such a sync.
    """
    played = _Played(target, location, Workload.from_dict(workload))
    tried: list[dict[str, Any]] = []
    with played.judging(Bounds(**bounds)) as explored:
        while True:
            folder = os.path.join(location, f"sync-{len(tried)}")
            os.mkdir(folder)
            failing = _FailingSync(len(tried), os.path.realpath(folder), played)
            try:
                recording, outcomes = played.recorded(folder, failing)
            except Unfollowable as reason:
                return {"unfollowable": str(reason)}
            is_first = not tried
            if is_first and (wrong := _wrong(played.workload, recording, outcomes)):
                return {"wrong": wrong}
            if not failing.failed and not is_first:
                return {**_counted(recording), "undisturbed": tried[0]["models"], "failed": tried[1:]}
            told = [outcome.get("raised", "acknowledged") for outcome in outcomes]
            reports = [_told(explored(recording, name)) for name in models]
            tried.append({"sync": failing.failed, "told": told, "models": reports})


class _FailingSync:
    """Fails the n-th sync of a file. File systems that cannot write a folder stop; then nothing is acknowledged."""

    def __init__(self, number: int, root: str, played: _Played) -> None:
        self.failed = ""
        self._number = number
        self._root = root
        self._played = played
        self._seen = 0

    def __call__(self, call: TracedCall, _: int) -> Injection | None:
        still_alive()
        is_synced_write = kind_of(call) == "write" and call.flags & os.O_DSYNC
        if (kind_of(call) != "sync" and not is_synced_write) or (call.file and call.file.kind == "folder"):
            return None
        self._seen += 1
        if self._seen != self._number:
            return None
        path = "" if call.file is None else os.path.relpath(call.file.path, self._root)
        self.failed = f"{call.name} of {path or 'everything'}{self._played.during()}"
        return Fail(EIO)


Explored = Callable[[Recording, str], PowerLossReport]


class _Played:
    """A workload of a store. States are made beside `location`."""

    def __init__(self, target: GetTarget, location: str, workload: Workload) -> None:
        self.workload = workload
        self._target = target
        self._location = location
        self._steps: Steps | None = None

    def recorded(
        self, location: str, on_call: Callable[[TracedCall, int], Injection | None] | None = None
    ) -> tuple[Recording, list[dict[str, Any]]]:
        """Return what the workload did there, and what came of each step. Raises `Unfollowable`, and `BrokenClause`."""
        marks = Marks()
        self._steps = Steps(self._target, location, self.workload.steps, marks)
        recording = record(self._steps.run, location, marks=marks, excused=EXCUSED, on_call=on_call or _alive_at_each)
        outcomes = self._steps.outcomes()
        self._steps.expect_all(outcomes, recording.status)
        return recording, outcomes

    def during(self) -> str:
        """Say which step is being done now."""
        at = None if self._steps is None else self._steps.at
        return "" if at is None else f", during {self.workload.titles()[at]}"

    @contextmanager
    def judging(self, bounds: Bounds) -> Iterator[Explored]:
        """Yield what explores a recording under the model of a name, and judges each state in another process."""
        folder = tempfile.mkdtemp(prefix="states-", dir=os.path.dirname(self._location))
        judge = PowerJudge(
            self.workload, self._opened, self._recovery, folder=folder, seed=bounds.seed, recoveries=bounds.recoveries
        )

        def explored(recording: Recording, name: str) -> PowerLossReport:
            return explore_power_loss(
                recording,
                MODELS[name],
                judge.under(MODELS[name]),
                budget=bounds.budget,
                seconds=bounds.seconds,
                seed=bounds.seed,
                folder=os.path.join(folder, "state"),
                on_state=lambda tried: still_alive(about=name, tried=tried),
            )

        try:
            with judge:
                yield explored
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _opened(self, folder: str) -> OpenedStore:
        """Open it to look at a state, in a process for that alone: what it writes then is thrown away."""
        skip_syncs()
        return OpenedStore(self._target, folder, self.workload.inputs)

    def _recovery(self, folder: str) -> Recording:
        """Record how the store opens, loads and closes what is in a folder."""

        def recover() -> None:
            store = OpenedStore(self._target, folder, self.workload.inputs)
            store.load()
            store.close()

        return record(recover, folder, excused=EXCUSED)


def _alive_at_each(call: TracedCall, number: int) -> None:
    still_alive()


def _wrong(workload: Workload, recording: Recording, outcomes: Sequence[dict[str, Any]]) -> str | None:
    """Say what comes out wrong without a disturbance, if anything."""
    expected = workload.expected()
    for number, (step, outcome) in enumerate(zip(workload.steps, outcomes, strict=True)):
        if "raised" in outcome:
            return f"{step['do']} raised {outcome['raised']}"
        if "record" in outcome:
            wanted = expected[step["run"]].after[token_of(number)]
            if other := difference(wanted, Record.from_dict(outcome["record"])):
                return f"{step['do']} gave another record: {other}"
    return None


def _counted(recording: Recording) -> dict[str, int]:
    syncs = [each for each in recording.operations if isinstance(each, Sync | SyncAll)]
    others = [each for each in recording.operations if not isinstance(each, Sync | SyncAll | Marked)]
    return {"operations": len(others), "syncs": len(syncs)}


def _told(report: PowerLossReport) -> dict[str, Any]:
    return {
        "model": report.model.name,
        "tried": report.tried,
        "at_least": report.at_least,
        "seconds": report.seconds,
        "findings": [_told_finding(finding) for finding in report.findings],
    }


def _told_finding(finding: PowerLossFinding) -> dict[str, Any]:
    """Return it in plain data of bounded size: enough for a story, and for a picture (see `folded`, and `Moment`)."""
    left = finding.state.tree.listing()
    return {
        "kind": finding.fault.kind.value,
        "message": finding.fault.message,
        "details": list(finding.fault.details),
        "words": finding.words,
        "when": finding.when,
        "lost": _bounded([lost.words for lost in finding.lost]),
        "on_disk": _bounded([_told_file(path, content) for path, content in left.items()]),
        "left": [[path, _about(content)] for path, content in islice(left.items(), _SHOWN)],
        "count": finding.count,
        "acknowledged": list(finding.state.acknowledged),
        "invoked": list(finding.state.invoked),
        "timeline": [moment.to_dict() for moment in folded(finding.timeline)],
    }


_SHOWN = 50
"""So many files, and lost operations, are told of one state."""


def _bounded(words: list[str]) -> list[str]:
    return words if len(words) <= _SHOWN else [*words[:_SHOWN], f"and {len(words) - _SHOWN} more"]


def _about(content: bytes | str | None) -> str:
    """Say what a file is, in a few words: the end of a lane in the picture."""
    if isinstance(content, bytes):
        return f"{len(content)} bytes" + (", all zeros" if content and not content.strip(b"\0") else "")
    return "a folder" if content is None else f"a link to {content}"


def _told_file(path: str, content: bytes | str | None) -> str:
    if isinstance(content, bytes):
        return f"{path} ({len(content)} bytes)"
    return f"{path}/" if content is None else f"{path} → {content}"
