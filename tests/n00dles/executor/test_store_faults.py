"""A store fault is not a node fault: no second call, no fallback, and the output is not lost."""

from __future__ import annotations

import asyncio
from itertools import repeat
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from n00dles import (
    Agent,
    InMemoryStateStore,
    InputsChangedError,
    PipelineFailure,
    RetryPolicy,
    RunLockedError,
    SQLiteStateStore,
    StaleContextError,
    StateStore,
    StateStoreError,
    agent,
    aresume,
    arun,
    checkpointing,
    pipeline,
    resume,
    run,
)
from n00dles.checkpointing import SAVE_ATTEMPTS
from n00dles.events import Event, NodeStarted
from n00dles.executor import MAX_STALLED_LIVES
from tests.n00dles.stores_with_faults import Fault, FaultyStore

calls: list[str] = []

NO_FAULT: Fault = "none"


@pytest.fixture(autouse=True)
def _fresh() -> None:
    calls.clear()


def node(name: str) -> Agent:
    @agent(fallback=FALLBACK, retry=RetryPolicy(5, base_delay=0))
    async def body(value: str) -> str:
        calls.append(name)
        return f"{name}({value})"

    return body.named(name)


@agent
async def never(value: str) -> str:
    calls.append("fallback")
    return "fallback"


FALLBACK = never
A, B, C = node("a"), node("b"), node("c")
FLOW = pipeline(A >> B >> C, name="flow")


@pytest.fixture(params=["memory", "sqlite"])
def inner(request: pytest.FixtureRequest, tmp_path: Path) -> StateStore:
    return InMemoryStateStore() if request.param == "memory" else SQLiteStateStore(tmp_path / "runs.db")


def stored(store: Any) -> Any:
    return asyncio.run(store.load("r"))


@pytest.mark.parametrize("fault", ["before", "after"])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_one_fault_at_any_save_is_not_noticed(inner: StateStore, fault: Fault, position: int) -> None:
    faults: list[Fault] = [*repeat(NO_FAULT, position), fault]
    store = FaultyStore(faults, inner=inner)

    result = run(FLOW, run_id="r", store=store, value="x")

    assert result.output == "c(b(a(x)))"
    assert calls == ["a", "b", "c"]
    assert stored(inner).completed == {"a": "a(x)", "b": "b(a(x))", "c": "c(b(a(x)))"}
    assert [trace.attempts for trace in result.agent_traces] == [1, 1, 1]


def test_a_reply_that_is_lost_twice_changes_nothing_twice(inner: StateStore) -> None:
    store = FaultyStore(["after", "after"], inner=inner)

    run(FLOW, run_id="r", store=store, value="x")

    assert calls == ["a", "b", "c"]
    assert stored(inner).order == ["a", "b", "c"]
    assert stored(inner).status == "finished"


@pytest.mark.parametrize("fault", ["before", "after"])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_lasting_fault_is_an_error_of_the_store_and_a_resume_uses_what_was_returned(
    inner: StateStore, fault: Fault, position: int
) -> None:
    store = FaultyStore(repeat(NO_FAULT, position), then=fault, inner=inner)

    with pytest.raises(StateStoreError, match=r"OSError: no space left.*resume\(pipeline, 'r'\)") as caught:
        run(FLOW, run_id="r", store=store, value="x")
    called = list(calls)
    store.then = "none"
    result = resume(FLOW, "r", store=store)

    assert (caught.value.run_id, isinstance(caught.value.__cause__, OSError)) == ("r", True)
    assert called == ["a", "b", "c"][: position + 1]
    assert len(store.saves) >= position + SAVE_ATTEMPTS
    assert calls == ["a", "b", "c"]
    assert result.output == "c(b(a(x)))"
    assert stored(inner).order == ["a", "b", "c"]


def test_what_was_held_is_saved_before_anything_else_starts(inner: StateStore) -> None:
    store = FaultyStore(then="before", inner=inner)
    with pytest.raises(StateStoreError):
        run(FLOW, run_id="r", store=store, value="x")
    store.then = "none"
    seen: list[Event] = []

    resume(FLOW, "r", store=store, observers=[seen.append])

    names = [event.name for event in seen]
    saved = seen[names.index("checkpoint_saved")]
    assert names.index("checkpoint_saved") < names.index("node_started")
    assert saved.nodes == ("a",)  # type: ignore[attr-defined]


