"""A few calls of a store, traced and disturbed at the level of system calls, in a process that traces its forks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance.child import name_of
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.conformance.nursery import Nursery
from n00dles_testing.conformance.processes import HelperProcess, OtherProcess
from n00dles_testing.conformance.traced import trace_steps
from n00dles_testing.tracing import why_not

FILES = correct_stores()[0]
Answer = dict[str, Any]

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"nothing can be traced here: {why_not()}")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery(FILES)
    yield nursery
    nursery.close()


@pytest.fixture
def tracer(nursery: Nursery) -> Iterator[OtherProcess]:
    with nursery.fork(tracing=True) as process:
        yield process


def create() -> Answer:
    return {"do": "load_or_create", "run": "r", "inputs": {"topic": "cats"}}


def save(node: str) -> Answer:
    return {"do": "save", "run": "r", "outputs": {node: {"text": "purr"}}}


def asked(process: OtherProcess, folder: Path, disturbance: Answer, before: list[Answer] | None = None) -> Answer:
    """Save a run with the disturbance, load it, save another node, and load it again."""
    arguments = {
        "before": [create()] if before is None else before,
        "call": save("a"),
        "after": [create(), save("b"), create()],
        "disturbance": disturbance,
    }
    message = {"procedure": name_of(trace_steps), "location": str(folder), "arguments": arguments}
    process.channel.send(message)
    reply = process.channel.receive(30)
    while reply is not None and "alive" in reply:
        reply = process.channel.receive(30)
    assert reply is not None
    return reply


def traced(process: OtherProcess, folder: Path, disturbance: Answer) -> Answer:
    came: Answer = asked(process, folder, disturbance)["came"]
    return came


def order(outcome: Answer) -> list[str]:
    return list(outcome["record"]["order"])


def test_every_call_of_the_step_on_a_file_of_the_location_is_told_in_its_order(
    tracer: OtherProcess, tmp_path: Path
) -> None:
    came = traced(tracer, tmp_path, {"by": "count"})

    name = f"{b'r'.hex()}.json"
    kinds = [(call["kind"], call["path"]) for call in came["calls"]]
    assert kinds == [
        ("open", "lock"),
        ("look", name),
        ("open", f"{b'r'.hex()}.new"),
        ("write", f"{b'r'.hex()}.new"),
        ("sync", f"{b'r'.hex()}.new"),
        ("name", f"{b'r'.hex()}.new"),
        ("look", "."),
        ("sync", "."),
    ]
    assert (came["came"], came["told"], came["met"], came["obstacles"]) == ({}, "acknowledged", [], [])
    assert order(came["after"][-1]) == ["a", "b"]


def test_a_kill_comes_before_the_call_and_leaves_what_the_calls_before_it_did(
    tracer: OtherProcess, tmp_path: Path
) -> None:
    came = traced(tracer, tmp_path, {"by": "kill", "number": 1, "kinds": ["name"]})

    assert came["came"] == {"killed": True}
    assert came["after"] == []
    assert came["told"].startswith("killed by SIGKILL before rename")
    assert sorted(path.suffix for path in tmp_path.iterdir()) == ["", ".json", ".new"]


def test_a_call_fails_once_and_the_steps_after_it_go_on(tracer: OtherProcess, tmp_path: Path) -> None:
    came = traced(tracer, tmp_path, {"by": "fail", "number": 1, "kinds": ["sync"], "fault": "EIO"})

    assert came["met"] == [f"fsync of {b'r'.hex()}.new"]
    assert came["told"] == "raised OSError: [Errno 5] Input/output error"
    assert [order(came["after"][0]), order(came["after"][2])] == [[], ["b"]]


def test_a_lasting_fault_meets_every_later_call_of_its_step_and_no_other(tracer: OtherProcess, tmp_path: Path) -> None:
    lasting = {"by": "fail", "number": 2, "kinds": ["look", "sync"], "fault": "EIO", "lasting": True}

    came = traced(tracer, tmp_path, lasting)

    assert came["met"] == [f"fsync of {b'r'.hex()}.new"]
    assert order(came["after"][2]) == ["b"]


def test_of_a_short_write_only_a_half_is_written_and_the_caller_writes_the_rest(
    tracer: OtherProcess, tmp_path: Path
) -> None:
    came = traced(tracer, tmp_path, {"by": "short", "number": 1})

    assert came["met"] == [f"write of {b'r'.hex()}.new"]
    assert [call["kind"] for call in came["calls"]] == ["write", "write"]
    assert came["told"] == "acknowledged"
    assert order(came["after"][0]) == ["a"]


def test_a_step_before_the_call_that_raises_is_told_as_broken(tracer: OtherProcess, tmp_path: Path) -> None:
    reply = asked(tracer, tmp_path, {"by": "count"}, before=[create(), {"do": "delete", "run": "r"}, save("z")])

    assert reply["broken"].startswith("save raised NotStoredError")


def test_a_fresh_interpreter_traces_as_a_fork_does(tmp_path: Path) -> None:
    with HelperProcess("n00dles_testing.conformance.tracer") as process:
        process.channel.send({"target": FILES})

        came = traced(process, tmp_path, {"by": "kill", "number": 1})

    assert came["told"] == "killed by SIGKILL before openat of lock"


STORE = """
import os, subprocess, sys
class Store:
    def __init__(self, folder):
        self.folder = folder
        STARTS
    def load_or_create(self, run_id, inputs):
        return {"run_id": run_id, "inputs": inputs, "completed": {}, "order": []}
    def save(self, run_id, context):
        SAVES
    def delete(self, run_id): ...
