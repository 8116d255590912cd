"""Scenarios that workers live: the report is the same whoever lived what, and what a lost worker had is done again."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.crash import ExplorationError, ExplorationReport, Progress, explore, shares
from n00dles_testing.crash.fork_server import ForkServer
from n00dles_testing.crash.ledger import Entry
from n00dles_testing.crash.scenario import BackendError, LifeEnd, PlannedRun, Subject
from n00dles_testing.crash.shares import Lived, Share, SharedOut, live_share
from tests.n00dles_testing.crash import pipelines

END = LifeEnd(1, 7, None, None, 0, False, 0.1)
SHARE = Share.of(Subject("flows.py:chain"), {"KEY": "value"}, 30.0)


def told(report: ExplorationReport) -> str:
    """Return the report as JSON, without the times, and without how many lived it."""
    form = report.to_dict()
    for name in ("seconds", "scenario_seconds", "scenarios_per_second", "workers"):
        del form[name]
    for row in form["rows"]:
        del row["seconds"]
    return json.dumps(form)


def explored(**options: Any) -> ExplorationReport:
    return explore(pipelines.chain, {"topic": "crashes"}, mode="fork", at=["during:*", "after-save:*"], **options)


@pytest.mark.parametrize("workers", [0, -1, "2", 2.5])
def test_what_is_no_number_of_workers_is_refused(workers: Any) -> None:
    with pytest.raises(ExplorationError, match="is no number of workers, from 1, and no executor"):
        explored(workers=workers)


def test_a_pool_reports_what_one_process_reports_though_a_worker_is_killed_meanwhile() -> None:
    alone = explored(workers=1)
    with ProcessPoolExecutor(2) as pool:
        shared = explored(workers=pool)
    seen = []
    with ProcessPoolExecutor(2) as pool:

        def kill_one(progress: Progress) -> None:
            seen.append(progress.done)
            if progress.done == 1:
                os.kill(next(iter(pool._processes)), signal.SIGKILL)

        robbed = explored(workers=pool, on_progress=kill_one)

    assert len(alone.rows) == 6
    assert told(shared) == told(alone)
    assert [replace(row, seconds=0.0) for row in robbed.rows] == [replace(row, seconds=0.0) for row in alone.rows]
    assert robbed.clauses == alone.clauses
    assert seen[-1] == 6
    assert [note for note in robbed.notes if note not in alone.notes] == [
        next(note for note in robbed.notes if "lived again in this process, since their workers were lost" in note)
    ]


def test_an_executor_is_refused_where_other_processes_cannot_live_the_scenarios() -> None:
    with ProcessPoolExecutor(1) as pool, pytest.raises(ExplorationError, match=r"only in mode='fork'.*number of"):
        explore(pipelines.chain, {"topic": "x"}, mode="in-process", workers=pool)


class Here:
    """A backend that lives nothing, and says of each scenario that it did."""

    def __init__(self) -> None:
        self.description: dict[str, Any] = {"name": "chain"}
        self.played: list[str] = []
        self.is_closed = False

    def play(self, scenarios: Iterable[PlannedRun], lanes: int = 1) -> Iterator[tuple[PlannedRun, list[LifeEnd]]]:
        for scenario in scenarios:
            self.played.append(scenario.id)
            yield scenario, [END]

    def entries(self, scenario: PlannedRun) -> list[Entry]:
        return [Entry("here", 1, 7, 0.0, {})]

    def close(self) -> None:
        self.is_closed = True


class Workers(ProcessPoolExecutor):
    """Workers that are told by the test what they do with each share."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self._max_workers = 1
        self._outcomes = list(outcomes)
        self.given: list[Future[list[Lived]]] = []

    def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        (share,) = args
        assert work is live_share
        outcome = self._outcomes.pop(0) if self._outcomes else None
        future: Future[list[Lived]] = Future()
        self.given.append(future)
        if isinstance(outcome, TimeoutError):
            return future  # nobody has begun it
        if outcome is not None:
            future.set_exception(outcome)
        else:
            entry = Entry("there", 1, 8, 0.0, {})
            future.set_result([Lived(scenario.id, [END], [entry]) for scenario in share.scenarios])
        return future


