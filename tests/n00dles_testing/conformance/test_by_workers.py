"""A check by several workers tells what one process tells, also when one of them is lost."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from n00dles.errors import ConfigurationError
from n00dles_testing.conformance import StoreReport, check_store
from n00dles_testing.verdicts import ClauseResult

STORE = "docs/examples/my_store.py:open_store"
BROKEN = "n00dles_testing.conformance.mutants.s05:GivesOutItsCache"
CLAUSES = ["S05", "S01", "S07"]


class Watcher:
    """Hears what a check says."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None

    def started(self, clauses: Sequence[tuple[str, str]], note: str) -> None:
        self.count = len(clauses)

    def clause_started(self, clause: str) -> None:
        self.begun.append(clause)

    def clause_ended(self, result: ClauseResult) -> None:
        self.ended.append(result.clause)


class Here(Executor):
    """Does all at once, where it is called, or does as `instead` says."""

    def __init__(self, instead: Callable[[], Any] | None = None) -> None:
        self._instead = instead

    def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*args) if self._instead is None else self._instead())
        except Exception as error:
            future.set_exception(error)
        return future


def told(report: StoreReport) -> str:
    """Return the report as JSON, without the times, and without stories: the ids of runs are random."""
    form = report.to_dict()
    for each in [form, *form["results"]]:
        del each["seconds"]
    for result in form["results"]:
        for finding in result["findings"]:
            del finding["story"]
    return json.dumps(form)


@pytest.mark.parametrize("target", [STORE, BROKEN])
def test_threads_and_executors_report_what_one_process_reports(target: str, tmp_path: Path) -> None:
    claims = tmp_path / "claims.toml"
    claims.write_text('[claims]\nlevel = 1\n[known-gaps]\nS01 = "to be seen"\n')
    options: dict[str, Any] = {"clauses": CLAUSES, "claims": claims}
    watcher = Watcher()

    alone = check_store(target, **options)
    by_threads = check_store(target, **options, progress=watcher, workers=2)
    by_executor = check_store(target, **options, workers=Here())

    assert told(by_threads) == told(alone)
    assert told(by_executor) == told(alone)
    assert (watcher.count, sorted(watcher.begun), sorted(watcher.ended)) == (3, sorted(CLAUSES), sorted(CLAUSES))


def test_what_takes_longest_begins_first() -> None:
    watcher = Watcher()

    check_store(STORE, clauses=["S01", "S10"], progress=watcher, workers=Here())

    assert watcher.begun[0] == "S10"


def test_what_a_lost_worker_had_is_checked_here() -> None:
    with ProcessPoolExecutor(1) as pool:

        class Killer(Watcher):
            def clause_ended(self, result: ClauseResult) -> None:
                super().clause_ended(result)
                for pid in pool._processes or () if len(self.ended) == 1 else ():
                    os.kill(pid, signal.SIGKILL)

        watcher = Killer()
        report = check_store(STORE, clauses=CLAUSES, progress=watcher, workers=pool)

    assert [(result.clause, result.verdict) for result in report.results] == [
        ("S01", "PASS"),
        ("S05", "PASS"),
        ("S07", "PASS"),
    ]
    assert sorted(watcher.ended) == sorted(CLAUSES)
    assert report.notes[1].startswith("checked here, since their workers were lost (BrokenProcessPool: ")
    assert report.notes[1].endswith("): S05, S07")


def test_a_worker_where_the_store_does_not_open_ends_the_check_and_is_no_fault_of_the_store() -> None:
    def elsewhere() -> None:
        raise ConfigurationError("there is no module my_store")

    with pytest.raises(ConfigurationError, match="no module my_store"):
        check_store(STORE, clauses=["S05"], workers=Here(elsewhere))


def test_an_executor_that_takes_nothing_is_a_lost_worker() -> None:
    class Unreachable(Here):
        def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            raise OSError(111, "Connection refused")

    report = check_store(STORE, clauses=["S01"], workers=Unreachable())

    assert [result.verdict for result in report.results] == ["PASS"]
    assert "their workers were lost (ConnectionRefusedError: [Errno 111] Connection refused)" in report.notes[-1]


@pytest.mark.parametrize("workers", [0, -1, True, 2.5, "2", None])
def test_what_is_no_number_of_workers_is_refused_before_anything_is_opened(workers: Any) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(f"workers={workers!r} is no number of workers, from 1,")):
        check_store("nothing:there", workers=workers)


def test_a_store_that_does_not_open_is_told_as_by_one_process() -> None:
    with pytest.raises(ConfigurationError, match="no_such_store"):
        check_store("docs/examples/my_store.py:no_such_store", clauses=["S05"], workers=2)


def test_relative_names_begin_for_a_worker_where_they_begin_for_the_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Elsewhere(Here):
        def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            with monkeypatch.context() as patch:
                patch.chdir(tmp_path)
                return super().submit(work, *args, **kwargs)

    report = check_store(STORE, clauses=["S05"], workers=Elsewhere())

    assert [result.verdict for result in report.results] == ["PASS"]
    assert list(tmp_path.iterdir()) == []


ONE_PLACE = """
from n00dles_testing.conformance.mutants.correct import JSONFiles

def anywhere(location):
    return JSONFiles({folder!r})

def without_location():
    return JSONFiles({folder!r})
"""


@pytest.mark.parametrize("factory", ["anywhere", "without_location"])
def test_a_store_in_one_place_is_checked_one_clause_after_the_other_and_says_so(factory: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "one_place.py").write_text(ONE_PLACE.format(folder=str(tmp_path / "data")))
    target = f"{tmp_path}/one_place.py:{factory}"

    def never() -> None:
        raise AssertionError("a worker was asked")

    alone = check_store(target, clauses=["S01", "S05"])
    shared = check_store(target, clauses=["S01", "S05"], workers=Here(never))

    assert [note for note in shared.notes if note not in alone.notes] == [shared.notes[-1]]
    assert shared.notes[-1].startswith("checked one clause after the other")
    assert [(each.clause, each.verdict) for each in shared.results] == [
        (each.clause, each.verdict) for each in alone.results
    ]


ONE_PROCESS = """
import fcntl
from n00dles_testing.conformance.mutants.correct import JSONFiles

lock = open({lock!r}, "w")

def open_store(location):
    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of the process, as long as it lives
    return JSONFiles(location)
"""


def test_a_store_that_opens_for_one_process_at_a_time_is_checked_one_clause_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "one_process.py").write_text(ONE_PROCESS.format(lock=str(tmp_path / "lock")))
    target, watcher = f"{tmp_path}/one_process.py:open_store", Watcher()

    report = check_store(target, clauses=["S01", "S05"], workers=2, progress=watcher)

    assert [(each.clause, each.verdict.value) for each in report.results] == [("S01", "PASS"), ("S05", "PASS")]
    assert report.notes[-1].startswith("checked one clause after the other, without other workers: while one process")
    assert "Resource temporarily unavailable" in report.notes[-1]
    assert sorted(watcher.ended) == ["S01", "S05"]
