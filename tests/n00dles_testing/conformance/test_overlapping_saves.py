"""S09: that saves overlapped is proven, and what a store may do with them."""

from __future__ import annotations

import asyncio
import errno
import threading
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.clauses import s09_overlap
from n00dles_testing.conformance.expect import VacuousCheck
from n00dles_testing.conformance.in_threads import in_threads
from n00dles_testing.conformance.overlap import Overlap, save_in_threads
from n00dles_testing.verdicts import ClauseResult, Verdict

from .test_what_counts import subject_in

HOSTILE = Path(__file__).parent / "hostile_stores.py"
MUTANTS = "n00dles_testing.conformance.mutants.s09"


def s09_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["S09"]).results
    return result


@pytest.mark.parametrize(
    ("spans", "is_proven"),
    [
        ([], False),
        ([(0.0, 9.0)], False),
        ([(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)], False),
        ([(2.0, 3.0), (0.0, 1.0), (0.5, 2.0)], True),
        ([(0.0, 9.0), (1.0, 2.0), (3.0, 4.0)], True),
    ],
)
def test_calls_overlap_if_one_began_before_another_returned(spans: list[tuple[float, float]], is_proven: bool) -> None:
    assert Overlap(spans=spans).is_proven is is_proven


@pytest.mark.parametrize(
    ("target", "scenario", "message"),
    [
        (f"{MUTANTS}:WritesInAnyOrder", "5 saves at once, of one context", "completed['node"),
        (f"{MUTANTS}:MergesWithWhatItReadBefore", "5 saves at once, of a handle each", "completed['node"),
        (f"{MUTANTS}:LeavesItToTheNextSave", "5 saves at once, of one context", "completed['node"),
        (f"{HOSTILE}:LosesWhatThreadsSave", "5 saves in threads, of a handle each", "completed['node"),
    ],
)
def test_a_node_that_an_overlapping_save_has_taken_away_is_found(target: str, scenario: str, message: str) -> None:
    result = s09_of(target)

    assert result.verdict is Verdict.FAIL
    finding = result.findings[0]
    assert finding.story[0] == f"scenario {scenario}"
    assert finding.message.startswith(message)
    assert "is missing" in finding.message


def test_a_store_that_loses_what_overlapped_when_it_is_opened_again_is_no_control_of_itself() -> None:
    result = s09_of(f"{MUTANTS}:LeavesItToTheNextSave")

    assert "so it was before the store was opened again" in result.findings[0].story[-1]


@pytest.mark.parametrize("mutant", ["CompactsWhatItOpened", "StripsOnDisk"])
def test_what_is_lost_without_any_overlap_as_well_is_not_held_against_it(mutant: str) -> None:
    assert s09_of(f"n00dles_testing.conformance.mutants.c01:{mutant}").verdict is Verdict.PASS


def test_a_store_that_saves_at_once_in_its_event_loop_is_called_from_threads() -> None:
    result = s09_of("memory://")

    assert (result.verdict, result.scenarios) == (Verdict.PASS, 4)


def test_a_store_may_refuse_a_save_while_another_one_is_under_way() -> None:
    assert s09_of(f"{HOSTILE}:RefusesWhileItSaves").verdict is Verdict.PASS


def test_saves_that_are_proven_unable_to_overlap_are_not_applicable() -> None:
    result = s09_of(f"{HOSTILE}:BelongsToAThread")

    assert result.verdict is Verdict.NOT_APPLICABLE
    assert "each ended before the next began, and saves from other threads are refused (node" in result.reason
    assert "RuntimeError: made in another thread" in result.reason


def test_threads_that_could_not_save_are_vacuous_and_no_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def save() -> None:
        async with subject_in(tmp_path).scenario("no loop for a thread") as s:
            handle = await s.create()
            monkeypatch.setattr(asyncio, "run", no_loop)
            await save_in_threads(s, await s.opened(), [(handle, "a", 1), (handle, "b", 2)])

    def no_loop(main: Any) -> None:
        main.close()
        raise OSError(errno.EMFILE, "Too many open files")

    run = asyncio.run
    with pytest.raises(VacuousCheck, match=r"0 of 2 threads have saved, and it was not the store.*Too many open files"):
        run(save())


def test_what_threads_raise_and_that_one_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def starts_two(thread: threading.Thread) -> None:
        if len(done) == 2 and thread.daemon:
            raise RuntimeError("can't start new thread")
        start(thread)
        done.append(thread.name)

    def ends() -> None: ...

    def dies() -> None:
        raise threading.BrokenBarrierError

    done: list[str] = []
    monkeypatch.setattr(threading.Thread, "start", starts_two)
    have_ended, raised = asyncio.run(in_threads([ends, dies, ends]))

    assert have_ended
    assert sorted(raised) == ["thread 1: BrokenBarrierError", "thread 2: RuntimeError: can't start new thread"]


def test_saves_that_never_overlapped_are_vacuous(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def one_after_the_other(s: Any, saves: Any) -> Overlap:
        overlap = Overlap()
        for number, (handle, node, output) in enumerate(saves):
            if await s.late_save(handle, {node: output}):
                overlap.acknowledged[node] = output
            overlap.spans.append((number, number + 1))
        return overlap

    monkeypatch.setattr(s09_overlap, "save_in_one_loop", one_after_the_other)
    monkeypatch.setattr(s09_overlap, "_in_threads", one_after_the_other)
    monkeypatch.setattr(s09_overlap, "_ROUNDS_IN_THREADS", 2)

    with pytest.raises(VacuousCheck, match="no save began before another had returned: not in 16 rounds"):
        asyncio.run(s09_overlap.overlapping_saves(subject_in(tmp_path)))
