"""What a kill or a fault is taken for: a call that goes on for ever, a kill that never came, an error of any type."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from n00dles_testing.conformance import traced
from n00dles_testing.conformance.clauses import c03_kill_inside, c04_faults
from n00dles_testing.conformance.expect import VacuousCheck
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.conformance.mutants.correct import JSONFiles
from n00dles_testing.conformance.nursery import Nursery
from n00dles_testing.conformance.subject import StoreSubject
from n00dles_testing.conformance.target import StoreTarget
from n00dles_testing.tracing import why_not

FILES = correct_stores()[0]
SAVE = "a later save"
SHORT_WRITES = "n00dles_testing.conformance.mutants.c04:IgnoresAShortWrite"
SHORT = {"by": "short", "number": 1}
FULL = {"by": "fail", "number": 1, "fault": "ENOSPC", "lasting": False, "kinds": ["write"]}
needs_tracing = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


class Silent:
    def scenario(self, number: int, title: str) -> None: ...

    def step(self, number: int, text: str) -> None: ...


class DoomError(BaseException):
    """No Exception."""


class RaisesNoException(JSONFiles):
    def write(self, run_id: str, record: dict[str, Any]) -> None:
        try:
            super().write(run_id, record)
        except OSError:
            raise DoomError("the disk is full") from None


@contextmanager
def subject_of(target: str, folder: Path, clause: str) -> Iterator[StoreSubject]:
    nursery = Nursery(target)
    memory = {"nursery": nursery, "durability": (True, [], True)}
    try:
        yield StoreSubject(
            StoreTarget.parse(target), folder, clause=clause, seed=0, nonce="test", listener=Silent(), memory=memory
        )
    finally:
        nursery.close()


def test_a_step_that_makes_calls_for_ever_gives_one_sign_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signs: list[int | None] = []
    steps = SimpleNamespace(at=0)
    monkeypatch.setattr(traced, "still_alive", lambda: signs.append(steps.at))
    disturber = traced._Disturber(str(tmp_path), {"by": "count"}, steps, 1)  # type: ignore[arg-type]
    call: Any = SimpleNamespace(name="write", data=b"purr", file=None)

    for steps.at in (0, 0, 1, 1, 1, None, 2, 2):
        disturber(call, 0)

    assert signs == [0, 1, None, 2]
    assert len(disturber.calls) == 3


async def nothing_left(_: StoreSubject) -> None: ...


def everywhere_but_in_a_save(result: Any) -> Callable[..., Awaitable[Any]]:
    async def tried(subject: StoreSubject, title: str, *_: Any, **__: Any) -> Any:
        return title != SAVE and result

    return tried


def test_a_kill_that_never_came_in_one_call_of_the_store_is_no_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(c03_kill_inside, "_after_a_kill", everywhere_but_in_a_save(True))
    monkeypatch.setattr(c03_kill_inside, "nothing_is_left_by_a_kill", nothing_left)

    with (
        subject_of(FILES, tmp_path, "C03") as subject,
        pytest.raises(VacuousCheck, match="was not killed inside a later save, so nothing was shown of that"),
    ):
        asyncio.run(c03_kill_inside.killed_inside(subject))


def test_a_fault_that_was_met_in_all_calls_but_one_is_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c04_faults, "_meets", everywhere_but_in_a_save(True))

    with (
        subject_of(FILES, tmp_path, "C04") as subject,
        pytest.raises(VacuousCheck, match="no fault was met in a later save, so nothing was shown of that"),
    ):
        asyncio.run(c04_faults.faults_are_raised(subject))


def test_who_takes_a_short_write_for_done_was_not_killed_in_it(tmp_path: Path) -> None:
    with subject_of(SHORT_WRITES, tmp_path, "C03") as subject:
        disturbance = {"by": "torn", "size": 26}
        assert not asyncio.run(c03_kill_inside._after_a_kill(subject, SAVE, "in the write", disturbance))

    assert subject.findings == []
    assert subject.scenarios == 0


@needs_tracing
def test_what_was_acknowledged_although_it_failed_is_told_so(tmp_path: Path) -> None:
    with subject_of(SHORT_WRITES, tmp_path, "C04") as subject:
        asyncio.run(c04_faults._meets(subject, SAVE, "system call 4, write, in part", SHORT, traced=True))

    [finding] = subject.findings
    assert finding.story[-2] == "why      the call was acknowledged, whatever failed on the way"
    assert finding.story[-1].startswith("fix      let the error of each open, write, sync")


@needs_tracing
def test_an_error_that_is_no_exception_is_named(tmp_path: Path) -> None:
    with subject_of(f"{__file__}:RaisesNoException", tmp_path, "C04") as subject:
        asyncio.run(c04_faults._meets(subject, SAVE, "system call 4, write, failing", FULL, traced=True))

    [finding] = subject.findings
    assert finding.message == (
        "save raised DoomError: the disk is full (which is no Exception: `except Exception` lets it by), and the "
        "process ended with exit status 1"
    )


def test_an_error_that_is_no_exception_is_named_where_nothing_is_traced(tmp_path: Path) -> None:
    with subject_of(f"{__file__}:RaisesNoException", tmp_path, "C04") as subject:
        asyncio.run(c04_faults._meets(subject, SAVE, "no file growing", {"by": "size", "size": 30}))

    [finding] = subject.findings
    assert finding.message.startswith("the process ended with exit status 1 during ")
    assert finding.message.endswith("DoomError: the disk is full")
