"""Measuring all subjects side by side: each round takes all of them in turn, and the raw limit right before each."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from n00dles_testing.tracing import TracedCall, trace, why_not

from ...executors.environments import InstallError
from .process import DiedError, Process, TooSlowError
from .results import Result, Resumed, Series
from .subjects import RAW, Subject

__all__ = ["Trial"]

_EDGE = 100
"""The raw limit is measured over so many nodes at least: ten commits are soon disturbed."""
_COUNTED = (10, 110)
"""Syncs are counted in runs of these lengths: what differs is due to the nodes alone."""
_SYNCS = {"fsync", "fdatasync", "msync", "sync", "syncfs"}


class Trial(AbstractContextManager["Trial"]):
    """The subjects with their processes, and what was found. All runs are in folders of their own below `work`.

    A run that takes longer than `limit` seconds is ended, and neither repeated nor tried with more nodes.
    """

    def __init__(self, subjects: list[Subject], work: Path, limit: float) -> None:
        self.results = {each.name: Result(each.name, each.title, each.about, each.durability) for each in subjects}
        self._subjects = {each.name: each for each in subjects}
        self._work = work
        self._limit = limit
        self._processes: dict[str, Process] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for name in list(self._processes):
            self._end(name)

    def installed(self) -> Iterator[Result]:
        """Install each subject that is not there yet, and yield what is known of it then."""
        for name, subject in self._subjects.items():
            try:
                self.results[name].version = subject.installed()
            except InstallError as error:
                self.results[name].error = f"it cannot be installed: {error}"
            yield self.results[name]

    def count_syncs(self) -> None:
        """Count how often each subject waits for the disk, by tracing its system calls, where that is possible."""
        if why_not() is not None:
            return
        for subject in self._usable():
            first, second = (self._syncs(subject, nodes) for nodes in _COUNTED)
            if first is not None and second is not None:
                self.results[subject.name].syncs = (second - first) / (_COUNTED[1] - _COUNTED[0])

    def _syncs(self, subject: Subject, nodes: int) -> int | None:
        with self._folder() as folder:
            traced = trace(partial(self._one_life, subject, folder, nodes), str(folder), time_limit=4 * self._limit)
        if traced.status:
            return None
        return sum(isinstance(event, TracedCall) and event.name in _SYNCS for event in traced.events)

    def _one_life(self, subject: Subject, folder: Path, nodes: int) -> None:
        try:
            with Process(subject, self._work) as process:
                process.lived(folder, nodes, "run", self._limit)
        except (TooSlowError, DiedError):
            os._exit(1)  # it is in the process that is traced; what went wrong is told when it is measured

    def run(self, nodes: int, rounds: int) -> None:
        """Measure runs of so many nodes."""
        series = {subject.name: Series() for subject in self._usable()}
        for name, each in series.items():
            self.results[name].runs[nodes] = each
            if self._was_too_slow(name, nodes):
                each.why = "not tried: fewer nodes took too long"
        for _ in range(rounds):
            for name, each in series.items():
                if name != RAW and not each.why:
                    self._measure(name, nodes, each)
        raw = series[RAW]
        raw.seconds = [seconds for each in series.values() for seconds in each.raw]
        raw.raw, raw.kept = raw.seconds, nodes

    def _measure(self, name: str, nodes: int, series: Series) -> None:
        length = max(nodes, _EDGE)
        raw = self._lived(RAW, length, "run")["seconds"] / length
        try:
            lived = self._lived(name, nodes, "run")
        except (TooSlowError, DiedError) as error:
            series.why = str(error)
            return
        series.raw.append(raw)
        series.seconds.append(lived["seconds"] / nodes)
        series.kept = lived["kept"] if series.kept is None else min(series.kept, lived["kept"])

    def _was_too_slow(self, name: str, nodes: int) -> bool:
        return any(series.why and length < nodes for length, series in self.results[name].runs.items())

    def resume(self, completed: int, rounds: int) -> None:
        """Kill a run of each subject in the node after so many, and measure how another process ends it."""
        with self._folder() as killed:
            again = dict[str, float]()
            for subject in self._usable():
                (killed / subject.name).mkdir()
                self.results[subject.name].resumed.why = self._killed(subject, killed / subject.name, completed + 1)
                again[subject.name] = time.monotonic() + subject.grace
            for _ in range(rounds):
                for subject in self._usable():
                    resumed = self.results[subject.name].resumed
                    if not resumed.why:
                        time.sleep(max(again[subject.name] - time.monotonic(), 0))
                        self._measure_resume(subject, killed / subject.name, completed + 1, resumed)

    def _killed(self, subject: Subject, folder: Path, nodes: int) -> str:
        """Return why there is nothing to resume; nothing if there is."""
        try:
            with Process(subject, self._work) as process:
                process.lived(folder, nodes, "die", self._limit)
        except DiedError as error:
            return "" if error.signal else str(error)
        except TooSlowError as error:
            return str(error)
        return "the last node was not called"

    def _measure_resume(self, subject: Subject, killed: Path, nodes: int, resumed: Resumed) -> None:
        with self._folder() as folder:
            shutil.copytree(killed, folder, dirs_exist_ok=True)
            os.sync()
            try:
                with Process(subject, self._work) as process:
                    lived = process.lived(folder, nodes, "resume", self._limit)
            except (TooSlowError, DiedError) as error:
                resumed.why = str(error)
                return
        resumed.seconds.append(lived["seconds"])
        resumed.called = max(lived["called"], resumed.called or 0)

    def _usable(self) -> list[Subject]:
        return [subject for name, subject in self._subjects.items() if not self.results[name].error]

    def _lived(self, name: str, nodes: int, act: str) -> Mapping[str, Any]:
        """Have a subject live a run in a fresh folder, after all that others have written is on the disk."""
        if name not in self._processes:
            self._processes[name] = Process(self._subjects[name], self._work)
        with self._folder() as folder:
            os.sync()
            try:
                return self._processes[name].lived(folder, nodes, act, self._limit)
            except (TooSlowError, DiedError):
                self._end(name)
                raise

    def _end(self, name: str) -> None:
        self._processes.pop(name).close()

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self._work) as folder:
            yield Path(folder)
