"""Trying the cells that are still missing, a few stores at a time, and saying how long it will take."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from n00dles_testing import interpreters
from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.mutants import all_mutants

from ..warm_workers import WarmWorkers
from .cells import SQLITE, Cell, Job, jobs
from .results import Outcome, Sources, WorkFile

__all__ = ["fill", "try_job"]

_SHOWN_OF_A_REASON = 200
_MINUTE, _HOUR = 60, 3600

Found = list[tuple[Cell, Outcome]]


def fill(work: WorkFile, wanted: set[Cell], processes: int, try_one: Callable[[Job], Found] | None = None) -> list[str]:
    """Try every cell that the work file does not have yet, and keep what came at once.

    Returns a sentence for each job that could not be tried at all; its cells stay missing. The last is that the sources
    have changed meanwhile: nobody knows then what was tried. `try_one` takes the place of the real check, in this
    process.
    """
    missing = wanted - work.outcomes.keys()
    print(f"{len(wanted)} checks, {len(wanted) - len(missing)} of them known from {work.path}", flush=True)
    todo = list(jobs(missing))
    began, done, broken = time.monotonic(), 0, list[str]()
    for job, found in map(_direct(try_one), todo) if try_one else _in_processes(todo, processes):
        name = f"{job.store.rpartition('mutants.')[2]}, seed {job.seed}"
        done += len(job.clauses)
        left = (time.monotonic() - began) / done * (len(missing) - done)
        if Sources.now() != work.sources:
            return [*broken, "the sources have changed while they were tried; start again when they are settled"]
        if isinstance(found, Exception):
            broken.append(f"{name}: {type(found).__name__}: {found}")
            told = f"NOT TRIED {found}"
        else:
            work.add(found)
            told = ", ".join(f"{cell.clause} {outcome.verdict.value}" for cell, outcome in found)
        print(f"{done}/{len(missing)}  {_time(left)} left  {name}: {told}", flush=True)
    return broken


def _direct(try_one: Callable[[Job], Found]) -> Callable[[Job], tuple[Job, Found | Exception]]:
    def tried(job: Job) -> tuple[Job, Found | Exception]:
        try:
            return job, try_one(job)
        except Exception as error:
            return job, error

    return tried


def _in_processes(todo: Sequence[Job], processes: int) -> Iterator[tuple[Job, Found | Exception]]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_fork_workers) as pool:
        futures = {pool.submit(try_job, job): job for job in todo}
        try:
            for future in as_completed(futures):
                error = future.exception()
                if error is not None and not isinstance(error, Exception):
                    raise error
                yield futures[future], error or future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _fork_workers() -> None:
    interpreters.start_interpreter = WarmWorkers().start_interpreter


def try_job(job: Job) -> Found:
    """Check one store with one seed."""
    with tempfile.TemporaryDirectory(prefix="n00dles-tables-") as folder:
        target = f"sqlite:///{folder}/runs.db" if job.store == SQLITE else job.store
        server = next((mutant.server for mutant in all_mutants() if mutant.target == job.store), None)
        report = check_store(target, clauses=job.clauses, seed=job.seed, server=server)
    return [
        (
            Cell(job.seed, job.store, result.clause),
            Outcome(result.verdict, result.reason.replace(folder, "…")[:_SHOWN_OF_A_REASON], result.seconds or 0.0),
        )
        for result in report.results
    ]


def _time(seconds: float) -> str:
    if seconds >= _HOUR:
        return f"{seconds // _HOUR:.0f} h {seconds % _HOUR // _MINUTE:.0f} min"
    return f"{seconds // _MINUTE:.0f} min {seconds % _MINUTE:.0f} s"
