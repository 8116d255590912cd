"""W04: that a worker was stopped is proven, also inside its save, and what a store may do with what it saves then."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.clauses import w04_zombie
from n00dles_testing.conformance.expect import VacuousCheck
from n00dles_testing.conformance.stopping import is_stopped, stop
from n00dles_testing.conformance.subject import StoreSubject
from n00dles_testing.verdicts import ClauseResult, Verdict

from .stepping_stores import STEPS, steps_done
from .test_what_counts import subject_in

HERE = Path(__file__).parent
CORRECT = "n00dles_testing.conformance.mutants.correct"
MUTANTS = "n00dles_testing.conformance.mutants.w04"


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[StoreSubject]:
    subject = subject_in(tmp_path)
    yield subject
    subject.nursery().close()


def w04_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["W04"]).results
    return result


def test_a_store_that_locks_and_compares_refuses_whoever_wakes_up() -> None:
    result = w04_of("sqlite:///runs.db")

    assert (result.verdict, result.scenarios) == (Verdict.PASS, 5)
    assert "a stopped worker's save was refused (2 times)" in result.reason
    assert "keeps others out of the run: a call in another process did not return within " in result.reason


def test_which_output_a_store_without_revisions_keeps_is_told() -> None:
    result = w04_of(f"{CORRECT}:JSONFiles")

    assert result.verdict is Verdict.PASS
    assert "merged, replacing the other worker's output of a node that both had completed (1 times)" in result.reason
    assert "a store without revisions cannot tell them" in result.reason


def test_a_worker_that_was_stopped_between_its_look_and_its_write_is_found() -> None:
    result = w04_of(f"{MUTANTS}:BreaksOldLocks")

    assert result.verdict is Verdict.FAIL
    [finding] = result.findings
    assert finding.story[0].startswith("scenario a worker is stopped inside its save, before call ")
    order = [line.rpartition(": ")[2] for line in finding.story if " by SIG" in line]
    assert order == ["stopped by SIGSTOP", "continued by SIGCONT"]
    assert "completed['critic'] is missing" in finding.message


def test_a_store_in_memory_has_no_other_worker() -> None:
    assert w04_of("memory://").verdict is Verdict.NOT_APPLICABLE


def test_a_worker_that_something_else_lets_go_on_shows_nothing(subject: StoreSubject) -> None:
    async def woken_too_early() -> None:
        async with subject.scenario("woken too early") as s, s.elsewhere() as worker:
            await worker.create({"topic": "cats"})
            await worker.stop()
            assert is_stopped(worker.pid)
            os.kill(worker.pid, signal.SIGCONT)
            while is_stopped(worker.pid):
                await asyncio.sleep(0)
            worker.go_on()

    with pytest.raises(VacuousCheck, match="was continued by something else, so nothing was shown"):
        asyncio.run(woken_too_early())


def test_a_stop_that_does_not_happen_shows_nothing(subject: StoreSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    async def goes_on_all_the_same() -> None:
        async with subject.scenario("not stopped") as s, s.elsewhere() as worker:
            monkeypatch.setattr("n00dles_testing.conformance.stopping._SECONDS", 0.01)
            monkeypatch.setattr(signal, "SIGSTOP", signal.SIGCONT)
            await stop(worker.pid)

    with pytest.raises(VacuousCheck, match="was to be stopped by SIGSTOP and went on"):
        asyncio.run(goes_on_all_the_same())


def test_a_save_that_is_not_seen_to_stop_shows_nothing(subject: StoreSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("n00dles_testing.conformance.stopping.is_stopped", lambda _: False)
    monkeypatch.setattr("n00dles_testing.conformance.stopping._SECONDS", 0.05)

    with pytest.raises(VacuousCheck, match="was to be stopped in the midst of something, and was not seen so"):
        asyncio.run(w04_zombie._stopped_inside(subject))


def test_a_save_that_ends_before_it_is_stopped_shows_nothing(subject: StoreSubject) -> None:
    async def one_call_too_many() -> None:
        calls, patience = await w04_zombie._calls_of_a_save(subject)
        await w04_zombie._stopped_at(subject, len(calls) + 1, [*calls, "one more"], patience)

    with pytest.raises(VacuousCheck, match="a worker that was to be stopped inside its save was not: acknowledged"):
        asyncio.run(one_call_too_many())


def test_a_worker_that_is_stopped_takes_no_further_step_inside_its_save(tmp_path: Path) -> None:
    subject = subject_in(tmp_path, f"{HERE / 'stepping_stores.py'}:LeavesAFileForEachStep")

    async def stopped_before_the_first_call() -> list[int]:
        done = []
        async with subject.scenario("stopped before the first step") as s, s.elsewhere() as worker:
            _, before, call = w04_zombie._a_save(s)
            doing = worker.perform(w04_zombie.play_and_stop, before=before, call=call, number=1)
            saving = asyncio.create_task(doing)
            assert s.location is not None
            assert await worker.until_it_stops(saving)
            done.append(steps_done(s.location) - STEPS)
            worker.go_on()
            await saving
            done.append(steps_done(s.location))
        return done

    try:
        assert asyncio.run(stopped_before_the_first_call()) == [0, STEPS]
    finally:
        subject.nursery().close()


def test_who_waits_is_given_more_time_where_a_save_takes_long(
    subject: StoreSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(w04_zombie, "_SECONDS_TO_BREAK_A_LOCK", 0.0)

    _, usual = asyncio.run(w04_zombie._calls_of_a_save(subject))
    monkeypatch.setattr(w04_zombie, "_TIMES_UNDISTURBED", 10_000_000)
    _, most = asyncio.run(w04_zombie._calls_of_a_save(subject))

    assert 0 < usual < most == subject.call_seconds / 2
