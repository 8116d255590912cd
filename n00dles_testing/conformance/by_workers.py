"""Clauses that are checked at the same time: by threads of this process, or by the workers of any executor.

Clauses are independent, and each worker opens the store for itself, in processes of its own. What they bring back is
added to the runner that makes the report, in the order of the contract: it is that of one process. Those that take
longest begin first.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from n00dles.errors import ConfigurationError

from ..on_executors import Home, handed_out, size_of, why_lost
from ..verdicts import ClauseResult
from .claims import Claims
from .progress import Progress
from .registry import Clause, select
from .runner import Aside, Runner, open_runner
from .served import password_hidden

__all__ = ["WORK", "Order", "check_by_workers"]

WORK = {"S02": 2, "S03": 4, "S10": 2.5, "S11": 4, "S17": 7, "C03": 9, "C04": 9, "C05": 4.5, "C06": 8.5}
"""How long a clause takes on a store with files, as a multiple of the others."""

_ONE_PLACE = (
    "checked one clause after the other, without other workers: the store may be in one place, wherever it is opened, "
    "where clauses at the same time would meet each other's runs. Give a factory that takes a location, or a URL with "
    "{location}, to have them share the work"
)

_ONE_PROCESS = (
    "checked one clause after the other, without other workers: while one process has the store open, another cannot "
    "open it, also elsewhere ({})"
)


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be checked, and all that another process needs for it, on whatever machine. See `check_store`."""

    target: str
    home: Home
    seed: int
    limit: float
    claims: Claims
    reader: str | None
    server: str | None

    def open(
        self, *, progress: Progress | None = None, home: str | None = None, start: bool = True
    ) -> AbstractContextManager[Runner]:
        """Open the store as `open_runner` does."""
        return open_runner(
            self.target,
            seed=self.seed,
            limit=self.limit,
            claims=self.claims,
            reader=self.reader,
            server=self.server,
            progress=progress,
            home=home,
            start=start,
        )


def check_by_workers(
    runner: Runner, order: Order, clauses: Sequence[Clause], workers: int | Executor, progress: Progress
) -> list[ClauseResult]:
    """Check these clauses by so many threads, or by the workers of an executor, and add all else to `runner`.

    A store that is in one place for all is checked by `runner` alone, since clauses would meet each other's runs there,
    and so is one that does not open for a second process of this machine. Raises `ConfigurationError` if it does not
    open for the worker of an executor, which may be elsewhere.
    """
    if not runner.takes_location or runner.shares_data:
        runner.add(Aside(notes=(_ONE_PLACE,)))
        return runner.run(clauses)
    progress.started([(clause.id, clause.title) for clause in clauses], runner.note)
    longest_first = sorted(clauses, key=lambda clause: -WORK.get(clause.id, 1.0))
    if isinstance(workers, int):
        threads = _Threads(order, longest_first, progress)
        try:
            results = threads.check(runner, min(workers, len(clauses)))
        except ConfigurationError as error:  # `runner` has it open
            runner.add(Aside(notes=(_ONE_PROCESS.format(error),)))
            results = threads.check_the_rest(runner)
    else:
        results = _by_executor(runner, order, longest_first, workers, progress)
    return sorted(results, key=lambda result: [clause.id for clause in clauses].index(result.clause))


@dataclass(slots=True)
class _Threads:
    """Threads of this process, each with a runner of its own, that take the next clause until none is left."""

    order: Order
    clauses: Sequence[Clause]
    progress: Progress
    _results: list[ClauseResult] = field(default_factory=list)
    _runners: list[Runner] = field(default_factory=list)
    _is_over: bool = False
    _telling: threading.Lock = field(default_factory=threading.Lock)

    def check(self, runner: Runner, count: int) -> list[ClauseResult]:
        left = iter(self.clauses)
        with ThreadPoolExecutor(count) as threads:
            try:
                for _, done in handed_out(threads, self._check_some, [left] * count, count):
                    runner.add(done.result())
            except BaseException:
                self._give_up()
                raise
        return self._results

    def check_the_rest(self, runner: Runner) -> list[ClauseResult]:
        """Have `runner` check what no thread has told of."""
        told = {result.clause for result in self._results}
        for clause in [clause for clause in self.clauses if clause.id not in told]:
            self.progress.clause_started(clause.id)
            self._results.append(runner.check(clause))
            self.progress.clause_ended(self._results[-1])
        return self._results

    def _check_some(self, left: Iterator[Clause]) -> Aside:
        with self.order.open(start=False) as runner:
            self._runners.append(runner)
            if not self._is_over:
                runner.start()
            while not self._is_over and (clause := self._next(left)) is not None:
                result = runner.check(clause)
                self._tell(result)
            return runner.aside()

    def _next(self, left: Iterator[Clause]) -> Clause | None:
        with self._telling:
            clause = next(left, None)
            if clause is not None:
                self.progress.clause_started(clause.id)
            return clause

    def _tell(self, result: ClauseResult) -> None:
        with self._telling:
            if not self._is_over:  # else it is that of a check which was given up
                self._results.append(result)
                self.progress.clause_ended(result)

    def _give_up(self) -> None:
        self._is_over = True
        for runner in self._runners:
            runner.give_up()


def _by_executor(
    runner: Runner, order: Order, clauses: Sequence[Clause], executor: Executor, progress: Progress
) -> list[ClauseResult]:
    results = list[ClauseResult]()
    lost, reason = list[str](), ""

    def tasks() -> Iterator[tuple[Order, str]]:
        for clause in clauses:
            progress.clause_started(clause.id)
            yield order, clause.id

    for (_, id_), done in handed_out(executor, _check_elsewhere, tasks(), size_of(executor)):
        try:
            result, aside = done.result()
        except ConfigurationError:
            raise
        except (Exception, CancelledError) as error:
            lost.append(id_)
            reason = why_lost(error)
            continue
        runner.add(aside)
        results.append(result)
        progress.clause_ended(result)
    if not lost:
        return results
    runner.add(Aside(notes=(f"checked here, since their workers were lost ({reason}): {', '.join(sorted(lost))}",)))
    count = min(len(lost), size_of(executor), os.cpu_count() or 1)
    return results + _Threads(order, select(lost), progress).check(runner, count)


def _check_elsewhere(task: tuple[Order, str]) -> tuple[ClauseResult, Aside]:
    """Check one clause in this process, a worker's, and leave nothing behind."""
    order, id_ = task
    (clause,) = select([id_])
    try:
        with order.open(home=order.home.bring()) as runner:
            return runner.check(clause), runner.aside()
    except ConfigurationError as error:
        where = f"{password_hidden(order.target)} opens where it is checked from, and not on its worker"
        raise ConfigurationError(f"{where} {socket.gethostname()}: {error}") from None
