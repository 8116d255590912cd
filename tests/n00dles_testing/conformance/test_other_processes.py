"""Other processes of a check: forks of a clean process, killed and reaped for certain; fresh interpreters where not."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.child import name_of
from n00dles_testing.conformance.disturbed import play
from n00dles_testing.conformance.elsewhere import Elsewhere
from n00dles_testing.conformance.expect import VacuousCheck
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.conformance.nursery import Nursery, NurseryGoneError
from n00dles_testing.conformance.processes import OtherProcess, describe_exit
from n00dles_testing.conformance.subject import StoreSubject
from n00dles_testing.conformance.target import StoreTarget
from n00dles_testing.verdicts import Verdict

FILES = correct_stores()[0]


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    nursery = Nursery(FILES)
    yield nursery
    nursery.close()


class Silent:
    def scenario(self, number: int, title: str) -> None: ...

    def step(self, number: int, text: str) -> None: ...


def subject_on(folder: Path, nursery: Nursery, target: str = FILES) -> StoreSubject:
    memory = {"nursery": nursery}
    return StoreSubject(
        StoreTarget.parse(target), folder, clause="C01", seed=0, nonce="test", listener=Silent(), memory=memory
    )


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def becomes_gone(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while not is_gone(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_gone(pid)


def test_a_fork_serves_as_a_fresh_interpreter_does(nursery: Nursery, tmp_path: Path) -> None:
    with nursery.fork() as process:
        message = {"location": str(tmp_path), "run_id": "r", "inputs": {"topic": "cats"}}
        reply = process.request({"do": "load_or_create", **message}, 20)

    assert reply == {"ok": True, "record": {"inputs": {"topic": "cats"}, "completed": {}, "order": []}}
    assert len(list(tmp_path.glob("*.json"))) == 1


def test_a_kill_of_a_fork_is_real_and_told(nursery: Nursery, tmp_path: Path) -> None:
    with nursery.fork() as process:
        message = {"location": str(tmp_path), "run_id": "r", "inputs": {}, "die": True}
        process.request({"do": "load_or_create", **message}, 20)
        status = process.wait(20)

        assert describe_exit(status) == "was killed by SIGKILL"
        assert is_gone(process.pid)


def test_a_fork_is_gone_after_leaving(nursery: Nursery) -> None:
    with nursery.fork() as first, nursery.fork() as second:
        pids = [first.pid, second.pid]
        assert not any(map(is_gone, pids))

    assert all(map(is_gone, pids))
    assert len(set(pids)) == 2


def test_forks_end_with_the_nursery() -> None:
    nursery = Nursery(FILES)
    process = nursery.fork()

    nursery.close()

    assert becomes_gone(process.pid)
    process.__exit__()
    with pytest.raises(NurseryGoneError):
        nursery.fork()


def test_forks_leave_no_descriptor_behind(nursery: Nursery) -> None:
    with nursery.fork():
        pass
    before = len(os.listdir("/dev/fd"))

    for _ in range(5):
        with nursery.fork():
            pass

    assert len(os.listdir("/dev/fd")) == before


TELLING_STORE = """
import random, sys, threading

{at_import}

class Telling:
    def load_or_create(self, run_id, inputs):
        print("hello from the store")
        return {{"run_id": run_id, "inputs": {{"random": random.random()}}, "completed": {{}}, "order": []}}

    def save(self, run_id, context): ...

    def delete(self, run_id): ...

def open_store(location):
    return Telling()
