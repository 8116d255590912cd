"""Kills and faults inside a call: they happen, or the check says that they did not, and how often they did."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.clauses import c03_kill_inside, c04_faults, c05_reply_lost, c06_kill_in_recovery
from n00dles_testing.conformance.deeds import DEEDS, Deed, undisturbed
from n00dles_testing.conformance.disturbed import play
from n00dles_testing.conformance.elsewhere import Elsewhere
from n00dles_testing.conformance.expect import BrokenClause, VacuousCheck
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.conformance.nursery import Nursery
from n00dles_testing.conformance.scenario import Scenario
from n00dles_testing.conformance.spread import Points, share, spread
from n00dles_testing.conformance.subject import StoreSubject
from n00dles_testing.conformance.target import StoreTarget
from n00dles_testing.tracing import why_not
from n00dles_testing.verdicts import ClauseResult, Verdict

FILES = correct_stores()[0]
CLAUSES = ["C03", "C04", "C05", "C06"]
DELETE = DEEDS["a delete"]


class Silent:
    def scenario(self, number: int, title: str) -> None: ...

    def step(self, number: int, text: str) -> None: ...


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[StoreSubject]:
    nursery = Nursery(FILES)
    memory = {"nursery": nursery, "durability": (True, [], True)}
    yield StoreSubject(
        StoreTarget.parse(FILES), tmp_path, clause="C03", seed=0, nonce="test", listener=Silent(), memory=memory
    )
    nursery.close()


def checked(target: str, *clauses: str) -> list[ClauseResult]:
    return list(check_store(target, clauses=clauses or CLAUSES, seed=3).results)


CHECKS = {
    "C03": c03_kill_inside.killed_inside,
    "C04": c04_faults.faults_are_raised,
    "C05": c05_reply_lost.made_again,
    "C06": c06_kill_in_recovery.killed_in_recovery,
}


@pytest.mark.parametrize("clause", CHECKS)
def test_what_did_not_happen_is_vacuous(clause: str, subject: StoreSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = Elsewhere._exchange

    async def without_a_disturbance(self: Elsewhere, message: dict[str, Any], *rest: Any) -> Any:
        arguments = dict(message.get("arguments", {}))
        if "disturbance" in arguments and arguments["disturbance"].get("number") != 0:
            arguments["disturbance"] = {"by": "count"}
        return await exchange(self, {**message, "arguments": arguments} if arguments else message, *rest)

    monkeypatch.setattr(Elsewhere, "_exchange", without_a_disturbance)

    with pytest.raises(VacuousCheck, match="so nothing was shown"):
        asyncio.run(CHECKS[clause](subject))
    assert subject.findings == []


HIDDEN = """
from functools import partial
from pathlib import Path
import json, os, threading
from n00dles_testing.conformance.mutants.correct import NotStoredError, merged, new_record, record_of

def call(function, *arguments):
    return partial(function, *arguments)()

