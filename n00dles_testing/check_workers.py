"""A check of a store by several processes: clauses are independent, so each process takes the next one that is left.

Each has a runner of its own, with its own folder and its own worker for the store. The results are put into the order
of the contract, so the report is that of one process. Clauses that take longest begin first.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

from n00dles.errors import ConfigurationError

from .conformance import Clause, Progress, ReaderReport, StoreReport, select
from .conformance.progress import nobody
from .conformance.runner import open_runner
from .verdicts import ClauseResult

__all__ = ["check_store_by_workers"]

_SECONDS_TO_END = 10.0
"""How long a process may take to end its store and remove its folder."""

_MOST_LOSSES = 3
"""So often a clause may lose its process before it is taken for the reason."""


def check_store_by_workers(
    target: str,
    workers: int,
    *,
    clauses: Iterable[str] = (),
    progress: Progress | None = None,
    work: Mapping[str, float] | None = None,
    **options: Any,
) -> StoreReport:
    """Check a store in `workers` processes, and return what `check_store` would.

    `work` says how long a clause takes, as a multiple of the others; the rest is as in `check_store`. What a process
    had in hand that died is done again by another one.
    """
    asked = tuple(clauses)
    selected = select(asked)
    watcher = progress or nobody()
    started = time.monotonic()
    with open_runner(target, progress=watcher, **options) as runner:
        watcher.started([(clause.id, clause.title) for clause in selected], runner.note)
        longest_first = sorted(selected, key=lambda clause: -(work or {}).get(clause.id, 1.0))
        crew = _Crew(target, options, longest_first, watcher)
        with crew:
            crew.work(min(workers, len(selected)))
        results = [crew.results[clause.id] for clause in selected]
        capabilities = () if asked else runner.run_probes()
        report = runner.report(results, capabilities, time.monotonic() - started)
    notes = [note for note in crew.notes if note not in report.notes]
    return replace(report, notes=(*report.notes, *dict.fromkeys(notes)), reader=_read(report.reader, crew.reads))


def _read(own: ReaderReport | None, others: Collection[ReaderReport]) -> ReaderReport | None:
    """Add up what the processes have compared; what this one says itself counts only if they have compared nothing."""
    whole: ReaderReport | None = None
    for read in others:
        whole = read if whole is None else whole.with_more(read.compared, read.fault)
    return own if whole is None or not (whole.compared or whole.fault) else whole


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    connection: Connection
    clause: Clause | None = None


@dataclass(slots=True)
class _Crew:
    """The processes. `with` ends all of them, however it is left."""

    target: str
    options: Mapping[str, Any]
    waiting: list[Clause]
    progress: Progress
    results: dict[str, ClauseResult] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    reads: list[ReaderReport] = field(default_factory=list)
    _workers: list[_Worker] = field(default_factory=list)
    _losses: dict[str, int] = field(default_factory=dict)

    def __enter__(self) -> _Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.connection.close()
            with suppress(ProcessLookupError):
                worker.process.terminate()
        ends = time.monotonic() + _SECONDS_TO_END
        for worker in self._workers:
            worker.process.join(max(0.0, ends - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def work(self, count: int) -> None:
        """Have all clauses checked by so many processes. Raises `ConfigurationError` if the store does not open."""
        for _ in range(count):
            self._start()
        while self._workers:
            for connection in wait([worker.connection for worker in self._workers]):
                self._listen(next(worker for worker in self._workers if worker.connection is connection))

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # this process has threads, as that of the progress bar
        ours, theirs = context.Pipe()
        process = context.Process(target=_check_clauses, args=(theirs, self.target, dict(self.options)))
        process.start()
        theirs.close()
        self._workers.append(_Worker(process, ours))

    def _listen(self, worker: _Worker) -> None:
        try:
            kind, *said = worker.connection.recv()
        except (EOFError, OSError):
            self._lose(worker)
            return
        match kind:
            case "ready":
                self._give(worker)
            case "scenario":
                self.progress.scenario(*said)
            case "result":
                self._take(worker, *said)
            case "ended":
                self.notes += said[0]
                self.reads += said[1]
                self._part_from(worker)
            case "refused":
                raise ConfigurationError(said[0])

    def _give(self, worker: _Worker) -> None:
        worker.clause = self.waiting.pop(0) if self.waiting else None
        if worker.clause is not None:
            self.progress.clause_started(worker.clause.id)
        with suppress(BrokenPipeError):  # whoever listens learns that it is gone
            worker.connection.send(None if worker.clause is None else worker.clause.id)

    def _take(self, worker: _Worker, result: ClauseResult) -> None:
        worker.clause = None
        self.results[result.clause] = result
        self.progress.clause_ended(result)
        self._give(worker)

    def _lose(self, worker: _Worker) -> None:
        """Have what a lost process had in hand done again by another one."""
        self._part_from(worker)
        clause = worker.clause
        if clause is None and not self.waiting:
            return  # it had done its part
        code = worker.process.exitcode
        name = clause.id if clause is not None else "the store"
        self._losses[name] = self._losses.get(name, 0) + 1
        if self._losses[name] >= _MOST_LOSSES:
            raise ConfigurationError(
                f"the process that checks {name} of {self.target} has ended {_MOST_LOSSES} times, with exit code {code}"
                " at last. Check it without --workers, to see what ends it."
            )
        if clause is not None:
            self.waiting.insert(0, clause)
            self.notes.append(f"the process that checked {name} was lost (exit code {code}); it was checked again")
        self._start()

    def _part_from(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.connection.close()
        worker.process.join(_SECONDS_TO_END)


class _Relay:
    """Passes on what a check says while it goes on."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None

    def scenario(self, number: int, title: str) -> None:
        self._connection.send(("scenario", number, title))


def _check_clauses(connection: Connection, target: str, options: dict[str, Any]) -> None:
    """Be one of the processes: check the clauses that are asked for, one by one."""
    signal.signal(signal.SIGTERM, _end)
    by_id = {clause.id: clause for clause in select()}
    with ExitStack() as stack, suppress(KeyboardInterrupt, EOFError, BrokenPipeError):
        try:
            runner = stack.enter_context(open_runner(target, progress=_Relay(connection), **options))
        except ConfigurationError as error:
            connection.send(("refused", str(error)))
            return
        connection.send(("ready",))
        while (id_ := connection.recv()) is not None:
            connection.send(("result", runner.check(by_id[id_])))
        connection.send(("ended", list(runner.notes()), [runner.read] if runner.read is not None else []))


def _end(number: int, frame: FrameType | None) -> None:
    """Leave all blocks, so that the store's processes end and the folder goes; a second signal changes nothing."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(os.EX_OK)
