"""`frozen_time`: what follows the held clock, and what must not."""

from __future__ import annotations

import asyncio
import datetime as dt
import pickle
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import (
    InMemoryStateStore,
    PipelineFailure,
    RunLockedError,
    SQLiteStateStore,
    StateStoreError,
    agent,
    arun,
    asubmit,
    pipeline,
    run,
)
from n00dles.worker import Note, RunWorker
from n00dles_testing import FrozenTime
from n00dles_testing.fixtures import unpatched
from n00dles_testing.frozen_time import held_clock

pytest_plugins = ["pytester"]

DAY = 86_400.0
MOMENT = datetime(2030, 1, 31, 12, tzinfo=UTC)
STAMP = MOMENT.timestamp()


def clocks() -> list[float]:
    return [time.time(), time.time_ns() / 1e9, datetime.now(UTC).timestamp()]


@agent
def sync_clock(text: str) -> list[float]:
    return clocks()


@agent
async def async_clock(text: str) -> list[float]:
    return clocks()


@agent
async def shout(text: str) -> str:
    await asyncio.sleep(0.001)
    return await asyncio.wait_for(asyncio.to_thread(text.upper), timeout=5)


flow = pipeline(shout, name="flow")


def test_the_clock_moves_only_when_it_is_told_to(frozen_time: FrozenTime) -> None:
    begin = frozen_time.now
    assert time.monotonic() == time.monotonic()
    assert abs(begin.timestamp() - time.time()) < 1e-5

    frozen_time.tick()
    frozen_time.tick(0.5)
    assert frozen_time.now == begin + timedelta(seconds=1.5)
    frozen_time.tick(-3600)
    assert frozen_time.now == begin - timedelta(seconds=3598.5)

    for moment in (MOMENT, MOMENT.replace(tzinfo=None), "2030-01-31T12:00", "2030-01-31T13:00:00+01:00"):
        frozen_time.move_to(moment)
        assert frozen_time.now == MOMENT
        assert time.time() == STAMP
    frozen_time.move_to("2030-02-01")
    assert frozen_time.now == datetime(2030, 2, 1, tzinfo=UTC)
    assert repr(frozen_time) == "<frozen at 2030-02-01T00:00:00+00:00>"
    with pytest.raises(ValueError, match=r"move_to\('tomorrow'\).*ISO"):
        frozen_time.move_to("tomorrow")


@pytest.mark.parametrize("node", [sync_clock, async_clock], ids=["sync", "async"])
def test_a_body_sees_the_held_clock_and_so_does_the_record(node: Any, frozen_time: FrozenTime) -> None:
    frozen_time.move_to(MOMENT)
    store = InMemoryStateStore()

    result = run(node, text="x", store=store)

    assert result.output == pytest.approx([STAMP] * 3, abs=1e-6)
    context = asyncio.run(store.load(result.run_id))
    assert context is not None
    assert (context.created_at, context.updated_at) == (STAMP, STAMP)
    assert (result.duration_ms, result.agent_traces[0].duration_ms) == (0.0, 0.0)


def test_a_coroutine_that_the_event_loop_calls_itself_sees_it_too(frozen_time: FrozenTime) -> None:
    frozen_time.move_to(MOMENT)

    async def main() -> list[float]:
        return clocks()

    async def thread() -> list[float]:
        return await asyncio.to_thread(clocks)

    assert asyncio.run(main()) == pytest.approx([STAMP] * 3, abs=1e-6)
    assert asyncio.run(thread()) == pytest.approx([STAMP] * 3, abs=1e-6)


def test_a_node_lasts_as_long_as_the_clock_was_moved(frozen_time: FrozenTime) -> None:
    @agent
    async def work(text: str) -> str:
        frozen_time.tick(2.5)
        return text

    assert run(work, text="x", store="memory://").agent_traces[0].duration_ms == pytest.approx(2500)


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
def test_a_lease_ends_when_the_clock_has_passed_it(kind: str, tmp_path: Path, frozen_time: FrozenTime) -> None:
    store: Any = SQLiteStateStore(tmp_path / "runs.db") if kind == "sqlite" else InMemoryStateStore()

    async def main() -> None:
        await store.acquire("r", "first", 30.0)
        frozen_time.tick(29)
        with pytest.raises(RunLockedError, match="held by first"):
            await arun(flow, run_id="r", store=store, text="x")
        frozen_time.tick(2)
        assert (await arun(flow, run_id="r", store=store, text="x")).output == "X"

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
def test_prune_removes_what_is_older_by_the_held_clock(kind: str, tmp_path: Path, frozen_time: FrozenTime) -> None:
    store: Any = SQLiteStateStore(tmp_path / "runs.db") if kind == "sqlite" else InMemoryStateStore()
    frozen_time.move_to("2030-01-01")
    run(flow, run_id="old", store=store, text="x")
    frozen_time.move_to("2030-01-20")
    run(flow, run_id="new", store=store, text="x")

    async def pruned() -> list[str]:
        return list(await store.prune(older_than=30 * DAY))

    frozen_time.move_to("2030-01-30")
    assert asyncio.run(pruned()) == []
    frozen_time.move_to("2030-02-01")
    assert asyncio.run(pruned()) == ["old"]