class Hidden:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.lock = threading.Lock()

    def load_or_create(self, run_id, inputs):
        with self.lock:
            if self.read(run_id) is None:
                self.write(run_id, new_record(run_id, inputs))
            return self.read(run_id)

    def save(self, run_id, context):
        with self.lock:
            if (stored := self.read(run_id)) is None:
                raise NotStoredError(run_id)
            self.write(run_id, merged(stored, record_of(context)))

    def delete(self, run_id):
        with self.lock:
            for path in (Path(f"{self.path(run_id)}.new"), self.path(run_id)):
                if path.exists():
                    call(os.unlink, path)

    def path(self, run_id):
        return self.folder / f"{run_id}.json"

    def write(self, run_id, record):
        aside = f"{self.path(run_id)}.new"
        number = call(os.open, aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            text = json.dumps(record).encode()
            while text:
                text = text[call(os.write, number, text) :]
            call(os.fsync, number)
        finally:
            os.close(number)
        call(os.rename, aside, self.path(run_id))

    def read(self, run_id):
        if not self.path(run_id).exists():
            return None
        number = call(os.open, self.path(run_id), os.O_RDONLY)
        try:
            return json.loads(os.read(number, 10**7))
        finally:
            os.close(number)
"""


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_a_store_whose_calls_python_does_not_tell_of_is_disturbed_at_its_system_calls(tmp_path: Path) -> None:
    module = tmp_path / "hidden.py"
    module.write_text(HIDDEN)

    results = {result.clause: result for result in checked(f"{module}:Hidden")}

    assert results["C03"].verdict is Verdict.PASS
    told = re.match(r"killed at (\d+) of (\d+) system calls on its files, and inside 7 writes", results["C03"].reason)
    assert told is not None, results["C03"].reason
    assert int(told[1]) == int(told[2]) >= 10
    assert results["C04"].verdict is Verdict.PASS
    assert re.match(
        r"[1-9]\d+ of its system calls were made to fail, and the kernel itself refused ", results["C04"].reason
    )
    for clause in ("C05", "C06"):
        assert results[clause].verdict is Verdict.NOT_RUN
        assert "Python does not tell of the calls that the store makes to the outside" in results[clause].reason


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_it_is_said_how_many_kills_stand_behind_a_pass() -> None:
    [result] = checked(FILES, "C03")

    assert result.verdict is Verdict.PASS
    told = re.match(r"killed at (\d+) of (\d+) system calls on its files, and inside (\d+) writes", result.reason)
    assert told is not None, result.reason
    tried, points, torn = map(int, told.groups())
    assert points == tried >= 20
    assert torn == 7
    assert result.scenarios >= tried + torn


@pytest.mark.parametrize(
    ("count", "most", "numbers"),
    [(0, 5, []), (3, 5, [1, 2, 3]), (9, 3, [1, 5, 9]), (5, 2, [1, 5]), (1, 1, [1]), (5, 1, [1]), (5, 0, [])],
)
def test_some_of_many_points_are_spread_evenly(count: int, most: int, numbers: list[int]) -> None:
    assert spread(count, most) == numbers


def points(subject: StoreSubject, counts: dict[str, int], most: int) -> list[list[int]]:
    tried = Points(subject, counts, most)
    return [list(tried.of(title)) for title in counts]


def test_every_point_is_tried_as_long_as_they_are_not_too_many(subject: StoreSubject) -> None:
    found = points(subject, {"save": 90, "delete": 60, "load": 0}, 150)

    assert found == [list(range(1, 91)), list(range(1, 61)), []]


def test_of_too_many_points_each_seed_meets_others_and_all_of_them_both_ends(subject: StoreSubject) -> None:
    samples = []
    for subject.seed in range(40):
        [sample, small] = points(subject, {"save": 400, "delete": 3}, 23)
        samples.append(sample)

        assert small == [1, 2, 3]
        assert len(sample) == len(set(sample)) == 20
        assert sample == sorted(sample)
        assert (sample[0], sample[-1]) == (1, 400)
    assert len(set(map(tuple, samples))) == 40
    assert len(set().union(*samples)) > 300


def test_the_deep_profile_tries_every_point(subject: StoreSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("N00DLES_PROFILE", "deep")

    assert points(subject, {"save": 400}, 23) == [list(range(1, 401))]


def test_a_check_that_is_late_keeps_to_the_ends(subject: StoreSubject) -> None:
    subject.seconds = -1.0

    assert points(subject, {"save": 9, "delete": 2}, 150) == [[1, 9], [1, 2]]


def test_what_is_shared_out_goes_to_the_small_ones_first() -> None:
    assert share({"a": 100, "b": 5, "c": 40}, 65) == {"b": 5, "c": 30, "a": 30}


async def no_answer(self: Elsewhere, *_: Any, **__: Any) -> dict[str, Any]:
    raise BrokenClause("out of order")


@pytest.mark.parametrize(("failures", "untried"), [(0, []), (1, []), (2, ["a first save"])])
def test_a_call_is_left_out_only_if_it_comes_out_wrong_twice(
    failures: int, untried: list[str], subject: StoreSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform, broken = Elsewhere.perform, [no_answer] * failures

    async def at_first_broken(self: Elsewhere, *procedure: Any, **arguments: Any) -> dict[str, Any]:
        return await (broken.pop() if broken else perform)(self, *procedure, **arguments)

    monkeypatch.setattr(Elsewhere, "perform", at_first_broken)
    came = asyncio.run(undisturbed(subject, "a first save", DEEDS["a first save"], after_a_kill=True))

    assert subject.untried == untried
    assert (came is None) == bool(untried)


def test_a_file_that_vanishes_while_sizes_are_read_is_no_error(
    subject: StoreSubject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat, location = os.stat, tmp_path / "location"
    location.mkdir()
    (location / "gone.wal").touch()

    def without(path: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("gone.wal"):
            raise FileNotFoundError(path)
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", without)
    call = {"do": "load_or_create", "run": "r", "inputs": {}}
    came = asyncio.run(play(subject.target, str(location), before=[], call=call, after=[], disturbance={"by": "count"}))

    assert came["came"]["record"]["inputs"] == {}


@pytest.fixture
def kills(subject: StoreSubject, monkeypatch: pytest.MonkeyPatch) -> dict[int, bool]:
    """Which of the kills on one location happen: the first one, and those in recovery; all, unless a test says no."""
    happens = {1: True, 2: True, 3: True}
    exchange, counts = Elsewhere._exchange, Counter[str | None]()

    async def exchanged(self: Elsewhere, message: dict[str, Any], *rest: Any) -> Any:
        arguments = dict(message.get("arguments", {}))
        if arguments.get("disturbance", {}).get("number"):
            location = self._scenario.location
            counts[location] += 1
            if not happens[counts[location]]:
                arguments["disturbance"] = {"by": "count"}
        return await exchange(self, {**message, "arguments": arguments} if arguments else message, *rest)

    monkeypatch.setattr(Elsewhere, "_exchange", exchanged)
    return happens


def test_without_the_first_kill_no_old_state_is_allowed(kills: dict[int, bool], subject: StoreSubject) -> None:
    kills[1] = False
    deaths = c06_kill_in_recovery._Deaths()

    asyncio.run(c06_kill_in_recovery._recovers(subject, "a delete", 2, (1, 2), deaths))
    assert deaths == c06_kill_in_recovery._Deaths(once=0, twice=0, missed=1)
    assert subject.findings == []


def test_without_the_first_kill_a_call_that_is_not_done_is_found(
    kills: dict[int, bool], subject: StoreSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills[1] = False
    monkeypatch.setitem(DEEDS, "a delete", delete_that_never_comes)

    asyncio.run(c06_kill_in_recovery._recovers(subject, "a delete", 2, (1, 2), c06_kill_in_recovery._Deaths()))
    assert len(subject.findings) == 1


async def delete_that_never_comes(s: Scenario) -> Deed:
    deed = await DELETE(s)
    return replace(deed, call=deed.before[-1])


@pytest.mark.parametrize(("second", "said"), [(True, r"[1-9]\d* of them a second time"), (False, "0 of them a second")])
def test_it_is_said_how_many_kills_came_to_depth_2(
    second: bool, said: str, kills: dict[int, bool], subject: StoreSubject
) -> None:
    kills[3] = second

    asyncio.run(c06_kill_in_recovery.killed_in_recovery(subject))
    assert re.search(said, subject.notes[0])
    assert second == (len(subject.notes) == 1)
