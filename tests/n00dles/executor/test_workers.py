"""Two executors on one run, past any lease: one goes on, the other is told so and writes nothing."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from n00dles import (
    InMemoryStateStore,
    RunLockedError,
    SQLiteStateStore,
    StaleContextError,
    StateStore,
    agent,
    aresume,
    arun,
    pipeline,
    run,
)
from tests.n00dles.unleased import UnleasedStore


@pytest.fixture(params=["memory", "sqlite", "two objects"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[StateStore, StateStore]:
    if request.param == "two objects":
        return SQLiteStateStore(tmp_path / "runs.db"), SQLiteStateStore(tmp_path / "runs.db")
    store = InMemoryStateStore() if request.param == "memory" else SQLiteStateStore(tmp_path / "runs.db")
    return store, store


def test_the_one_that_was_overtaken_is_refused_and_calls_nothing_more(stores: tuple[Any, Any]) -> None:
    async def main() -> tuple[Any, Any]:
        reached, gate = asyncio.Event(), asyncio.Event()
        calls: list[str] = []

        def flow(worker: str) -> Any:
            @agent
            async def a(value: str) -> str:
                calls.append(f"a by {worker}")
                return value

            @agent
            async def b(value: str) -> str:
                calls.append(f"b by {worker}")
                if worker == "slow":
                    reached.set()
                    await gate.wait()
                return f"{value} by {worker}"

            @agent
            async def c(value: str) -> str:
                calls.append(f"c by {worker}")
                return value

            return pipeline(a >> b >> c, name="flow")

        slow = asyncio.create_task(arun(flow("slow"), run_id="r", store=UnleasedStore(stores[0]), value="x"))
        await reached.wait()
        result = await aresume(flow("quick"), "r", store=UnleasedStore(stores[1]))
        gate.set()
        with pytest.raises(StaleContextError, match="another worker has gone on with it"):
            await slow
        return result, (calls, await stores[0].load("r"))

    result, (calls, stored) = asyncio.run(main())

    assert result.output == "x by quick"
    assert calls == ["a by slow", "b by slow", "b by quick", "c by quick"]
    assert (stored.completed["b"], stored.status) == ("x by quick", "finished")


def test_a_run_that_was_deleted_meanwhile_is_not_brought_back(stores: tuple[Any, Any]) -> None:
    async def main() -> Any:
        reached, gate = asyncio.Event(), asyncio.Event()

        @agent
        async def slow(value: str) -> str:
            reached.set()
            await gate.wait()
            return value

        task = asyncio.create_task(arun(slow, run_id="r", store=stores[0], value="x"))
        await reached.wait()
        await stores[1].delete("r")
        gate.set()
        with pytest.raises(StaleContextError, match="was deleted after"):
            await task
        return await stores[1].load("r")

    assert asyncio.run(main()) is None


def test_a_run_that_was_deleted_and_started_anew_meanwhile_keeps_the_new_one(stores: tuple[Any, Any]) -> None:
    async def main() -> Any:
        reached, gate = asyncio.Event(), asyncio.Event()

        @agent
        async def slow(value: str) -> str:
            if value == "old":
                reached.set()
                await gate.wait()
            return value

        task = asyncio.create_task(arun(slow, run_id="r", store=stores[0], value="old"))
        await reached.wait()
        await stores[1].delete("r")
        await arun(slow, run_id="r", store=stores[1], value="new")
        gate.set()
        with pytest.raises(StaleContextError, match="another run of this id"):
            await task
        return await stores[1].load("r")

    stored = asyncio.run(main())

    assert (stored.inputs, stored.completed) == ({"value": "new"}, {"slow": "new"})


def test_of_many_threads_on_one_run_one_finishes_it_and_the_others_are_told(tmp_path: Path) -> None:
    workers = 6
    barrier = threading.Barrier(workers)
    outcomes: list[Any] = []

    @agent
    async def a(value: str) -> str:
        await asyncio.sleep(0)
        return f"a({value})"

    @agent
    async def b(value: str) -> str:
        return f"b({value})"

    flow = pipeline(a >> b, name="flow")
    shared = SQLiteStateStore(tmp_path / "runs.db")

    def work(number: int) -> None:
        store = shared if number % 2 else SQLiteStateStore(tmp_path / "runs.db")
        barrier.wait(20)
        try:
            outcomes.append(run(flow, run_id="r", store=store, value="x").output)
        except (RunLockedError, StaleContextError) as error:
            outcomes.append(error)
        finally:
            if store is not shared:
                asyncio.run(store.aclose())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    asyncio.run(shared.aclose())
    finished = [outcome for outcome in outcomes if outcome == "b(a(x))"]
    assert len(outcomes) == workers
    assert len(finished) >= 1
    assert all(
        isinstance(outcome, RunLockedError | StaleContextError) for outcome in outcomes if outcome not in finished
    )
    assert run(flow, run_id="r", store=SQLiteStateStore(tmp_path / "runs.db"), value="x").output == "b(a(x))"