def test_the_output_of_the_last_node_is_saved_by_the_resume(inner: StateStore) -> None:
    store = FaultyStore(["none", "none"], then="before", inner=inner)
    with pytest.raises(StateStoreError):
        run(FLOW, run_id="r", store=store, value="x")
    store.then = "none"

    resume(FLOW, "r", store=store)

    found = stored(inner)
    assert (found.order, found.status) == (["a", "b", "c"], "finished")


@pytest.mark.parametrize("life", ["first", "second"])
def test_a_store_that_stays_down_is_never_taken_for_a_deadly_node(inner: StateStore, life: str) -> None:
    store = FaultyStore(then="before", inner=inner)
    if life == "second":
        asyncio.run(inner.load_or_create("r", {"value": "x"}))
        store.faults = ["none"]
    with pytest.raises(StateStoreError):
        run(FLOW, run_id="r", store=store, value="x")

    with mock.patch.object(checkpointing, "_FIRST_DELAY", 0):
        for _ in range(MAX_STALLED_LIVES + 2):
            with pytest.raises(StateStoreError):
                resume(FLOW, "r", store=store)
    store.then = "none"

    assert calls == ["a"]
    assert resume(FLOW, "r", store=store).output == "c(b(a(x)))"
    assert calls == ["a", "b", "c"]


def test_a_url_names_the_same_store_in_the_next_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    down = [True]
    save = SQLiteStateStore.save

    async def failing_save(self: SQLiteStateStore, run_id: str, ctx: Any) -> None:
        if down:
            raise OSError("no space left")
        await save(self, run_id, ctx)

    monkeypatch.setattr(SQLiteStateStore, "save", failing_save)
    with pytest.raises(StateStoreError):
        run(FLOW, run_id="r", store=url, value="x")
    down.clear()

    result = resume(FLOW, "r", store=f"sqlite:///{tmp_path}/../{tmp_path.name}/runs.db")

    assert result.output == "c(b(a(x)))"
    assert calls == ["a", "b", "c"]


def test_a_refused_resume_does_not_throw_away_what_is_held(inner: StateStore) -> None:
    store = FaultyStore(then="before", inner=inner)
    with pytest.raises(StateStoreError):
        run(FLOW, run_id="r", store=store, value="x")
    with pytest.raises(InputsChangedError):
        run(FLOW, run_id="r", store=store, value="y")
    store.then = "none"

    resume(FLOW, "r", store=store)

    assert calls == ["a", "b", "c"]


class LeasedFaultyStore(FaultyStore):
    """Gives the leases of the store that is in it."""

    async def acquire(self, run_id: str, holder: str, ttl: float) -> Any:
        return await self.inner.acquire(run_id, holder, ttl)

    async def renew(self, lease: Any, ttl: float) -> Any:
        return await self.inner.renew(lease, ttl)

    async def release(self, lease: Any) -> None:
        await self.inner.release(lease)


def test_a_resume_while_another_worker_has_the_run_does_not_throw_away_what_is_held(inner: Any) -> None:
    store = LeasedFaultyStore(then="before", inner=inner)
    with pytest.raises(StateStoreError):
        run(FLOW, run_id="r", store=store, value="x")
    lease = asyncio.run(inner.acquire("r", "another worker", 60))
    for _ in range(2):
        with pytest.raises(RunLockedError):
            resume(FLOW, "r", store=store)
    asyncio.run(inner.release(lease))
    store.then = "none"

    resume(FLOW, "r", store=store)

    assert calls == ["a", "b", "c"]


def test_what_is_held_is_not_used_when_somebody_else_has_gone_on(inner: StateStore) -> None:
    store = FaultyStore(then="before", inner=inner)
    with pytest.raises(StateStoreError):
        run(FLOW, run_id="r", store=store, value="x")
    resume(FLOW, "r", store=inner)
    calls.clear()
    store.then = "none"

    result = resume(FLOW, "r", store=store)

    assert (result.output, calls) == ("c(b(a(x)))", [])


def test_what_is_held_is_not_used_for_a_new_run_of_the_same_id(inner: StateStore) -> None:
    store = FaultyStore(then="before", inner=inner)
    with pytest.raises(StateStoreError):
        run(FLOW, run_id="r", store=store, value="x")
    asyncio.run(inner.delete("r"))
    calls.clear()
    store.then = "none"

    run(FLOW, run_id="r", store=store, value="x")

    assert calls == ["a", "b", "c"]


