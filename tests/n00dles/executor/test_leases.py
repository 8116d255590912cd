"""Two executors on one run (E16): one proceeds, the other is told who holds it, or waits; no node is called twice."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from n00dles import (
    ConfigurationError,
    InMemoryStateStore,
    PipelineFailure,
    RunLockedError,
    SQLiteStateStore,
    StaleContextError,
    StateStoreError,
    agent,
    aresume,
    arun,
    config,
    configure,
    pipeline,
    resume,
    run,
)
from tests.n00dles.processes import PATIENCE, finish, start

PAIRS = ["memory", "sqlite", "two objects", "urls"]

calls: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    calls.clear()
    yield
    configure(lease_ttl=30)


@pytest.fixture
def short_lease() -> float:
    """Return for how long a lease lasts: long enough for a busy machine to renew it in time."""
    configure(lease_ttl=0.6)
    return 0.6


@pytest.fixture(params=PAIRS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any]:
    """What the two workers give as their store."""
    path = tmp_path / "runs.db"
    if request.param == "two objects":
        return SQLiteStateStore(path), SQLiteStateStore(path)
    if request.param == "urls":
        return f"sqlite:///{path}", f"sqlite:///{path}"
    store = InMemoryStateStore() if request.param == "memory" else SQLiteStateStore(path)
    return store, store


class Gate:
    """A node that waits in the middle of its run, on whatever loop or thread it is called."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def pass_through(self) -> None:
        self.reached.set()
        assert self.open.wait(PATIENCE)

    def flow(self) -> Any:
        @agent
        async def first(value: str) -> str:
            calls.append("first")
            return f"first({value})"

        @agent
        def slow(text: str) -> str:
            calls.append("slow")
            self.pass_through()
            return f"slow({text})"

        @agent
        async def last(text: str) -> str:
            calls.append("last")
            return f"last({text})"

        return pipeline(first >> slow >> last, name="flow")


OUTPUT = "last(slow(first(x)))"
ALL = ["first", "slow", "last"]


async def reached(gate: Gate) -> None:
    assert await asyncio.to_thread(gate.reached.wait, PATIENCE)


def test_the_second_of_two_tasks_is_told_who_holds_the_run_and_the_first_goes_on(stores: tuple[Any, Any]) -> None:
    gate = Gate()

    async def main() -> Any:
        first = asyncio.create_task(arun(gate.flow(), run_id="r", store=stores[0], value="x"))
        await reached(gate)
        with pytest.raises(RunLockedError) as resumed:
            await aresume(gate.flow(), "r", store=stores[1])
        with pytest.raises(RunLockedError) as run_again:
            await arun(gate.flow(), run_id="r", store=stores[1], value="x")
        gate.open.set()
        return (await first).output, resumed.value, run_again.value

    output, resumed, run_again = asyncio.run(main())

    assert (output, calls) == (OUTPUT, ALL)
    assert f"run 'r' is held by process {os.getpid()} on " in str(resumed)
    assert resumed.run_id == run_again.run_id == "r"


def test_the_second_of_two_loops_in_two_threads_is_told(stores: tuple[Any, Any]) -> None:
    gate, outcomes = Gate(), list[Any]()
    thread = threading.Thread(
        target=lambda: outcomes.append(run(gate.flow(), run_id="r", store=stores[0], value="x").output)
    )
    thread.start()
    assert gate.reached.wait(PATIENCE)

    with pytest.raises(RunLockedError):
        resume(gate.flow(), "r", store=stores[1])

    gate.open.set()
    thread.join(PATIENCE)
    assert (outcomes, calls) == ([OUTPUT], ALL)


def test_of_many_threads_one_runs_and_the_others_wait_for_its_result(stores: tuple[Any, Any]) -> None:
    workers = 6
    barrier = threading.Barrier(workers)
    outcomes: list[Any] = []
    gate = Gate()
    gate.open.set()
    flow = gate.flow()

    def work(number: int) -> None:
        barrier.wait(PATIENCE)
        try:
            outcomes.append(run(flow, run_id="r", store=stores[number % 2], value="x", wait=PATIENCE).output)
        except BaseException as error:
            outcomes.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert outcomes == [OUTPUT] * workers
    assert calls == ALL


