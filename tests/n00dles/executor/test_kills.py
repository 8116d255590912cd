"""Real kills: what a process leaves behind when it dies by signal 9, and what the next one does with it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from n00dles import SQLiteStateStore
from n00dles.executor import MAX_STALLED_LIVES
from tests.n00dles.processes import finish, start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")

SCRIPT = """
import json, os, signal, sys, time
from n00dles import PipelineFailure, RetryPolicy, agent, branch, pipeline, run
from n00dles.events import NodeRetried

plan = json.loads(sys.argv[1])
retried = []

def log(what):
    os.write(ledger, (what + "\\n").encode())

ledger = os.open("calls", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def die():
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)

def work(name, value):
    log(name)
    if plan.get("die_in") == name:
        die()
    if name in plan.get("fail", []):
        raise ValueError("no luck in " + name)
    return f"{name}({value})"

@agent
def a(value: str) -> str:
    return work("a", value)

@agent
async def b(value: str) -> str:
    return work("b", value)

@agent
def spare(value: str) -> str:
    return work("spare", value)

@agent(retry=RetryPolicy(2, base_delay=plan.get("delay", 0)), fallback=spare)
def c(value: str) -> str:
    return work("c", value)

@agent
def end(value) -> str:
    return work("end", value)

def observe(event):
    what = [event.name, *getattr(event, "nodes", ()), getattr(event, "node", ""), getattr(event, "attempt", "")]
    if isinstance(event, NodeRetried):
        retried.append(event)
    if plan.get("die_at") == [str(part) for part in what if part != ""]:
        die()
    if plan.get("die_in_back_off") and retried and event.name == "checkpoint_saved":
        import threading
        threading.Timer(0.05, die).start()

flow = pipeline(a >> (b | c) >> branch(never=a.named("never"), default=end), name="flow")
try:
    print(run(flow, run_id="r", store="sqlite:///runs.db", value="x", observers=[observe]).output)
except PipelineFailure as failure:
    print("failed at", failure.node_name, str(failure.cause))
"""


def life(folder: Path, *, code: int = 0, **plan: Any) -> str:
    import json

    return finish(start(SCRIPT, json.dumps(plan), cwd=folder), code=code).strip()


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().split()


def stored(folder: Path) -> Any:
    async def load() -> Any:
        store = SQLiteStateStore(folder / "runs.db")
        try:
            return await store.load("r")
        finally:
            await store.aclose()

    return asyncio.run(load())


DONE = "end({'b': 'b(a(x))', 'c': 'c(a(x))'})"
KILLED = -signal.SIGKILL


@pytest.mark.parametrize(
    ("plan", "on_disk", "called_again"),
    [
        ({"die_at": ["run_started"]}, [], []),
        ({"die_in": "a"}, [], ["a"]),
        ({"die_at": ["node_returned", "a", "1"]}, [], ["a"]),
        ({"die_at": ["checkpoint_saved", "a"]}, ["a"], []),
        ({"die_in": "end"}, ["a", "b", "c"], ["end"]),
        ({"die_at": ["checkpoint_saved", "end"]}, ["a", "b", "c", "end"], []),
    ],
    ids=["at the start", "in a node", "before its save", "after its save", "in the last node", "after the last save"],
)
def test_a_killed_run_resumes_from_what_was_acknowledged(
    plan: dict[str, Any], on_disk: list[str], called_again: list[str], tmp_path: Path
) -> None:
    life(tmp_path, code=KILLED, **plan)
    found = stored(tmp_path)
    output = life(tmp_path)

    assert sorted(found.order) == on_disk
    assert output == DONE
    assert sorted(calls(tmp_path)) == sorted(["a", "b", "c", "end", *called_again])


def test_a_kill_in_the_back_off_costs_the_attempt(tmp_path: Path) -> None:
    life(tmp_path, code=KILLED, fail=["c"], delay=3600, die_in_back_off=True)
    found = stored(tmp_path)
    output = life(tmp_path, fail=["c"], delay=3600)

    assert found.record("c").spent == 1
    assert output == "end({'b': 'b(a(x))', 'c': 'spare(a(x))'})"
    assert calls(tmp_path).count("c") == 2


def test_a_kill_before_the_fallback_leads_to_the_fallback(tmp_path: Path) -> None:
    life(tmp_path, code=KILLED, fail=["c"], die_in="spare")
    output = life(tmp_path, fail=["c"])

    assert output == "end({'b': 'b(a(x))', 'c': 'spare(a(x))'})"
    assert calls(tmp_path).count("c") == 2
    assert calls(tmp_path).count("spare") == 2


def test_a_fallbacks_output_that_was_acknowledged_is_not_asked_for_again(tmp_path: Path) -> None:
    life(tmp_path, code=KILLED, fail=["c"], die_in="end")
    output = life(tmp_path, fail=["c"])

    assert output == "end({'b': 'b(a(x))', 'c': 'spare(a(x))'})"
    assert (calls(tmp_path).count("c"), calls(tmp_path).count("spare")) == (2, 1)


def test_a_node_that_kills_every_process_ends_as_a_failure(tmp_path: Path) -> None:
    for _ in range(MAX_STALLED_LIVES):
        life(tmp_path, code=KILLED, die_in="a")
    output = life(tmp_path, die_in="a")

    assert output.startswith(f"failed at a {MAX_STALLED_LIVES} lives in a row have ended without a completed node")
    assert calls(tmp_path) == ["a"] * MAX_STALLED_LIVES
    assert stored(tmp_path).status == "failed"


ZOMBIE = """
import os, signal, sys
from n00dles import StateStoreError, agent, configure, pipeline, resume, run

configure(lease_ttl=0.3)

@agent
def a(value: str) -> str:
    return f"a({value})"

@agent
def b(value: str) -> str:
    with open("calls", "a") as calls:
        calls.write(sys.argv[1] + "\\n")
    if sys.argv[1] == "zombie":
        os.kill(os.getpid(), signal.SIGSTOP)
    return f"b({value}) by {sys.argv[1]}"

@agent
def c(value: str) -> str:
    with open("calls", "a") as calls:
        calls.write("c by " + sys.argv[1] + "\\n")
    return value

flow = pipeline(a >> b >> c, name="flow")
try:
    print(run(flow, run_id="r", store="sqlite:///runs.db", wait=60, value="x").output)
except StateStoreError as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("meanwhile", ["finished", "deleted"])
def test_a_worker_that_wakes_up_after_another_has_taken_over_is_refused(meanwhile: str, tmp_path: Path) -> None:
    zombie = start(ZOMBIE, "zombie", cwd=tmp_path)
    _, status = os.waitpid(zombie.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    if meanwhile == "finished":
        taken_over = finish(start(ZOMBIE, "heir", cwd=tmp_path)).strip()
        assert taken_over == "b(a(x)) by heir"
    else:
        asyncio.run(_delete(tmp_path))
    zombie.send_signal(signal.SIGCONT)

    said = finish(zombie).strip()

    assert said in ("StaleContextError", "RunLockedError")  # its save comes first, or the renewal of its lease
    found = stored(tmp_path)
    if meanwhile == "finished":
        assert found.completed == {"a": "a(x)", "b": "b(a(x)) by heir", "c": "b(a(x)) by heir"}
        assert calls_lines(tmp_path) == ["zombie", "heir", "c by heir"]
    else:
        assert found is None
        assert calls_lines(tmp_path) == ["zombie"]


def calls_lines(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


async def _delete(folder: Path) -> None:
    store = SQLiteStateStore(folder / "runs.db")
    await store.delete("r")
    await store.aclose()
