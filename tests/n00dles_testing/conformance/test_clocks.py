"""S12, and the clock that it sets: every look shows it, nothing else is changed, and all is taken back."""

from __future__ import annotations

import asyncio
import datetime
import functools
import os
import pickle
import time
from datetime import UTC
from datetime import datetime as imported_by_name
from pathlib import Path
from time import time as imported_time

import pytest

from n00dles_testing.conformance import check_store, clock, implemented
from n00dles_testing.conformance.clock import SkewedClock, WallClock
from n00dles_testing.conformance.expect import VacuousCheck
from n00dles_testing.verdicts import ClauseResult, Verdict

HOSTILE = Path(__file__).parent / "hostile_stores.py"
MUTANTS = "n00dles_testing.conformance.mutants.s12"


@functools.cache
def s12_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["S12"]).results
    return result


@pytest.mark.parametrize(
    ("target", "scenario", "message"),
    [
        (
            f"{MUTANTS}:LoadsTheLatest",
            "the clock is set back by an hour before each save",
            "completed['a0'] is missing",
        ),
        (f"{MUTANTS}:SkipsWhatIsNotNewer", "the clock is set back by an hour before", "completed['a0'] is missing"),
        (f"{MUTANTS}:TakesATieForStale", "the clock stands still", "save raised StaleError"),
        (f"{HOSTILE}:NewestByFileTime", "the clock stands still", "completed['a"),
    ],
)
def test_a_save_that_a_clock_has_lost_is_told_with_what_it_showed(target: str, scenario: str, message: str) -> None:
    result = s12_of(target)

    assert result.verdict is Verdict.FAIL
    finding = next(finding for finding in result.findings if finding.story[0].startswith(f"scenario {scenario}"))
    assert finding.message.startswith(message)
    assert any(line.startswith("the clock shows ") for line in finding.story)


ELSEWHERE = "a process whose clock is an hour behind goes on, and this one after it"


def test_times_that_only_rise_within_a_process_are_told_by_another_one_whose_clock_is_behind() -> None:
    [finding] = s12_of(f"{MUTANTS}:MakesTimesThatOnlyRise").findings

    assert finding.story[0] == f"scenario {ELSEWHERE}"
    assert finding.message.startswith("completed['there00'] is missing")
    assert any("its clock is set -3600 s off" in line for line in finding.story)
    assert any("load_or_create(" in line and line.startswith("process ") for line in finding.story)


def test_files_by_whose_times_the_newest_is_found_have_those_of_the_clock_of_the_process_that_wrote_them() -> None:
    result = s12_of(f"{HOSTILE}:NewestByFileTime")

    finding = next(finding for finding in result.findings if finding.story[0] == f"scenario {ELSEWHERE}")
    assert finding.message.startswith("completed['there00'] is missing")
    assert result.untried == ()


def test_a_store_that_other_processes_do_not_find_is_not_tried_with_their_clocks() -> None:
    result = s12_of("memory://")

    assert (result.verdict, result.reason, result.untried) == (Verdict.PASS, "", ())


def test_what_comes_out_wrong_under_one_clock_is_not_blamed_on_another() -> None:
    result = s12_of(f"{HOSTILE}:ReadsOnceInAProcess")

    assert (result.verdict, result.untried) == (Verdict.PASS, (ELSEWHERE,))
    assert result.reason == f"not tried: {ELSEWHERE}: that comes out wrong under one clock, too (see C01 and W04)"


def test_a_clause_after_one_that_sets_the_clock_does_not_meet_what_a_library_has_kept_of_it() -> None:
    first, second = check_store(f"{HOSTILE}:RemembersTheTime", clauses=["S12", "S13"]).results

    assert first.verdict is Verdict.FAIL
    assert "the clock was set back" in first.reason
    assert second.verdict is Verdict.PASS, second.reason


def test_the_clauses_that_set_the_clock_say_so() -> None:
    assert [clause.id for clause in implemented() if clause.sets_the_clock] == ["S12", "S17"]


