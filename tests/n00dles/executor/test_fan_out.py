"""A fan-out: members run at once, share saves, and a failing one takes nothing away from the others."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from n00dles import (
    Agent,
    InMemoryStateStore,
    PipelineFailure,
    SQLiteStateStore,
    agent,
    aresume,
    arun,
    branch,
    parallel,
    pipeline,
    resume,
    run,
)
from n00dles.events import CheckpointSaved, Event, GroupJoined, NodeStarted
from tests.n00dles.stores_with_faults import GatedStore

calls: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    calls.clear()


def node(name: str) -> Agent:
    @agent(retry=1)
    async def body(value: str) -> str:
        calls.append(name)
        return f"{name}({value})"

    return body.named(name)


def failing(name: str) -> Agent:
    @agent(retry=1)
    async def body(value: str) -> str:
        calls.append(name)
        raise RuntimeError(f"no luck in {name}")

    return body.named(name)


A, B, C, D = (node(name) for name in "abcd")


@agent
def join(b: str, c: str) -> str:
    calls.append("join")
    return f"{b}+{c}"


def test_the_output_of_a_fan_out_is_a_dict_by_member_in_the_order_of_the_pipeline() -> None:
    result = run(A >> (C | B), store="memory://", value="x")

    assert list(result.output.items()) == [("c", "c(a(x))"), ("b", "b(a(x))")]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_members_run_at_the_same_time(kind: str) -> None:
    gate, barrier = asyncio.Barrier(3), threading.Barrier(3)

    @agent
    async def async_member(value: str) -> str:
        await gate.wait()
        return value

    @agent
    def sync_member(value: str) -> str:
        barrier.wait(10)
        return value

    member = async_member if kind == "async" else sync_member
    group = member.named("one") | member.named("two") | member.named("three")

    assert run(group, store="memory://", value="x").output == {"one": "x", "two": "x", "three": "x"}


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
def test_at_most_so_many_members_run_at_a_time(limit: int) -> None:
    running, most = 0, 0

    @agent
    async def member(value: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(3):
            await asyncio.sleep(0)
        running -= 1
        return value

    group = parallel(*(member.named(f"m{n}") for n in range(5)), max_concurrency=limit)

    assert len(run(group, store="memory://", value="x").output) == 5
    assert most == min(limit, 5)


def test_more_sync_members_than_a_default_pool_has_threads_run_at_the_same_time() -> None:
    barrier = threading.Barrier(60)

    @agent
    def member(value: str) -> int:
        return barrier.wait(20)

    result = run(parallel(*(member.named(f"m{n}") for n in range(60))), store="memory://", value="x")

    assert sorted(result.output.values()) == list(range(60))


def test_members_that_finish_while_a_save_is_in_flight_share_the_next_one() -> None:
    async def main() -> list[tuple[str, ...]]:
        store = GatedStore()
        ready = asyncio.Event()

        @agent
        async def first(value: str) -> str:
            return value

        @agent
        async def later(value: str) -> str:
            await ready.wait()
            return value

        group = parallel(first, *(later.named(f"later{n}") for n in range(4)))
        task = asyncio.create_task(arun(group, store=store, value="x"))
        await store.entered.wait()
        ready.set()
        for _ in range(20):
            await asyncio.sleep(0)
        store.gate.set()
        await task
        return store.saves

    saves = asyncio.run(main())

    assert saves[0] == ("first",)
    assert sorted(saves[1]) == ["later0", "later1", "later2", "later3"]
    assert saves[2:] in ([], [()])  # the last one may only say that the run is finished


def test_what_follows_starts_when_every_member_is_in_the_store(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    found: list[list[str]] = []

    @agent
    async def look(b: str, c: str) -> str:
        stored = await SQLiteStateStore(path).load("r")
        assert stored is not None
        found.append(sorted(stored.order))
        return "done"

    run(A >> (B | C) >> look, run_id="r", store=SQLiteStateStore(path), value="x")

    assert found == [["a", "b", "c"]]


def test_a_joined_group_is_reported_once_with_its_members() -> None:
    seen: list[Event] = []

    run(A >> (B | C) >> join, run_id="r", store="memory://", value="x", observers=[seen.append])

    assert [event for event in seen if isinstance(event, GroupJoined)] == [
        GroupJoined(run_id="r", group="parallel[b,c]", members=("b", "c"))
    ]
    names = [event.name for event in seen]
    assert names[names.index("group_joined") - 1] == "checkpoint_saved"
    assert names[names.index("group_joined") + 1] == "node_started"


def test_a_failing_member_lets_the_running_ones_finish_and_keeps_what_they_gave() -> None:
    async def main() -> tuple[PipelineFailure, Any]:
        started, failed = asyncio.Event(), asyncio.Event()
        store = InMemoryStateStore()

        @agent(retry=1)
        async def fails(value: str) -> str:
            await started.wait()
            failed.set()
            raise RuntimeError("no luck")

        @agent
        async def slow(value: str) -> str:
            started.set()
            await failed.wait()
            for _ in range(10):
                await asyncio.sleep(0)
            calls.append("slow finished")
            return "kept"

        with pytest.raises(PipelineFailure) as caught:
            await arun(fails | slow, run_id="r", store=store, value="x")
        return caught.value, await store.load("r")

    failure, stored = asyncio.run(main())

    assert failure.node_name == "fails"
    assert calls == ["slow finished"]
    assert (stored.completed, stored.status) == ({"slow": "kept"}, "failed")


def test_a_failing_member_lets_no_other_start() -> None:
    group = parallel(failing("first"), *(node(f"m{n}") for n in range(5)), max_concurrency=1)

    with pytest.raises(PipelineFailure) as caught:
        run(group, store="memory://", value="x")

    assert caught.value.node_name == "first"
    assert calls == ["first"]


def test_several_failures_are_all_told() -> None:
    gate = asyncio.Barrier(2)

    @agent(retry=1)
    async def fails(value: str) -> str:
        await gate.wait()
        raise RuntimeError("no luck")

    with pytest.raises(PipelineFailure) as caught:
        run(fails.named("one") | fails.named("two") | B, store="memory://", value="x")

    assert caught.value.node_name == "one"
    assert ["failed at node 'two': RuntimeError: no luck" in note for note in caught.value.__notes__] == [True]


def test_a_resume_calls_only_unfinished_members_and_joins_once() -> None:
    fails = [True]

    @agent(retry=1)
    async def fragile(value: str) -> str:
        calls.append("c")
        if fails.pop():
            fails.append(False)
            raise RuntimeError("no luck")
        return f"c({value})"

    store = InMemoryStateStore()
    flow = pipeline(A >> (B | fragile.named("c")) >> join)
    with pytest.raises(PipelineFailure):
        run(flow, run_id="r", store=store, value="x")

    result = resume(flow, "r", store=store)

    assert result.output == "b(a(x))+c(a(x))"
    assert sorted(calls) == ["a", "b", "c", "c", "join"]
    assert calls[-2:] == ["c", "join"]


def test_a_limited_nested_group_that_was_cut_short_by_its_neighbour_resumes() -> None:
    async def main() -> tuple[Any, Any]:
        fail = [True]
        store = InMemoryStateStore()
        started = asyncio.Event()

        @agent(retry=1)
        async def fragile(value: str) -> str:
            if not fail:
                return value
            await started.wait()
            fail.clear()
            raise RuntimeError("no luck")

        @agent
        async def inner(value: str) -> str:
            calls.append("inner")
            started.set()
            for _ in range(20):
                await asyncio.sleep(0)
            return value

        nested = parallel(inner.named("i1"), inner.named("i2"), inner.named("i3"), max_concurrency=1)
        flow = pipeline(parallel(fragile, nested), name="flow")
        with pytest.raises(PipelineFailure) as caught:
            await arun(flow, run_id="r", store=store, value="x")
        return caught.value, await aresume(flow, "r", store=store)

    failure, result = asyncio.run(main())

    assert (failure.node_name, hasattr(failure, "__notes__")) == ("fragile", False)
    assert result.output == {"fragile": "x", "parallel[i1,i2,i3]": {"i1": "x", "i2": "x", "i3": "x"}}
    assert calls == ["inner"] * 3


def test_chains_branches_and_groups_are_members_too() -> None:
    routed = pipeline(node("router") >> branch(default=B, router=C), name="routed")
    group = parallel(A >> D, routed, node("e") | node("f"))

    found = run(group, store="memory://", value="x").output

    assert found == {
        "a_d": "d(a(x))",
        "routed": "b(router(x))",
        "parallel[e,f]": {"e": "e(x)", "f": "f(x)"},
    }


def test_the_order_of_completion_is_kept() -> None:
    async def main() -> Any:
        b_done = asyncio.Event()

        @agent
        async def slow(value: str) -> str:
            await b_done.wait()
            return value

        def watch(event: Event) -> None:
            if isinstance(event, CheckpointSaved) and "b" in event.nodes:
                b_done.set()

        store = InMemoryStateStore()
        await arun(slow.named("a") | B, run_id="r", store=store, value="x", observers=[watch])
        return await store.load("r")

    stored = asyncio.run(main())

    assert stored.order == ["b", "a"]


def test_each_member_gets_its_own_copy_of_the_previous_output() -> None:
    @agent
    async def make(value: str) -> dict[str, list[str]]:
        return {"list": [value]}

    @agent
    async def spoil(value: dict[str, list[str]]) -> int:
        value["list"].append("more")
        return len(value["list"])

    found = run(make >> (spoil.named("one") | spoil.named("two")), store="memory://", value="x").output

    assert found == {"one": 2, "two": 2}


def test_a_finished_fan_out_calls_and_saves_nothing_when_resumed() -> None:
    store = InMemoryStateStore()
    run(A >> (B | C), run_id="r", store=store, value="x")
    seen: list[Event] = []

    result = resume(A >> (B | C), "r", store=store, observers=[seen.append])

    assert result.output == {"b": "b(a(x))", "c": "c(a(x))"}
    assert [event for event in seen if isinstance(event, NodeStarted | CheckpointSaved)] == []
