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


def test_what_ends_the_process_of_a_store_is_told(nursery: Nursery, tmp_path: Path) -> None:
    store = tmp_path / "ending.py"
    store.write_text(
        "import os\n"
        "class Store:\n"
        "    def __init__(self, folder): ...\n"
        "    def load_or_create(self, run_id, inputs):\n"
        "        return {'run_id': run_id, 'inputs': inputs, 'completed': {}, 'order': []}\n"
        "    def save(self, run_id, context): os._exit(7)\n"
        "    def delete(self, run_id): ...\n"
    )
    ending = Nursery(f"{store}:Store")
    try:
        with ending.fork(tracing=True) as process:
            reply = asked(process, tmp_path, {"by": "count"})
    finally:
        ending.close()

    assert reply == {"broken": "the process ended with exit status 7 during save", "details": []}