def test_a_member_of_a_fan_out_whose_save_failed_is_not_called_again_though_another_member_failed_too() -> None:
    async def main() -> Any:
        fails = [True]
        store = FaultyStore(then="before")
        done = asyncio.Event()

        @agent(retry=1)
        async def fragile(value: str) -> str:
            await done.wait()
            if fails.pop():
                fails.append(False)
                raise RuntimeError("no luck")
            return value

        @agent
        async def paid(value: str) -> str:
            calls.append("paid")
            done.set()
            return value

        with pytest.raises((PipelineFailure, StateStoreError)):
            await arun(fragile | paid, run_id="r", store=store, value="x")
        store.then = "none"
        return await aresume(fragile | paid, "r", store=store)

    result = asyncio.run(main())

    assert result.output == {"fragile": "x", "paid": "x"}
    assert calls == ["paid"]


def test_a_refusal_that_is_final_is_not_tried_again() -> None:
    store = FaultyStore(then="before", error=lambda: StaleContextError("somebody else has gone on"))

    with pytest.raises(StaleContextError):
        run(FLOW, run_id="r", store=store, value="x")

    assert (len(store.saves), calls) == (1, ["a"])


def test_a_typed_error_of_the_store_comes_through_as_it_is() -> None:
    store = FaultyStore(then="before", error=lambda: StateStoreError("the server is away", run_id="r"))

    with pytest.raises(StateStoreError, match=r"^the server is away$"):
        run(FLOW, run_id="r", store=store, value="x")

    assert (len(store.saves), calls) == (SAVE_ATTEMPTS, ["a"])


def test_a_store_that_cannot_create_the_run_stops_it_before_any_call() -> None:
    class Broken(InMemoryStateStore):
        async def load_or_create(self, run_id: str, inputs: Any) -> Any:
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        run(FLOW, run_id="r", store=Broken(), value="x")

    assert calls == []


def test_a_failure_that_cannot_be_saved_is_still_the_nodes_failure() -> None:
    @agent(retry=1)
    async def broken(value: str) -> str:
        calls.append("broken")
        raise ValueError("no luck")

    store = FaultyStore(["none"], then="before")
    with pytest.raises(PipelineFailure) as caught:
        run(A >> broken, run_id="r", store=store, value="x")

    assert caught.value.node_name == "broken"
    assert ["that it failed could not be saved" in note for note in caught.value.__notes__] == [True]
    assert calls == ["a", "broken"]


def test_a_fault_while_an_attempt_is_noted_makes_no_further_attempt() -> None:
    @agent(retry=RetryPolicy(5, base_delay=0))
    async def broken(value: str) -> str:
        calls.append("broken")
        raise ValueError("no luck")

    store = FaultyStore(then="before")
    with pytest.raises(StateStoreError):
        run(broken, run_id="r", store=store, value="x")

    assert calls == ["broken"]


def test_a_save_that_waits_blocks_nobody_else() -> None:
    async def main() -> list[str]:
        finished: list[str] = []
        gate = asyncio.Event()

        class Slow(InMemoryStateStore):
            async def save(self, run_id: str, ctx: Any) -> None:
                if run_id == "slow":
                    await gate.wait()
                await super().save(run_id, ctx)

        store = Slow()

        async def one(run_id: str) -> None:
            await arun(FLOW, run_id=run_id, store=store, value="x")
            finished.append(run_id)

        slow = asyncio.create_task(one("slow"))
        await one("quick")
        gate.set()
        await slow
        return finished

    assert asyncio.run(main()) == ["quick", "slow"]


def test_the_events_of_a_save_that_is_tried_again_are_one_pair_and_its_faults() -> None:
    store = FaultyStore(["before", "after"])
    seen: list[Event] = []

    run(A, run_id="r", store=store, value="x", observers=[seen.append])

    assert [event.name for event in seen if not isinstance(event, NodeStarted)] == [
        "run_started",
        "node_returned",
        "checkpoint_saving",
        "checkpoint_failed",
        "checkpoint_failed",
        "checkpoint_saved",
        "run_finished",
    ]