def test_who_waits_gets_the_stored_result_and_calls_nothing(stores: tuple[Any, Any]) -> None:
    gate = Gate()

    async def main() -> Any:
        first = asyncio.create_task(arun(gate.flow(), run_id="r", store=stores[0], value="x"))
        await reached(gate)
        second = asyncio.create_task(aresume(gate.flow(), "r", store=stores[1], wait=math.inf))
        await asyncio.sleep(0.05)
        gate.open.set()
        return [(await task).output for task in (first, second)]

    assert asyncio.run(main()) == [OUTPUT, OUTPUT]
    assert calls == ALL


def test_who_waits_in_vain_is_told_for_how_long(stores: tuple[Any, Any]) -> None:
    gate = Gate()

    async def main() -> Any:
        first = asyncio.create_task(arun(gate.flow(), run_id="r", store=stores[0], value="x"))
        await reached(gate)
        with pytest.raises(RunLockedError) as waited:
            await aresume(gate.flow(), "r", store=stores[1], wait=0.05)
        with pytest.raises(TimeoutError, match=r"run 'r' was not done within 0\.05 s"):
            await aresume(gate.flow(), "r", store=stores[1], wait=PATIENCE, timeout=0.05)
        gate.open.set()
        await first
        return waited.value

    assert asyncio.run(main()).__notes__ == ["It was waited for, for 0.05 s."]
    assert calls == ALL


def test_a_waiting_worker_goes_on_where_the_first_one_failed(stores: tuple[Any, Any]) -> None:
    gate = Gate()
    failures = [RuntimeError("once")]

    @agent(retry=1)
    def fragile(text: str) -> str:
        calls.append("fragile")
        gate.pass_through()
        if failures:
            raise failures.pop()
        return text

    @agent
    async def first(value: str) -> str:
        calls.append("first")
        return value

    flow = pipeline(first >> fragile, name="flow")

    async def main() -> Any:
        held = asyncio.create_task(arun(flow, run_id="r", store=stores[0], value="x"))
        await reached(gate)
        waiting = asyncio.create_task(aresume(flow, "r", store=stores[1], wait=PATIENCE))
        await asyncio.sleep(0.05)
        gate.open.set()
        with pytest.raises(PipelineFailure):
            await held
        return (await waiting).output

    assert asyncio.run(main()) == "x"
    assert calls == ["first", "fragile", "fragile"]


@pytest.mark.parametrize("end", ["failure", "cancel", "timeout"])
def test_however_a_run_ends_it_is_free_and_nothing_is_left(stores: tuple[Any, Any], end: str) -> None:
    is_first = True

    @agent(retry=1)
    async def node(value: str) -> str:
        if is_first and end == "failure":
            raise RuntimeError("no")
        if is_first:
            await asyncio.sleep(PATIENCE)
        return value

    async def main() -> Any:
        nonlocal is_first
        limit = 0.05 if end == "timeout" else None
        task = asyncio.create_task(arun(node, run_id="r", store=stores[0], timeout=limit, value="x"))
        if end == "cancel":
            await asyncio.sleep(0.05)
            task.cancel()
        await asyncio.wait([task])
        left = asyncio.all_tasks() - {asyncio.current_task()}
        is_first = False
        # It may have ended before there was a record.
        again = await arun(node, run_id="r", store=stores[1], value="x")
        return task.cancelled() or type(task.exception()), left, again.output

    ended, left, output = asyncio.run(main())

    assert ended == {"failure": PipelineFailure, "cancel": True, "timeout": TimeoutError}[end]
    assert (left, output) == (set(), "x")


def test_a_finished_run_is_read_while_another_reads_it(stores: tuple[Any, Any]) -> None:
    gate = Gate()
    gate.open.set()
    flow = gate.flow()

    async def main() -> Any:
        await arun(flow, run_id="r", store=stores[0], value="x")
        results = await asyncio.gather(*(aresume(flow, "r", store=stores[n % 2]) for n in range(8)))
        return [result.output for result in results]

    assert asyncio.run(main()) == [OUTPUT] * 8
    assert calls == ALL


@pytest.mark.parametrize("stores", ["memory", "sqlite"], indirect=True)
@pytest.mark.parametrize("kind", ["async", "sync"])
def test_a_lease_is_renewed_while_a_node_runs(stores: tuple[Any, Any], short_lease: float, kind: str) -> None:
    began = threading.Event()

    @agent
    async def slow_async(value: str) -> str:
        calls.append("slow")
        began.set()
        await asyncio.sleep(2.5 * short_lease)
        return value

    @agent
    def slow_sync(value: str) -> str:
        calls.append("slow")
        began.set()
        time.sleep(2.5 * short_lease)
        return value

    node = slow_async if kind == "async" else slow_sync

    async def main() -> int:
        held = asyncio.create_task(arun(node, run_id="r", store=stores[0], value="x"))
        await asyncio.to_thread(began.wait, PATIENCE)
        refused = 0
        while not held.done():
            try:
                await aresume(node, "r", store=stores[1])
            except RunLockedError:
                refused += 1
            await asyncio.sleep(short_lease / 10)
        await held
        return refused

    assert asyncio.run(main()) >= 5
    assert calls == ["slow"]


