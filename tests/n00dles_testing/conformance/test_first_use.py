"""S16: what is raced, what is proven of it, and which stores it is not for."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.clauses import s16_first_use
from n00dles_testing.conformance.expect import VacuousCheck
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.conformance.mutants.correct import FolderLock
from n00dles_testing.conformance.pauses import pauses
from n00dles_testing.conformance.subject import StoreSubject
from n00dles_testing.conformance.target import StoreTarget
from n00dles_testing.verdicts import ClauseResult, Verdict

MUTANTS = "n00dles_testing.conformance.mutants"


def checked(target: str, **options: Any) -> ClauseResult:
    [result] = check_store(target, clauses=["S16"], **options).results
    return result


def test_a_memory_store_has_no_location_that_two_processes_share() -> None:
    result = checked("memory://")

    assert (result.verdict, result.scenarios) == (Verdict.NOT_APPLICABLE, 0)
    assert "a run saved in another process is not found in this one" in result.reason


def test_a_store_that_opens_one_place_only_cannot_be_used_for_the_first_time_again(tmp_path: Path) -> None:
    store = tmp_path / "store.py"
    store.write_text(
        "from n00dles_testing.conformance.mutants.correct import JSONFiles\n"
        f"def open_store():\n    return JSONFiles({str(tmp_path)!r})\n"
    )

    result = checked(f"{store}:open_store")

    assert result.verdict is Verdict.NOT_RUN
    assert result.reason.startswith("a first use needs a fresh location each time. Give the factory one argument")


def test_a_store_that_loses_what_one_process_has_saved_is_not_blamed_for_a_race() -> None:
    result = checked(f"{MUTANTS}.c01:CompactsWhatItOpened")

    assert result.verdict is Verdict.PASS
    assert "whether the runs are there afterwards was not tried" in result.reason


def test_a_failure_names_the_call_and_how_many_processes_met_it() -> None:
    result = checked(f"{MUTANTS}.s16:SwitchesToWALWithoutWaiting")

    finding = result.findings[0]
    assert result.verdict is Verdict.FAIL
    assert "of 8 processes that opened a fresh location at once failed: " in finding.message
    assert finding.message.endswith("raised OperationalError: database is locked")
    assert any("8 processes at once: open, load_or_create(own run)" in line for line in finding.story)


def test_a_store_that_waits_for_ever_is_ended_at_the_limit(tmp_path: Path) -> None:
    store = tmp_path / "store.py"
    store.write_text(
        "import fcntl, os\n"
        "from pathlib import Path\n"
        "from n00dles_testing.conformance.mutants.correct import JSONFiles\n"
        "class KeepsTheLock(JSONFiles):\n"
        "    kept = []\n"
        "    def __init__(self, folder):\n"
        "        super().__init__(folder)\n"
        "        self.kept.append((Path(folder) / 'owner').open('w'))\n"
        "        fcntl.flock(self.kept[-1], fcntl.LOCK_EX)\n"
    )

    started = time.monotonic()
    result = checked(f"{store}:KeepsTheLock", limit=2.0)

    assert result.verdict is Verdict.FAIL
    assert "did not answer within 2 s" in result.reason
    assert time.monotonic() - started < 30


class Racer:
    """Stands for a process: tells when it was at work in each round, the last one for ever; all goes well."""

    def __init__(self, *spans: tuple[float, float]) -> None:
        self.spans = list(spans)

    async def perform(self, _: Any, **arguments: Any) -> dict[str, Any]:
        record = {"inputs": {"topic": "cats"}, "completed": {"researcher": "facts"}, "order": ["researcher"]}
        return {"span": self.spans.pop(0) if len(self.spans) > 1 else self.spans[0], "record": record}


class Nobody:
    def scenario(self, number: int, title: str) -> None: ...

    def step(self, number: int, text: str) -> None: ...


def raced(folder: Path, racers: list[Any]) -> StoreSubject:
    target = StoreTarget.parse(correct_stores()[0])
    subject = StoreSubject(target, folder, clause="S16", seed=0, nonce="test", listener=Nobody(), memory={})

    async def race() -> None:
        async with subject.scenario("a race") as s:
            await s16_first_use._rounds(s, racers, None)

    asyncio.run(race())
    return subject


EARLY, LATE = (0.0, 1.0), (1.0, 2.0)


@pytest.mark.parametrize("overlapping", [0, 1, 5])
def test_too_few_rounds_in_which_processes_overlapped_have_shown_too_little(
    overlapping: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s16_first_use, "_MOST_SECONDS", 0.0)

    with pytest.raises(VacuousCheck, match=rf"in {overlapping} of 24 rounds, .* fewer than 6 show too little"):
        raced(tmp_path, [Racer(EARLY), Racer(*[EARLY] * overlapping, LATE)])


def test_a_store_that_needs_the_time_of_the_clause_for_too_few_rounds_is_vacuous(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s16_first_use, "_SHARE", 0.0)

    with pytest.raises(VacuousCheck, match=r"in 1 of 1 rounds, .* a higher --limit"):
        raced(tmp_path, [Racer(EARLY), Racer(EARLY)])


def test_rounds_without_an_overlap_are_made_again_as_long_as_there_is_time(tmp_path: Path) -> None:
    subject = raced(tmp_path, [Racer(EARLY), Racer(*[LATE] * 40, EARLY)])

    assert (subject.scenarios, subject.findings, subject.notes) == (1, [], [])


def test_processes_that_were_at_work_at_the_same_time_have_raced(tmp_path: Path) -> None:
    subject = raced(tmp_path, [Racer((0.0, 1.0)), Racer((2.0, 3.0)), Racer((0.5, 0.6))])

    assert (subject.scenarios, subject.findings, subject.notes) == (1, [], [])


def test_a_process_rests_before_it_calls_the_system_and_not_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)

    with pauses():
        len([1, 2])
        before = len(rests)
        os.getcwd()
        os.stat(".")
        during = len(rests)
    os.getcwd()

    assert (before, during, len(rests)) == (0, 2, 2)
    assert all(0 <= rest <= 0.001 for rest in rests)


def test_a_folder_lock_is_held_by_one_process_at_a_time_and_may_be_entered_again(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from n00dles_testing.conformance.mutants.correct import FolderLock\n"
        "print('waits', flush=True)\nwith FolderLock(Path(sys.argv[1])): print('has it', flush=True)\n"
    )
    lock = FolderLock(tmp_path)

    with lock:
        with lock:
            other = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        first = other.stdout.readline()
        is_waiting = not select.select([other.stdout], [], [], 0.2)[0]

    assert (first, is_waiting) == ("waits\n", True)
    assert other.communicate(timeout=30)[0] == "has it\n"