def test_every_way_to_ask_shows_the_clock() -> None:
    shown = WallClock()
    shown.offset = -3600
    expected = shown.base_ns / 1e9 - 3600

    with shown.installed():
        answers = [
            time.time(),
            imported_time(),
            time.time_ns() / 1e9,
            datetime.datetime.now().timestamp(),
            imported_by_name.now(UTC).timestamp(),
            imported_by_name.utcnow().replace(tzinfo=UTC).timestamp(),
            imported_by_name.today().timestamp(),
            time.mktime(time.localtime()) + shown.base_ns / 1e9 % 1,
            float(time.strftime("%s")) + shown.base_ns / 1e9 % 1,
        ]

    assert answers == pytest.approx([expected] * len(answers), abs=0.001)
    assert abs(time.time() - expected - 3600) < 60
    assert imported_by_name is datetime.datetime


def test_times_that_are_made_under_the_clock_are_ordinary_ones() -> None:
    before = datetime.datetime(2026, 1, 1, tzinfo=UTC)

    with WallClock().installed():
        made = [imported_by_name(2026, 1, 1, tzinfo=UTC), imported_by_name.fromisoformat("2026-01-01T00:00:00+00:00")]
        is_one = isinstance(before, imported_by_name)

    assert made == [before, before]
    assert {type(each) for each in made} == {datetime.datetime}
    assert is_one


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_time_is_pickled_under_the_clock_as_ever(protocol: int) -> None:
    times = [imported_by_name(2026, 1, 1, 12), imported_by_name(2026, 1, 1, 12, tzinfo=UTC)]
    before = pickle.dumps(times, protocol)

    with WallClock().installed():
        under, read = pickle.dumps(times, protocol), pickle.loads(before)

    assert under == before
    assert read == times
    assert pickle.dumps(times, protocol) == before


def test_what_waits_is_not_stopped() -> None:
    async def wait() -> float:
        started = time.monotonic()
        await asyncio.wait_for(asyncio.sleep(0.01), 5)
        return time.monotonic() - started

    with WallClock().installed():
        waited = asyncio.run(wait())

    assert 0.009 < waited < 5


def test_a_clock_that_cannot_be_set_is_vacuous(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_replace", lambda stand_ins: iter(()))
    shown = WallClock()
    shown.offset = -3600

    with pytest.raises(VacuousCheck, match="the clock could not be set"), shown.installed():
        pass


def test_files_that_were_written_get_the_time_of_the_clock_and_others_keep_theirs(tmp_path: Path) -> None:
    shown = WallClock()
    (tmp_path / "old").write_text("x")
    shown.offset = -3600
    shown.date_files(str(tmp_path))
    (tmp_path / "new").write_text("x")
    shown.offset = -7200
    shown.date_files(str(tmp_path))

    ages = {path.name: path.stat().st_mtime_ns - shown.base_ns for path in tmp_path.iterdir()}

    assert ages == {"old": -3600 * 10**9, "new": -7200 * 10**9}


def test_files_that_were_written_under_a_clock_that_goes_on_keep_their_order(tmp_path: Path) -> None:
    shown = SkewedClock(-3600)
    for number, name in enumerate("badc"):
        if number == 1:
            shown.leave_files(str(tmp_path))
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, ns=(number * 10**9, number * 10**9))
    shown.date_files(str(tmp_path))

    times = {path.name: path.stat().st_mtime_ns // 10**9 for path in tmp_path.iterdir()}

    assert times == {"b": 0, "a": 1 - 3600, "d": 2 - 3600, "c": 3 - 3600}


@pytest.mark.parametrize(
    ("mutant", "message"),
    [
        ("CountsInTwoDigits", "completed['node99'] is missing"),
        ("CompactsTheRunInUse", "completed['researcher'] is missing"),
    ],
)
def test_a_long_sequence_of_saves_hides_neither_the_last_one_nor_another_run(mutant: str, message: str) -> None:
    result = s12_of(f"{MUTANTS}:{mutant}")

    [finding] = result.findings
    assert finding.story[0] == "scenario 260 saves of one run, beside two others"
    assert finding.message.startswith(message)


def test_a_store_that_takes_long_is_asked_for_fewer_saves_which_is_noted() -> None:
    [result] = check_store(f"{HOSTILE}:GetsSlow", clauses=["S12"], limit=4.0).results

    assert result.verdict is Verdict.PASS
    assert "saves of one run were tried, not 260: they take long" in result.reason
