"""Cancel, Ctrl-C and exits leave the last checkpoint, and nothing running."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from n00dles import InMemoryStateStore, SQLiteStateStore, StateStore, agent, aresume, arun, pipeline, resume, run
from n00dles.events import CheckpointSaved, Event
from tests.n00dles.processes import finish, start

calls: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    calls.clear()


@agent
async def a(value: str) -> str:
    calls.append("a")
    await asyncio.sleep(0)
    return f"a({value})"


@agent
def b(text: str) -> str:
    calls.append("b")
    return f"b({text})"


@agent
async def c(text: str) -> str:
    calls.append("c")
    await asyncio.sleep(0)
    return f"c({text})"


@agent
async def join(b: str, c: str) -> str:
    calls.append("join")
    return f"{b}+{c}"


FLOW = pipeline(a >> (b | c) >> join, name="flow")
OUTPUT = "b(a(x))+c(a(x))"


class WatchedStore(SQLiteStateStore):
    """Counts the saves that are under way."""

    saving = 0

    async def save(self, run_id: str, ctx: Any) -> None:
        self.saving += 1
        try:
            await super().save(run_id, ctx)
        finally:
            self.saving -= 1


async def _cancelled_after(steps: int, store: WatchedStore) -> tuple[bool, set[str]]:
    """Cancel a run after so many turns of the event loop; return whether that was early enough, and what was saved."""
    saved: set[str] = set()

    def watch(event: Event) -> None:
        if isinstance(event, CheckpointSaved):
            saved.update(event.nodes)

    task = asyncio.create_task(arun(FLOW, run_id="r", store=store, value="x", observers=[watch]))
    for _ in range(steps):
        await asyncio.sleep(0)
    early = task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass
    else:
        early = False
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert store.saving == 0
    return early, saved


def test_a_cancel_at_any_turn_of_the_loop_leaves_a_run_that_resumes_and_repeats_nothing(tmp_path: Path) -> None:
    rounds, steps = 0, 0.0
    while True:
        # A thread takes as many turns as the machine pleases: look closely at first, then ever less.
        steps = steps + 1 if steps < 30 else steps * 1.3
        calls.clear()
        store = WatchedStore(tmp_path / f"{rounds}.db")
        early, saved = asyncio.run(_cancelled_after(int(steps), store))
        before = list(calls)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("n00dles-node")]
        if not early:
            break
        rounds += 1

        result = run(FLOW, run_id="r", store=store, value="x")

        asyncio.run(store.aclose())
        again = {node for node in calls if calls.count(node) > 1}
        assert result.output == OUTPUT
        assert again.isdisjoint(saved)
        assert again <= set(before)

    assert rounds > 10


def test_a_cancel_at_every_turn_of_the_loop_without_threads() -> None:
    steps_on_loop = pipeline(a >> (c.named("b") | c) >> join, name="flow")

    async def main(turns: int) -> tuple[bool, set[str], list[str], Any]:
        calls.clear()
        store = InMemoryStateStore()
        task = asyncio.create_task(arun(steps_on_loop, run_id="r", store=store, value="x"))
        for _ in range(turns):
            await asyncio.sleep(0)
        early = task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        stored = await store.load("r")
        saved = set() if stored is None else set(stored.order)
        before = list(calls)
        result = await arun(steps_on_loop, run_id="r", store=store, value="x")
        return early, saved, before, result.output

    turns = 0
    while True:
        early, saved, before, output = asyncio.run(main(turns))
        if not early:
            break
        assert output == "c(a(x))+c(a(x))"
        again = calls[len(before) :]
        assert ("a" in again) == ("a" not in saved)
        assert again.count("c") == len({"b", "c"} - saved)
        turns += 1

    assert turns > 5


def test_a_second_cancel_does_not_leave_a_body_running_behind() -> None:
    ended: list[str] = []
    began, gate = threading.Event(), threading.Event()

    @agent
    def stubborn(value: str) -> str:
        began.set()
        gate.wait(20)
        ended.append("body")
        return value

    async def main(target: Any) -> bool:
        began.clear()
        gate.clear()
        task = asyncio.create_task(arun(target, store="memory://", value="x"))
        while not began.is_set():
            await asyncio.sleep(0.001)
        for _ in range(3):
            task.cancel()
            for _ in range(5):
                await asyncio.sleep(0)
        early = task.done()
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return early

    for target in (stubborn, stubborn | a, pipeline(stubborn >> a)):
        ended.clear()
        calls.clear()
        assert asyncio.run(main(target)) is False
        assert ended == ["body"]


def test_the_loop_stays_responsive_while_a_cancelled_body_ends() -> None:
    began, gate = threading.Event(), threading.Event()

    @agent
    def needs_the_loop(value: str) -> str:
        began.set()
        gate.wait(20)
        return value

    async def main() -> None:
        task = asyncio.create_task(arun(needs_the_loop, store="memory://", value="x"))
        while not began.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, gate.set)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert gate.is_set()


def test_a_cancelled_save_has_landed_or_never_will(tmp_path: Path) -> None:
    async def main(cancel_after: int) -> None:
        store = SQLiteStateStore(tmp_path / f"{cancel_after}.db")
        ctx = await store.load_or_create("r", {})
        ctx.checkpoint("old", 1)
        save = asyncio.create_task(store.save("r", ctx))
        for _ in range(cancel_after):
            await asyncio.sleep(0)
        save.cancel()
        await asyncio.gather(save, return_exceptions=True)

        fresh = await store.load("r")
        assert fresh is not None
        fresh.checkpoint("new", 2)
        await store.save("r", fresh)
        last = await store.load("r")

        assert last is not None
        assert last.order == [*(["old"] if fresh.order[0] == "old" else []), "new"]
        assert last.revision == fresh.revision
        await store.aclose()

    for cancel_after in range(6):
        asyncio.run(main(cancel_after))


def test_a_cancelled_call_of_a_plain_store_is_waited_for() -> None:
    began, gate, landed = threading.Event(), threading.Event(), list[str]()

    class Plain:
        def load_or_create(self, run_id: str, inputs: Any) -> Any:
            return {"run_id": run_id, "inputs": inputs, "completed": {}, "order": []}

        def save(self, run_id: str, ctx: Any) -> None:
            began.set()
            gate.wait(20)
            landed.append(run_id)

        def delete(self, run_id: str) -> None: ...

    async def main() -> bool:
        task = asyncio.create_task(arun(a, run_id="r", store=Plain(), value="x"))
        while not began.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        early = task.done()
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return early

    assert asyncio.run(main()) is False
    assert landed == ["r"]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("where", ["sync", "async"])
def test_a_body_that_ends_the_process_gets_through(kind: type[BaseException], where: str, tmp_path: Path) -> None:
    ends = [True]

    def end(text: str) -> str:
        if ends.pop():
            ends.append(False)
            raise kind("3")
        return text

    async def end_async(text: str) -> str:
        return end(text)

    store = SQLiteStateStore(tmp_path / "runs.db")
    flow = a >> agent(end if where == "sync" else end_async).named("end") >> c
    with pytest.raises(kind):
        run(flow, run_id="r", store=store, value="x")

    assert resume(flow, "r", store=store).output == "c(a(x))"
    assert calls == ["a", "c"]


INTERRUPTED = """
import sys, threading
from n00dles import SQLiteStateStore, agent, arun, resume, run, pipeline
import asyncio

