"""Generated pipelines that die at generated moments: same output, same arguments, nothing acknowledged called again."""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from n00dles import (
    Agent,
    InMemoryStateStore,
    Pipeline,
    RetryPolicy,
    SQLiteStateStore,
    StateStore,
    StateStoreError,
    arun,
    branch,
    checkpointing,
    parallel,
    pipeline,
)
from n00dles.events import CheckpointSaved, Event, NodeStarted
from n00dles.pipeline import Step
from tests.n00dles.stores_with_faults import Fault, FaultyStore

Shape = tuple[Any, ...]


class Death(BaseException):
    """Stands for the end of the process."""


leaves = st.tuples(st.just("node"), st.integers(0, 3), st.sampled_from(["async", "sync"]), st.integers(0, 1))


def composite(inner: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return (
        st.tuples(st.just("chain"), several, st.booleans())
        | st.tuples(st.just("fan-out"), several, st.none() | st.integers(1, 2))
        | st.tuples(st.just("branch"), several)
    )


shapes = st.recursive(leaves, composite, max_leaves=7)


@dataclass
class World:
    """What lies outside the process that dies: who was called with what, and what was acknowledged."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    repeated: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)


def build(shape: Shape, names: Iterator[int], world: World) -> Step:
    kind = shape[0]
    if kind == "node":
        return leaf(f"n{next(names)}", shape, world)
    steps = [build(inner, names, world) for inner in shape[1]]
    if kind == "chain":
        chain = steps[0]
        for step in steps[1:]:
            chain = chain >> step
        return pipeline(chain, name=f"p{next(names)}") if shape[2] else chain
    if kind == "fan-out":
        return parallel(*(wrapped(step, names) for step in steps), max_concurrency=shape[2])
    key = leaf(f"n{next(names)}", ("node", 0, "async", 0), world, answer="left")
    left, right, *rest = (wrapped(step, names) for step in steps)
    return pipeline(key >> branch(left=left, right=right, default=rest[0] if rest else None), name=f"p{next(names)}")


def wrapped(step: Step, names: Iterator[int]) -> Step:
    return pipeline(step, name=f"p{next(names)}")


def leaf(name: str, shape: Shape, world: World, answer: str | None = None) -> Agent:
    _, pauses, kind, failures = shape

    def answered(value: Any) -> Any:
        world.calls.append((name, json.dumps(value, sort_keys=True)))
        if name in world.acknowledged:
            world.repeated.append(name)
        if failures and name not in world.failed:
            world.failed.add(name)
            raise RuntimeError("no luck, once")
        return answer if answer is not None else {"by": name, "depth": 1 + depth(value)}

    def sync_body(value: Any) -> Any:
        return answered(value)

    async def async_body(value: Any) -> Any:
        for _ in range(pauses):
            await asyncio.sleep(0)
        return answered(value)

    return Agent(sync_body if kind == "sync" else async_body, retry=RetryPolicy(3, base_delay=0)).named(name)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return int(value["depth"]) if "depth" in value else max((depth(part) for part in value.values()), default=0)
    return 0


def whole(shape: Shape, world: World) -> Pipeline:
    return pipeline(build(shape, itertools.count(), world), name="generated")


async def lives(shape: Shape, store: StateStore, world: World, deaths: list[int]) -> Any:
    """Run until it is through, dying at the n-th event of each life; the last life is undisturbed."""
    for death in [*deaths, None]:
        events = itertools.count()

        def observe(event: Event, death: int | None = death, events: Iterator[int] = events) -> None:
            if isinstance(event, CheckpointSaved):
                world.acknowledged.update(event.nodes)
            if next(events) == death:
                raise Death

        flow = whole(shape, world)
        try:
            result = await arun(flow, run_id="r", store=store, observers=[observe], value={"depth": 0})
        except Death:
            assert asyncio.all_tasks() == {asyncio.current_task()}
            continue
        return result
    raise AssertionError("the undisturbed life did not end")


def outcome(shape: Shape, store: StateStore, deaths: list[int]) -> tuple[Any, World]:
    world = World()
    result = asyncio.run(lives(shape, store, world, deaths))
    return result.output, world


def check(shape: Shape, store: StateStore, deaths: list[int]) -> None:
    undisturbed, quiet = outcome(shape, InMemoryStateStore(), [])

    output, world = outcome(shape, store, deaths)

    note(f"called {world.calls}, acknowledged {world.acknowledged}")
    assert world.repeated == []
    assert output == undisturbed
    assert set(world.calls) == set(quiet.calls)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shapes, st.lists(st.integers(0, 25), max_size=4))
def test_a_generated_pipeline_survives_generated_deaths_in_memory(shape: Shape, deaths: list[int]) -> None:
    check(shape, InMemoryStateStore(), deaths)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shapes, st.lists(st.integers(0, 25), max_size=4))
def test_a_generated_pipeline_survives_generated_deaths_on_disk(shape: Shape, deaths: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStateStore(Path(folder) / "runs.db")
        check(shape, store, deaths)
        asyncio.run(store.aclose())


async def through_faults(shape: Shape, store: FaultyStore, world: World) -> Any:
    """Run, and resume in this process as often as the store fails."""
    while True:
        try:
            return (await arun(whole(shape, world), run_id="r", store=store, value={"depth": 0})).output
        except StateStoreError:
            continue


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shapes, st.lists(st.sampled_from(["none", "none", "before", "after"]), max_size=20))
def test_a_generated_pipeline_survives_generated_faults_of_the_store_without_a_second_call(
    shape: Shape, faults: list[Fault]
) -> None:
    undisturbed, quiet = outcome(shape, InMemoryStateStore(), [])
    world = World()

    with mock.patch.object(checkpointing, "_FIRST_DELAY", 0):
        output = asyncio.run(through_faults(shape, FaultyStore(faults), world))

    note(f"called {world.calls}")
    assert output == undisturbed
    assert sorted(world.calls) == sorted(quiet.calls)


def test_the_generated_deaths_do_happen() -> None:
    shape = ("chain", (("node", 0, "async", 0), ("node", 0, "sync", 1)), False)
    deaths = 0
    starts = []

    def observe(event: Event) -> None:
        nonlocal deaths
        if isinstance(event, NodeStarted):
            starts.append(event.node)
            if event.node == "n1" and not deaths:
                deaths += 1
                raise Death

    store = InMemoryStateStore()
    for _ in range(2):
        try:
            asyncio.run(arun(whole(shape, World()), run_id="r", store=store, observers=[observe], value={"depth": 0}))
        except Death:
            continue

    assert deaths == 1
    assert starts == ["n0", "n1", "n1", "n1"]