def test_a_worker_whose_loop_is_blocked_for_too_long_is_overtaken_and_stops(
    stores: tuple[Any, Any], short_lease: float
) -> None:
    gate, outcomes = Gate(), list[Any]()

    def flow(worker: str) -> Any:
        @agent
        async def blocking(value: str) -> str:
            calls.append(f"blocking by {worker}")
            if worker == "slow":
                gate.pass_through()
                await asyncio.sleep(PATIENCE)
            return value

        @agent
        async def after(text: str) -> str:
            calls.append(f"after by {worker}")
            return text

        return pipeline(blocking >> after, name="flow")

    def work() -> None:
        try:
            run(flow("slow"), run_id="r", store=stores[0], value="x")
        except BaseException as error:
            outcomes.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert gate.reached.wait(PATIENCE)

    output = resume(flow("quick"), "r", store=stores[1], wait=PATIENCE).output

    gate.open.set()
    thread.join(PATIENCE)
    assert output == "x"
    assert calls == ["blocking by slow", "blocking by quick", "after by quick"]
    assert isinstance(outcomes[0], RunLockedError)
    assert "run 'r' is no longer held by this worker" in str(outcomes[0])
    assert "direct cause" not in "".join(traceback.format_exception(outcomes[0]))
    assert "in _renew" not in "".join(traceback.format_exception(outcomes[0]))


def test_a_run_that_is_deleted_stops_its_worker_at_the_next_renewal(
    stores: tuple[Any, Any], short_lease: float
) -> None:
    async def main() -> None:
        began = asyncio.Event()

        @agent
        async def slow(value: str) -> str:
            began.set()
            await asyncio.sleep(PATIENCE)
            return value

        held = asyncio.create_task(arun(slow, run_id="r", store=stores[0], value="x"))
        await began.wait()
        other = stores[1] if not isinstance(stores[1], str) else SQLiteStateStore(stores[1].removeprefix("sqlite:///"))
        await other.delete("r")
        with pytest.raises(RunLockedError, match=r"no longer held by this worker: .* or the run was deleted"):
            await held
        assert await other.load("r") is None
        if isinstance(other, SQLiteStateStore):
            await other.aclose()

    asyncio.run(main())


def test_a_lost_lease_does_not_hide_that_the_run_was_cancelled() -> None:
    class Losing(InMemoryStateStore):
        async def renew(self, lease: Any, ttl: float) -> Any:
            tasks[0].cancel()
            raise RunLockedError("lost")

    store = Losing()
    configure(lease_ttl=0.03)

    async def main() -> bool:
        @agent
        async def slow(value: str) -> str:
            await asyncio.sleep(PATIENCE)
            return value

        tasks.append(asyncio.create_task(arun(slow, run_id="r", store=store, value="x")))
        await asyncio.wait(tasks)
        return tasks[0].cancelled()

    tasks: list[asyncio.Task[Any]] = []

    assert asyncio.run(main())


def test_a_renewal_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    class Shaky(InMemoryStateStore):
        renewals = 0

        async def renew(self, lease: Any, ttl: float) -> Any:
            self.renewals += 1
            if self.renewals == 1:
                raise StateStoreError("the connection was lost")
            enough.set()
            return await super().renew(lease, ttl)

    enough = asyncio.Event()
    store = Shaky()
    configure(lease_ttl=0.03)

    @agent
    async def slow(value: str) -> str:
        await enough.wait()
        return value

    with caplog.at_level(logging.WARNING, "n00dles"):
        result = run(slow, run_id="r", store=store, value="x")

    assert result.output == "x"
    assert store.renewals >= 2
    assert "the lease of run 'r' was not renewed, and is tried again: the connection was lost" in caplog.text


def test_a_release_that_fails_does_not_hide_the_result(caplog: pytest.LogCaptureFixture) -> None:
    class Stuck(InMemoryStateStore):
        async def release(self, lease: Any) -> None:
            raise StateStoreError("the connection was lost")

    @agent
    async def node(value: str) -> str:
        return value

    with caplog.at_level(logging.WARNING, "n00dles"):
        result = run(node, run_id="r", store=Stuck(), value="x")

    assert result.output == "x"
    assert "the lease of run 'r' was not released" in caplog.text