@agent
def a(value: str) -> str:
    print("a", flush=True)
    return value

@agent
def sync(text: str) -> str:
    print("waiting", flush=True)
    sys.stdin.readline()
    print("body ended", flush=True)
    return text

@agent
async def asynchronous(text: str) -> str:
    print("waiting", flush=True)
    await asyncio.Event().wait()
    return text

@agent
def after(text: str) -> str:
    print("after", flush=True)
    return text

kind = {"sync": sync, "async": asynchronous}[sys.argv[1]]
try:
    run(pipeline(a >> kind >> after, name="p"), run_id="r", store="sqlite:///runs.db", value="x")
except KeyboardInterrupt:
    names = [thread.name for thread in threading.enumerate()]
    print("interrupted", [name for name in names if name.startswith("n00dles-node")], flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("kind", ["async", "sync"])
def test_ctrl_c_leaves_the_last_checkpoint_and_no_thread(kind: str, tmp_path: Path) -> None:
    child = start(INTERRUPTED, kind, cwd=tmp_path)
    assert child.stdout is not None
    assert child.stdin is not None
    assert [child.stdout.readline().strip() for _ in range(2)] == ["a", "waiting"]
    child.send_signal(signal.SIGINT)
    if kind == "sync":
        child.stdin.write("\\n")
        child.stdin.flush()

    out = finish(child)

    assert out.splitlines() == [*(["body ended"] if kind == "sync" else []), "interrupted []"]
    stored = asyncio.run(SQLiteStateStore(tmp_path / "runs.db").load("r"))
    assert stored is not None
    # A sync body cannot be interrupted, so it is waited for, and what it returned was paid for.
    assert stored.order == (["a", "sync"] if kind == "sync" else ["a"])


def test_a_run_that_is_cancelled_ends_as_cancelled_and_resumes_in_the_same_loop() -> None:
    async def main() -> Any:
        store: StateStore = InMemoryStateStore()
        reached = asyncio.Event()

        @agent
        async def waits(text: str) -> str:
            calls.append("waits")
            if calls.count("waits") == 1:
                reached.set()
                await asyncio.Event().wait()
            return text

        task = asyncio.create_task(arun(a >> waits, run_id="r", store=store, value="x"))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
        return await aresume(a >> waits, "r", store=store)

    assert asyncio.run(main()).output == "a(x)"
    assert calls == ["a", "waits", "waits"]