def test_timeouts_of_nodes_and_of_runs_are_real(frozen_time: FrozenTime) -> None:
    @agent(timeout=0.02, retry=1)
    async def hang(text: str) -> str:
        await asyncio.Event().wait()
        return text

    with pytest.raises(PipelineFailure, match=r"timeout of 0\.02 s"):
        run(hang, text="x", store="memory://")
    with pytest.raises(TimeoutError, match=r"not done within 0\.02 s"):
        run(pipeline(hang, timeout=60), text="x", store="memory://", timeout=0.02)


def test_waiting_for_a_child_process_has_a_real_timeout(frozen_time: FrozenTime) -> None:
    import subprocess

    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(["sleep", "60"], timeout=0.02, check=False)


class DownOnce(InMemoryStateStore):
    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    async def list_runs(self, **options: Any) -> Any:
        self.looks += 1
        if self.looks == 1:
            raise StateStoreError("the server is down")
        return await super().list_runs(**options)


def test_a_worker_tries_again_when_the_clock_has_passed_its_back_off(
    frozen_time: FrozenTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("n00dles.worker._SHORTEST_FAULT", 0.02)
    store, notes = DownOnce(), list[str]()

    def tell(note: Note) -> None:
        notes.append(note.kind)
        if note.kind == "store fault":
            asyncio.get_running_loop().call_soon(frozen_time.tick, 1.0)

    async def main() -> None:
        await asubmit(flow, run_id="r", store=store, text="x")
        async with asyncio.timeout(10):
            await RunWorker({"flow": flow}, store, tell, until_idle=True).work()

    asyncio.run(main())

    assert notes == ["started", "store fault", "store is back", "claimed", "finished", "ended"]


class Appointment(BaseModel):
    at: dt.datetime
    on: dt.date


def test_models_may_be_defined_and_annotations_resolved_while_the_clock_is_held() -> None:
    def made() -> Any:
        class Meeting(BaseModel):
            at: datetime
            on: date

        @agent
        def meet(meeting: Meeting) -> date:
            return meeting.on.isoformat()  # type: ignore[return-value]

        return pipeline(meet, name="meet")

    with held_clock() as clock:
        held = made()
        clock.move_to(MOMENT)
        inputs = {"at": datetime.now(UTC).isoformat(), "on": date.today().isoformat()}
        signature = held.signature()
        result = run(held, meeting=inputs, store="memory://")
        kept = pickle.dumps((datetime.now(UTC), date.today()))

    assert result.output == date(2030, 1, 31)
    assert signature == made().signature() == ["meet(meeting: Meeting{at: datetime, on: date}) -> date"]
    assert run(held, meeting=inputs, store="memory://").output == date(2030, 1, 31)
    moment, day = pickle.loads(kept)
    assert (type(moment), moment, type(day), day) == (datetime, MOMENT, date, date(2030, 1, 31))


def test_the_clock_is_real_again_afterwards() -> None:
    with held_clock() as clock:
        clock.move_to("2100-01-01")

    assert datetime.now(UTC).year < 2100
    assert datetime is dt.datetime
    assert dt.datetime.__name__ == "datetime"
    assert time.monotonic() < 1e9


def test_durations_of_tests_stay_real(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile("def test_later(frozen_time):\n    frozen_time.move_to('2100-01-01')\n")

    items = pytester.inline_run("-p", "no:cacheprovider", "-p", "no:randomly")

    items.assertoutcome(passed=1)
    assert all(0 <= report.duration < 60 for report in items.getreports("pytest_runtest_logreport"))


def test_a_crash_test_of_other_processes_is_told_that_their_clock_is_real() -> None:
    def told(mode: str, fixture: str) -> str:
        report: Any = SimpleNamespace(mode=mode)
        return unpatched([report], [fixture, "crash_safety"])

    assert told("fork", "frozen_time").startswith("it uses frozen_time, but the processes that are killed (mode: fork)")
    assert told("spawn", "no_sleep").startswith("it uses no_sleep, but")
    assert told("in-process", "frozen_time") == ""
