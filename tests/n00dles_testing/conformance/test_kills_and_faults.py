"""Kills and faults inside a call: they happen, or the check says that they did not, and how often they did."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.clauses import c03_kill_inside, c04_faults, c05_reply_lost, c06_kill_in_recovery
from n00dles_testing.conformance.elsewhere import Elsewhere
from n00dles_testing.conformance.expect import VacuousCheck
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.conformance.nursery import Nursery
from n00dles_testing.conformance.spread import spread
from n00dles_testing.conformance.subject import StoreSubject
from n00dles_testing.conformance.target import StoreTarget
from n00dles_testing.verdicts import ClauseResult, Verdict

FILES = correct_stores()[0]
CLAUSES = ["C03", "C04", "C05", "C06"]


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

    async def without_a_disturbance(self: Elsewhere, message: dict[str, Any]) -> dict[str, Any] | None:
        arguments = dict(message.get("arguments", {}))
        if "disturbance" in arguments and arguments["disturbance"].get("number") != 0:
            arguments["disturbance"] = {"by": "count"}
        return await exchange(self, {**message, "arguments": arguments} if arguments else message)

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
            if self.path(run_id).exists():
                call(os.unlink, self.path(run_id))

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


def test_a_store_whose_calls_python_does_not_tell_of_meets_the_kernel_alone(tmp_path: Path) -> None:
    module = tmp_path / "hidden.py"
    module.write_text(HIDDEN)

    results = {result.clause: result for result in checked(f"{module}:Hidden")}

    assert results["C03"].verdict is Verdict.PASS
    assert "killed at 0 of 0 calls" in results["C03"].reason
    assert "inside 7 writes" in results["C03"].reason
    assert "Python tells of no call to the outside in the first creation" in results["C03"].reason
    assert results["C04"].verdict is Verdict.PASS
    assert results["C04"].reason.startswith("0 calls of the store met a fault put in their way, and ")
    for clause in ("C05", "C06"):
        assert results[clause].verdict is Verdict.NOT_RUN
        assert "Python does not tell of the calls that the store makes to the outside" in results[clause].reason


def test_it_is_said_how_many_kills_stand_behind_a_pass() -> None:
    [result] = checked(FILES, "C03")

    assert result.verdict is Verdict.PASS
    told = re.fullmatch(r"killed at (\d+) of (\d+) calls that the store makes, and inside (\d+) writes", result.reason)
    assert told is not None
    tried, points, torn = map(int, told.groups())
    assert points >= tried >= 30
    assert torn == 7
    assert result.scenarios == tried + torn


@pytest.mark.parametrize(
    ("count", "most", "numbers"),
    [(0, 5, []), (3, 5, [1, 2, 3]), (9, 3, [1, 5, 9]), (5, 2, [1, 5]), (1, 1, [1]), (5, 1, [1]), (5, 0, [])],
)
def test_some_of_many_points_are_spread_evenly(count: int, most: int, numbers: list[int]) -> None:
    assert spread(count, most) == numbers