"""


def target_that(folder: Path, at_import: str = "") -> str:
    path = folder / "telling.py"
    path.write_text(TELLING_STORE.format(at_import=at_import))
    return f"{path}:open_store"


def test_each_fork_draws_other_random_numbers_and_has_one_thread(tmp_path: Path) -> None:
    nursery = Nursery(target_that(tmp_path, "random.seed(7)"))
    message = {"do": "load_or_create", "location": str(tmp_path), "run_id": "r", "inputs": {}}

    with nursery.fork() as first, nursery.fork() as second:
        threads = len(os.listdir(f"/proc/{first.pid}/task")) if sys.platform == "linux" else 1
        drawn = [process.request(message, 20) for process in (first, second)]
        printed = first.output()
    nursery.close()

    assert threads == 1
    assert drawn[0] != drawn[1]
    assert printed == "hello from the store\n"


@pytest.mark.parametrize(
    ("at_import", "reason"),
    [
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", "importing it starts 1 threads"),
        ("import socket; left_open = socket.socket()", "importing it opens descriptor "),
        ("import sqlite3; left_open = sqlite3.connect(':memory:')", "importing it opens a database (':memory:')"),
    ],
)
def test_a_module_that_leaves_something_open_is_not_forked(at_import: str, reason: str, tmp_path: Path) -> None:
    target = target_that(tmp_path, at_import)

    nursery = Nursery(target)

    assert nursery.unfit is not None
    assert nursery.unfit.startswith(reason)


def test_without_forks_the_checks_use_fresh_interpreters_and_say_so(tmp_path: Path) -> None:
    module = tmp_path / "threaded.py"
    module.write_text(
        "import threading\n"
        "from n00dles_testing.conformance.mutants.correct import JSONFiles\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )

    [result] = check_store(f"{module}:JSONFiles", clauses=["C01"]).results

    assert result.verdict is Verdict.PASS
    assert "other processes are fresh interpreters, no forks: importing it starts 1 threads" in result.reason


def test_a_nursery_that_has_ended_is_replaced_by_fresh_interpreters(nursery: Nursery, tmp_path: Path) -> None:
    nursery.close()
    subject = subject_on(tmp_path, nursery)

    async def look() -> None:
        async with subject.scenario("another process") as s, s.elsewhere() as other:
            await other.create({"topic": "cats"})

    asyncio.run(look())

    assert subject.findings == []
    assert subject.notes == ["other processes are fresh interpreters, no forks: the process that is forked has ended"]


def test_only_functions_of_the_suite_are_performed() -> None:
    async def inner(target: StoreTarget, location: str | None) -> dict[str, Any]:
        return {}

    with pytest.raises(ValueError, match="is no procedure of the suite"):
        name_of(inner)


class Ended:
    """A process that has ended without a word."""

    pid = 7

    def __init__(self, status: int | None) -> None:
        self._status = status

    def request(self, message: dict[str, Any], *step: int) -> dict[str, Any] | None:
        return None

    def wait(self, timeout: float) -> int | None:
        if self._status is None:
            raise NurseryGoneError("the process that is forked has ended")
        return self._status

    def output(self) -> str:
        return ""


def died_by(status: int | None, by: int, folder: Path, nursery: Nursery) -> tuple[bool, dict[str, Any]]:
    async def die() -> tuple[bool, dict[str, Any]]:
        async with subject_on(folder, nursery).probe("a kill") as s:
            return await Elsewhere(s, cast(OtherProcess, Ended(status))).perform_and_die("a kill", play, by=by)
        raise AssertionError("not reached")

    return asyncio.run(die())


@pytest.mark.parametrize(
    ("status", "by", "message"),
    [
        (-9, signal.SIGKILL, "a process was killed by SIGKILL, but not where it was to be"),
        (-9, signal.SIGXFSZ, "a process was killed by SIGKILL, but not where it was to be"),
        (None, signal.SIGKILL, "the process that is forked has ended, and its forks with it, so nothing was shown"),
    ],
)
def test_a_kill_that_was_not_told_before_is_no_proof(
    status: int | None, by: int, message: str, nursery: Nursery, tmp_path: Path
) -> None:
    with pytest.raises(VacuousCheck, match=message):
        died_by(status, by, tmp_path, nursery)


def test_a_kill_by_the_kernel_in_a_write_needs_no_words(nursery: Nursery, tmp_path: Path) -> None:
    assert died_by(-signal.SIGXFSZ, signal.SIGXFSZ, tmp_path, nursery) == (True, {})


def test_how_a_fork_ended_is_not_made_up_when_the_nursery_is_gone() -> None:
    nursery = Nursery(FILES)
    process = nursery.fork()
    nursery.close()

    with pytest.raises(NurseryGoneError):
        process.wait(20)
    process.__exit__()