"""


def asked_of(tmp_path: Path, disturbance: Answer, *, starts: str = "...", saves: str = "...") -> Answer:
    """What comes of the steps of `asked` with a store that does this when it is opened, and when it saves."""
    store, folder = tmp_path / "odd_store.py", tmp_path / "location"
    store.write_text(STORE.replace("STARTS", starts).replace("SAVES", saves))
    folder.mkdir()
    nursery = Nursery(f"{store}:Store")
    try:
        with nursery.fork(tracing=True) as process:
            return asked(process, folder, disturbance)
    finally:
        nursery.close()


@pytest.mark.parametrize("status", [7, 0])
def test_what_ends_the_process_of_a_store_is_told(status: int, tmp_path: Path) -> None:
    reply = asked_of(tmp_path, {"by": "count"}, saves=f"os._exit({status})")

    assert reply == {"broken": f"the process ended with exit status {status} during save", "details": []}


def test_a_process_that_somebody_else_kills_shows_nothing(tmp_path: Path) -> None:
    reply = asked_of(tmp_path, {"by": "kill", "number": 9}, saves="os.kill(os.getpid(), 9)")

    assert reply["vacuous"].startswith("the process was killed by SIGKILL during save, and not by this check")


HELPER = "subprocess.Popen(['sleep', '1000'])"
SAVES = "open(os.path.join(self.folder, 'f'), 'w').close()"


def test_a_store_that_leaves_a_process_behind_is_counted_without_calls_and_the_process_is_an_obstacle(
    tmp_path: Path,
) -> None:
    reply = asked_of(tmp_path, {"by": "count"}, starts=HELPER, saves=SAVES)

    came = reply["came"]
    assert (came["told"], came["calls"], len(came["obstacles"])) == ("acknowledged", [], 1)
    assert came["obstacles"][0].startswith("sleep (process ")


def test_a_kill_of_a_store_is_told_with_a_process_that_it_leaves_behind(tmp_path: Path) -> None:
    reply = asked_of(tmp_path, {"by": "kill", "number": 1}, starts=HELPER, saves=SAVES)

    assert reply["came"]["told"] == "killed by SIGKILL before openat of f"


def test_a_kill_of_another_process_than_that_of_the_store_is_none_of_the_store(tmp_path: Path) -> None:
    saves = "subprocess.run(['touch', os.path.join(self.folder, 'f')])"

    reply = asked_of(tmp_path, {"by": "kill", "number": 1}, saves=saves)

    assert reply["came"]["met"] == ["openat of f"]
    assert (reply["came"]["came"], reply["came"]["told"]) == ({}, "acknowledged")