def scenario(number: int, *, record: bool = False) -> PlannedRun:
    folder = f"/nowhere/{number}"
    store = f"sqlite:///{folder}/run.db"
    return PlannedRun(f"c-{number}", "crash", {}, store, folder, f"{folder}.ledger", record=record)


def test_an_undisturbed_run_is_lived_here_and_all_others_by_workers() -> None:
    here, workers = Here(), Workers()
    shared = SharedOut(here, workers, SHARE, [])

    (undisturbed,) = [done for done, _ in shared.play([scenario(1, record=True)])]
    others = [done for done, _ in shared.play(map(scenario, range(2, 7)))]

    assert here.played == ["c-1"]
    assert sorted(done.id for done in others) == ["c-2", "c-3", "c-4", "c-5", "c-6"]
    assert [entry.kind for entry in shared.entries(undisturbed)] == ["here"]
    assert {entry.kind for done in others for entry in shared.entries(done)} == {"there"}


def test_what_lost_workers_had_is_lived_here_in_new_folders_and_told_in_one_note(tmp_path: Path) -> None:
    here, notes = Here(), list[str]()
    shared = SharedOut(here, Workers(None, BrokenExecutor("a worker\nhas gone"), OSError("no route")), SHARE, notes)

    planned = [replace(scenario(number), location=str(tmp_path / str(number))) for number in range(1, 6)]
    played = [done.id for done, _ in shared.play(planned)]

    assert sorted(played) == ["c-1", "c-2", "c-3", "c-4", "c-5"]
    assert sorted(here.played) == ["c-3", "c-4", "c-5"]
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["3-again", "4-again", "5-again"]
    (note,) = notes
    assert note.startswith("3 scenarios were lived again in this process, since their workers were lost (")


def test_a_target_that_no_worker_can_import_ends_the_exploration() -> None:
    shared = SharedOut(Here(), Workers(BackendError("there is no module flows")), SHARE, [])

    with pytest.raises(BackendError, match="no module flows"):
        list(shared.play([scenario(1)]))


def test_whoever_is_interrupted_takes_back_what_nobody_has_begun() -> None:
    here, workers = Here(), Workers(None, TimeoutError())
    shared = SharedOut(here, workers, SHARE, [])
    playing = shared.play(map(scenario, range(1, 5)))

    next(playing)
    playing.close()
    shared.close()

    assert [future.cancelled() for future in workers.given] == [False, True]
    assert here.is_closed


@pytest.fixture
def worker() -> Iterator[None]:
    """Be a worker for a while."""
    yield
    shares._forget_backend()


@pytest.mark.usefixtures("worker")
def test_a_worker_of_another_machine_lives_scenarios_in_a_folder_of_its_own() -> None:
    planned = replace(scenario(1), location="/on/the/other/machine/1", store="sqlite:////on/the/other/machine/1/run.db")
    share = Share.of(Subject(f"{pipelines.__file__}:chain"), {}, 60.0)

    (lived,) = live_share(replace(share, scenarios=(replace(planned, inputs={"topic": "crashes"}),)))

    assert lived.id == "c-1"
    assert lived.ends[0].exit_code == 0
    assert [entry["ok"] for entry in lived.entries if entry.kind == "outcome"] == [True, True, True]
    assert [entry["node"] for entry in lived.entries if entry.kind == "call_start"] == ["draft", "edit", "publish"]
    assert not Path("/on/the/other").exists()


@pytest.mark.usefixtures("worker")
def test_a_worker_that_nobody_asks_any_more_keeps_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "_SECONDS_AT_REST", 0.05)
    share = Share.of(Subject(f"{pipelines.__file__}:chain"), {}, 60.0)

    pids = []
    for number in (1, 2):  # it is started again
        planned = replace(scenario(number), location=f"/elsewhere/{number}", inputs={"topic": "crashes"})
        live_share(replace(share, scenarios=(replace(planned, store="sqlite:////elsewhere/run.db"),)))
        server = shares._of_thread.kept.backend
        assert isinstance(server, ForkServer)
        pids.append(server._process.pid)
        server._process.wait(30)

    assert pids[0] != pids[1]