def test_a_store_that_cannot_lease_does_not_start_the_run() -> None:
    class Broken(InMemoryStateStore):
        async def acquire(self, run_id: str, holder: str, ttl: float) -> Any:
            raise StateStoreError("the disk is full")

    @agent
    async def node(value: str) -> str:
        calls.append("node")
        return value

    with pytest.raises(StateStoreError, match="the disk is full"):
        run(node, run_id="r", store=Broken(), value="x")

    assert calls == []


@pytest.mark.parametrize("wait", [-1, math.nan, True, "5"])
def test_a_wait_that_is_no_number_of_seconds_is_refused(wait: Any) -> None:
    @agent
    async def node(value: str) -> str:
        return value

    with pytest.raises(ValueError, match="is not a number of seconds; 0 does not wait"):
        run(node, store=InMemoryStateStore(), wait=wait, value="x")
    with pytest.raises(ValueError, match="is not a number of seconds; 0 does not wait"):
        resume(node, "r", store=InMemoryStateStore(), wait=wait)


@pytest.mark.parametrize("ttl", [0, -1, math.nan, math.inf, True, "5"])
def test_a_time_that_no_lease_can_last_is_refused(ttl: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"lease_ttl=.* is not a positive number of seconds"):
        configure(lease_ttl=ttl)

    assert config.lease_ttl() == 30


WORKER = """
import asyncio, os, sys
from n00dles import agent, configure, pipeline, run

configure(lease_ttl=float(sys.argv[1]))

def note(text):
    fd = os.open("calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{text} by {sys.argv[2]}\\n".encode())
    os.close(fd)

@agent
async def first(value: str) -> str:
    note("first")
    return f"first({value})"

@agent
def slow(text: str) -> str:
    note("slow")
    if sys.argv[2] == "A":
        print("in slow", flush=True)
        sys.stdin.readline()
    return f"slow({text})"

@agent
async def last(text: str) -> str:
    note("last")
    return f"last({text})"

flow = pipeline(first >> slow >> last, name="flow")
try:
    print(run(flow, run_id="r", store="sqlite:///runs.db", value="x", wait=float(sys.argv[3])).output)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start workers of one run. "A" waits in the middle of it."""
    started: list[subprocess.Popen[str]] = []

    def begin(name: str, *, ttl: float = 30, wait: float = 0) -> subprocess.Popen[str]:
        process = start(WORKER, ttl, name, wait, cwd=tmp_path)
        started.append(process)
        if name == "A":
            assert process.stdout is not None
            assert process.stdout.readline() == "in slow\n"
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def noted(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_the_second_of_two_processes_is_told_and_a_third_one_waits(
    tmp_path: Path, worker: Callable[..., subprocess.Popen[str]]
) -> None:
    first = worker("A")
    refused = finish(worker("B"))
    waiting = worker("C", wait=PATIENCE)

    assert refused.startswith(f"RunLockedError run 'r' is held by process {first.pid} on ")
    assert finish_worker(first) == f"{OUTPUT}\n"
    assert finish(waiting) == f"{OUTPUT}\n"
    assert noted(tmp_path) == ["first by A", "slow by A", "last by A"]


def test_a_killed_worker_frees_its_run_at_once(tmp_path: Path, worker: Callable[..., subprocess.Popen[str]]) -> None:
    first = worker("A", ttl=3600)
    first.kill()
    first.wait()

    assert finish(worker("B")) == f"{OUTPUT}\n"
    assert noted(tmp_path) == ["first by A", "slow by A", "slow by B", "last by B"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_stopped_worker_is_overtaken_at_expiry_and_is_refused_when_it_wakes_up(
    tmp_path: Path, worker: Callable[..., subprocess.Popen[str]]
) -> None:
    first = worker("A", ttl=0.5)
    first.send_signal(signal.SIGSTOP)

    second = finish(worker("B", wait=PATIENCE))

    first.send_signal(signal.SIGCONT)
    woken = finish_worker(first)
    assert second == f"{OUTPUT}\n"
    assert woken.split()[0] in (RunLockedError.__name__, StaleContextError.__name__)
    assert noted(tmp_path) == ["first by A", "slow by A", "slow by B", "last by B"]


def finish_worker(process: subprocess.Popen[str]) -> str:
    """Let worker A out of its node, and return what it says at its end."""
    out, err = process.communicate("\n", timeout=PATIENCE)
    assert err == ""
    return out
