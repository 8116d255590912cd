"""A store's power fails: what it did is recorded, and it is opened on all that the disk may hold then.

`lose_power` and `lose_power_after_failed_syncs` are procedures, for a process that traces (see `tracer`). Recordings
and states stay in that process; what travels are verdicts, as plain data.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EIO
from typing import Any, Protocol

from ..powerloss.exploring import explore_power_loss
from ..powerloss.left_running import StillRunningError
from ..powerloss.models import MODELS
from ..powerloss.operations import Marked, Sync, SyncAll
from ..powerloss.placing import clear, place
from ..powerloss.recording import Recording, Unfollowable, record
from ..powerloss.tree import Tree
from ..tracing import Fail, Injection, Marks, TracedCall
from ..tracing.unsynced import skip_syncs
from .child import still_alive
from .expect import BrokenClause
from .power_judge import PowerJudge, Recoveries
from .power_opened import OpenedStore
from .power_told import told_report
from .power_workload import Workload
from .processes import describe_exit
from .records import Record, difference
from .traced import Steps, kind_of, token_of
from .tracer import GetTarget

__all__ = ["FAILED_SYNC", "Bounds", "lose_power", "lose_power_after_failed_syncs"]

FAILED_SYNC = "failed sync"
"""What progress is about while one sync after the other is made to fail."""
EXCUSED = ("lock.mdb",)
"""LMDB's table of readers, which whoever opens the environment first makes anew. SQLite's `-shm` is always excused."""

_CAUSES = 4
"""Of one kind of fault so many are told: a rename that was lost in a save, a removal in a delete."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is tried: of each recording under each model at most `budget` states, and all in all for `seconds`.

    The ends of each crash position are tried whatever the budget (see `Candidate`). Of the states that the store
    changes when it opens them, the power fails in the midst of that for so many that differ: `recoveries`. To open the
    store on a state, to load from it, or to save may take `time_limit` seconds each.
    """

    budget: int = 600
    seconds: float = 80.0
    recoveries: int = 8
    seed: int = 0
    time_limit: float = 10.0


def lose_power(
    target: GetTarget, location: str, *, workload: dict[str, Any], models: Sequence[str], bounds: dict[str, Any]
) -> dict[str, Any]:
    """Record a workload, lose the power at every moment of it under each model, and judge what is then found.

    Returns `unfollowable`, a sentence if the calls do not tell what happened, else `wrong`, a sentence if the workload
    comes out wrong undisturbed, or `unended`, one if a process that was left running cannot be ended; else
    `operations` and `syncs`, how many there were of each, and `models`, one report for each: see `told_report`.
    """
    played = _Played(target, location, Workload.from_dict(workload), Bounds(**bounds))
    try:
        recording = played.recorded()
    except Unfollowable as reason:
        return {"unfollowable": str(reason)}
    if wrong := played.wrong(recording):
        return {"wrong": wrong}
    try:
        with played.judging() as explored:
            reports = [explored(recording, name, parts=len(models) - at) for at, name in enumerate(models)]
    except StillRunningError as reason:
        return {"unended": str(reason)}
    return {**_counted(recording), "models": reports}


def lose_power_after_failed_syncs(
    target: GetTarget, location: str, *, workload: dict[str, Any], models: Sequence[str], bounds: dict[str, Any]
) -> dict[str, Any]:
    """Have the first sync of a file fail with EIO, then the second, and so on; each time lose the power after that.

    Each time begins with what is in the location now. Returns as `lose_power` does, with `failed`, a list with an
    entry for each sync that failed, instead of `models`: `sync`, which it was, in words, `told`, what the store said of
    each step, and `models`, the reports. `undisturbed` are the reports without such a sync. `untried` says for how many
    syncs there was no time.
    """
    played = _Played(target, location, Workload.from_dict(workload), Bounds(**bounds))
    failed: list[dict[str, Any]] = []
    try:
        undisturbed, count = _with_a_failed_sync(played, 0)
        if wrong := played.wrong(undisturbed):
            return {"wrong": wrong}
        with played.judging(about=FAILED_SYNC) as explored:
            reports = [explored(undisturbed, name, parts=count.seen + 1) for name in models]
            for number in itertools.count(1):
                left = max(0, count.seen - number + 1)
                if not played.seconds_left:
                    break
                recording, failing = _with_a_failed_sync(played, number)
                if not failing.failed:
                    left = 0
                    break
                since = _after_the_failed_sync(recording)
                tried = [explored(recording, name, parts=max(1, left), since=since) for name in models]
                failed.append({"sync": failing.failed, "told": played.told(recording), "models": tried})
    except StillRunningError as reason:
        return {"unended": str(reason)}
    except Unfollowable as reason:
        if not any(report["findings"] for each in failed for report in each["models"]):
            return {"unfollowable": str(reason)}
    return {**_counted(undisturbed), "undisturbed": reports, "failed": failed, "untried": left}


def _with_a_failed_sync(played: _Played, number: int) -> tuple[Recording, _FailingSync]:
    failing = _FailingSync(number, played)
    return played.recorded(failing), failing


def _after_the_failed_sync(recording: Recording) -> int:
    """Return the place of the sync that failed: what is before it is as in the undisturbed recording."""
    syncs = (each for each in recording.operations if isinstance(each, Sync | SyncAll))
    return next((sync.entered for sync in syncs if sync.failed), 0)


class _FailingSync:
    """Fails the n-th sync of a file, and counts those it has `seen`.

    File systems that cannot write a folder stop; then nothing is acknowledged. `sync` cannot fail, and
    `sync_file_range` promises nothing. A write that syncs (O_DSYNC) has written all the same.
    """

    def __init__(self, number: int, played: _Played) -> None:
        self.failed = ""
        self.seen = 0
        self._number = number
        self._played = played

    def __call__(self, call: TracedCall, _: int) -> Injection | None:
        still_alive()
        is_sync = kind_of(call) == "sync" and call.name not in ("sync", "sync_file_range")
        is_synced_write = kind_of(call) == "write" and call.flags & os.O_DSYNC
        is_of_names = call.name != "syncfs" and call.file is not None and call.file.kind == "folder"
        if not (is_sync or is_synced_write) or is_of_names:
            return None
        self.seen += 1
        if self.seen != self._number:
            return None
        path = "" if call.file is None else os.path.relpath(call.file.path, self._played.root)
        self.failed = f"{call.name} of {path or 'everything'}{self._played.during()}"
        return Fail(EIO, after_writing=True)


class Explored(Protocol):
    """Explores a recording under the model of a name, within its part of the time that is left; see `told_report`."""

    def __call__(self, recording: Recording, name: str, *, parts: int, since: int = 0) -> dict[str, Any]: ...


class _Played:
    """A workload of a store. Its states are made in `location`, too: what it keeps there may name the place."""

    def __init__(self, target: GetTarget, location: str, workload: Workload, bounds: Bounds) -> None:
        self.workload = workload
        self.root = os.path.realpath(location)
        self._target = target
        self._location = location
        self._bounds = bounds
        self._ends = time.monotonic() + bounds.seconds
        self._before = Tree.read(location)
        self._steps: Steps | None = None
        self._outcomes: list[dict[str, Any]] = []
        self._news: dict[str, Any] = {}

    @property
    def seconds_left(self) -> float:
        """How much of the time is left."""
        return max(0.0, self._ends - time.monotonic())

    def recorded(self, on_call: Callable[[TracedCall, int], Injection | None] | None = None) -> Recording:
        """Return what the workload did. Raises `Unfollowable`."""
        marks = Marks()
        place(self._before, self._location)
        self._steps = Steps(self._target, self._location, self.workload.steps, marks)
        recording = record(
            self._steps.run, self._location, marks=marks, excused=EXCUSED, on_call=on_call or _alive_at_each
        )
        self._outcomes = self._steps.outcomes()
        return recording

    def wrong(self, recording: Recording) -> str | None:
        """Say what came out wrong in the recording that was made last, without a disturbance, if anything did."""
        assert self._steps is not None
        try:
            self._steps.expect_all(self._outcomes, recording.status)
        except BrokenClause as broken:
            return broken.message
        expected = self.workload.expected()
        for number, (step, outcome) in enumerate(zip(self.workload.steps, self._outcomes, strict=True)):
            if "raised" in outcome:
                return f"{step['do']} raised {outcome['raised']}"
            if "record" in outcome:
                wanted = expected[step["run"]].after[token_of(number)]
                if other := difference(wanted, Record.from_dict(outcome["record"])):
                    return f"{step['do']} gave another record: {other}"
        return None

    def told(self, recording: Recording) -> list[str]:
        """Say what became of each step of the recording that was made last. The store may have ended its process."""
        told = [str(outcome.get("raised", "acknowledged")) for outcome in self._outcomes]
        missing = len(self.workload.steps) - len(told)
        return told + [f"the process {describe_exit(recording.status)}", *["not called"] * missing][:missing]

    def during(self) -> str:
        """Say which step is being done now."""
        at = None if self._steps is None else self._steps.at
        return "" if at is None else f", during {self.workload.titles()[at]}"

    @contextmanager
    def judging(self, about: str | None = None) -> Iterator[Explored]:
        """Yield what explores recordings, and judges each state in another process.

        Whoever hears how it goes on is told that it is `about` this, or about the model.
        """
        bounds = self._bounds
        judge = PowerJudge(
            self.workload,
            self._opened,
            self._recovery,
            folder=self._location,
            seed=bounds.seed,
            time_limit=bounds.time_limit,
            warm_up=self._target,
            on_wait=lambda: still_alive(**self._news),
        )

        def explored(recording: Recording, name: str, *, parts: int, since: int = 0) -> dict[str, Any]:
            clear(self._location)
            self._news = {"about": about or name, "tried": 0}
            seconds = self.seconds_left / parts
            end = max((each.entered for each in recording.operations), default=0)
            recoveries = Recoveries(bounds.recoveries, end)
            report = explore_power_loss(
                recording,
                MODELS[name],
                judge.under(MODELS[name], recoveries, until=time.monotonic() + seconds),
                budget=bounds.budget,
                seconds=seconds,
                seed=bounds.seed,
                since=since,
                folder=self._location,
                calls={token_of(number): step["do"] for number, step in enumerate(self.workload.steps)},
                causes=_CAUSES,
                on_state=lambda tried: self._tell(about=about or name, tried=tried),
            )
            return told_report(report, recoveries)

        try:
            with judge:
                yield explored
        finally:
            place(self._before, self._location)

    def _tell(self, **news: Any) -> None:
        """Tell the news, now or with the next sign of life: too many are not heard."""
        self._news = news
        still_alive(**news)

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

        recording = record(recover, folder, excused=EXCUSED, on_call=_alive_at_each)
        if recording.status:
            raise Unfollowable(f"the process {describe_exit(recording.status)}, which it does only when it is traced")
        return recording


def _alive_at_each(call: TracedCall, number: int) -> None:
    still_alive()


def _counted(recording: Recording) -> dict[str, int]:
    syncs = [each for each in recording.operations if isinstance(each, Sync | SyncAll)]
    others = [each for each in recording.operations if not isinstance(each, Sync | SyncAll | Marked)]
    return {"operations": len(others), "syncs": len(syncs)}
