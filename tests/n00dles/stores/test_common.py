"""What every store of ours owes its caller; each test runs on a fresh one of each."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from n00dles import PipelineContext, StateStoreError
from n00dles.records import NodeRecord
from tests.n00dles.stores.each import Factory, on_store, visible


def test_an_unknown_run_is_created_with_the_inputs_passed(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        return await store.load("r"), await store.load_or_create("r", {"x": 1}), await store.load("r")

    before, created, after = on_store(work, make_store)

    assert before is None
    assert (created.inputs, created.completed, created.order, created.revision) == ({"x": 1}, {}, [], 1)
    assert visible(after) == visible(created)


def test_a_known_run_comes_as_it_was_whatever_inputs_are_passed(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        ctx = await store.load_or_create("r", {"x": 1})
        ctx.checkpoint("a", None)
        await store.save("r", ctx)
        again = await store.load_or_create("r", {"other": 2})
        return ctx, again, await store.load("r")

    ctx, again, loaded = on_store(work, make_store)

    assert visible(again) == visible(loaded) == visible(ctx)
    assert (again.inputs, again.completed) == ({"x": 1}, {"a": None})


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts.filter(bool),
    st.dictionaries(texts, values, max_size=3),
    st.lists(st.dictionaries(texts, values, max_size=3), max_size=4),
)
def test_whatever_is_saved_in_whatever_steps_comes_back(
    make_store: Factory, run_id: str, inputs: dict[str, Any], steps: list[dict[str, Any]]
) -> None:
    async def work(store: Any) -> Any:
        ctx = await store.load_or_create(run_id, inputs)
        for step in steps:
            for node, output in step.items():
                ctx.checkpoint(node, output)
            await store.save(run_id, ctx)
        return ctx, await store.load(run_id)

    ctx, back = on_store(work, make_store)

    assert visible(back) == visible(ctx)
    assert (back.run_id, repr(back.inputs)) == (run_id, repr(inputs))
    assert repr(dict(back.completed)) == repr(
        {**dict.fromkeys(ctx.order), **{k: v for s in steps for k, v in s.items()}}
    )


def test_bookkeeping_comes_back(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        ctx = await store.load_or_create("r", {})
        ctx.pipeline, ctx.status, ctx.lives, ctx.stalled, ctx.error, ctx.elapsed_ms = "p", "failed", 4, 2, "no", 12.5
        ctx.signature = ["a(x)", "b(y)"]
        ctx.nodes["a"] = NodeRecord(3, 10, 20, 1.5, "first", 0)
        ctx.checkpoint("a", 1)
        ctx.record("b").spent = 2
        await store.save("r", ctx)
        return await store.load("r")

    back = on_store(work, make_store)

    assert (back.pipeline, back.status, back.lives, back.stalled, back.error) == ("p", "failed", 4, 2, "no")
    assert (back.elapsed_ms, back.signature, back.is_new) == (12.5, ["a(x)", "b(y)"], False)
    assert back.nodes == {"a": NodeRecord(3, 10, 20, 1.5, "first", 0), "b": NodeRecord(spent=2)}


def test_a_node_that_is_saved_again_keeps_its_place_and_gets_its_new_output(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        ctx = await store.load_or_create("r", {})
        for node, output in [("a", 1), ("b", 2), ("a", 3)]:
            ctx.checkpoint(node, output)
            await store.save("r", ctx)
        return await store.load("r")

    back = on_store(work, make_store)

    assert (back.order, back.completed) == (["a", "b"], {"a": 3, "b": 2})


def test_nothing_stored_is_shared_with_the_caller(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        inputs, output = {"list": [1]}, {"list": [1]}
        ctx = await store.load_or_create("r", inputs)
        inputs["list"].append(2)
        ctx.inputs["list"].append(3)
        ctx.checkpoint("a", output)
        await store.save("r", ctx)
        output["list"].append(2)
        ctx.completed["a"]["list"].append(3)
        loaded = await store.load("r")
        loaded.inputs["list"].append(4)
        loaded.completed["a"]["list"].append(4)
        loaded.record("a").attempts = 99
        return await store.load("r")

    back = on_store(work, make_store)

    assert (back.inputs, back.completed) == ({"list": [1]}, {"a": {"list": [1]}})
    assert back.record("a").attempts == 0


ALIKE = [
    *(
        "run",
        "Run",
        "RUN",
        "run ",
        " run",
        "run\n",
        "r_n",
        "r%n",
        "ru*",
        "é",
        "e\u0301",
        "ﬁ",
        "fi",
        "ß",
        "ss",
        "%",
        "_",
    ),
    *(
        "a/b",
        "a_b",
        "a b",
        "a\\b",
        "../x",
        "..",
        "/etc/passwd",
        "a\x00b",
        "a",
        "a\x00",
        "'; DROP TABLE n00dles_runs; --",
    ),
    *("x" * 10_000, "x" * 9_999, "0", "00", "1e0", "NULL", "\ufeffrun", "𝄞"),
]


def test_ids_that_look_alike_are_different_runs(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        for run_id in ALIKE:
            ctx = await store.load_or_create(run_id, {"id": run_id})
            ctx.checkpoint("a", run_id)
            await store.save(run_id, ctx)
        found = [(await store.load(run_id)).completed["a"] for run_id in ALIKE]
        for run_id in ALIKE[::2]:
            await store.delete(run_id)
        return found, [run_id for run_id in ALIKE if await store.load(run_id) is not None]

    found, left = on_store(work, make_store)

    assert found == ALIKE
    assert left == ALIKE[1::2]


@pytest.mark.parametrize("run_id", ["", "\ud800", "x" * 10_001, "é" * 5_001, None, 5, b"r"], ids=range(7))
def test_what_cannot_be_an_id_is_refused_everywhere(make_store: Factory, run_id: Any) -> None:
    async def work(store: Any) -> None:
        for call in (store.load, store.delete, lambda r: store.load_or_create(r, {})):
            with pytest.raises(StateStoreError):
                await call(run_id)
        with pytest.raises(StateStoreError):
            await store.save(run_id, PipelineContext("r", {}))
        assert await store.list_runs() == []

    on_store(work, make_store)


def test_a_context_of_another_run_is_not_saved(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        ctx = await store.load_or_create("r", {})
        ctx.checkpoint("a", 1)
        with pytest.raises(StateStoreError, match="the context of run 'r' was to be saved as run 'other'"):
            await store.save("other", ctx)
        return (await store.load("r")).order, await store.load("other")

    assert on_store(work, make_store) == ([], None)


# Listing and pruning.


def test_runs_are_listed_the_last_updated_first(make_store: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(1_000)
    monkeypatch.setattr("time.time", lambda: float(next(clock)))

    async def work(store: Any) -> Any:
        for run_id in ("a", "b", "c"):
            await store.load_or_create(run_id, {})
        ctx = await store.load("a")
        ctx.pipeline, ctx.status = "p", "finished"
        ctx.checkpoint("n", 1)
        await store.save("a", ctx)
        return await store.list_runs(), await store.list_runs(status="running"), await store.list_runs(limit=1)

    runs, running, limited = on_store(work, make_store)

    assert [(run.run_id, run.pipeline, run.status, run.completed) for run in runs] == [
        ("a", "p", "finished", 1),
        ("c", None, "running", 0),
        ("b", None, "running", 0),
    ]
    assert runs[0].created_at < runs[1].created_at < runs[0].updated_at
    assert [run.run_id for run in running] == ["c", "b"]
    assert limited == runs[:1]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the clock of this host says."""
    now = [1_000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    return now


def test_prune_forgets_finished_runs_that_are_old_and_no_others(make_store: Factory, clock: list[float]) -> None:
    async def work(store: Any) -> Any:
        for run_id, at, status in [
            ("old", 1_000.0, "finished"),
            ("old failed", 1_000.0, "failed"),
            ("old running", 1_000.0, "running"),
            ("young", 1_900.0, "finished"),
        ]:
            clock[0] = at
            ctx = await store.load_or_create(run_id, {})
            ctx.status = status
            await store.save(run_id, ctx)
        clock[0] = 2_000.0
        removed = await store.prune(older_than=500)
        return removed, await store.prune(older_than=500), {run.run_id for run in await store.list_runs()}

    removed, again, left = on_store(work, make_store)

    assert (removed, again) == (["old"], [])
    assert left == {"old failed", "old running", "young"}


def test_the_newest_save_is_the_last_one_acknowledged_whatever_the_clock_says(
    make_store: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([5_000.0, 5_000.0, 1_400.0, 5_000.0, 0.0, 0.0, 0.0, 0.0])
    monkeypatch.setattr("time.time", lambda: next(times, 0.0))

    async def work(store: Any) -> Any:
        ctx = await store.load_or_create("r", {})
        for number in range(4):
            ctx.checkpoint("a", number)
            await store.save("r", ctx)
        return await store.load("r")

    back = on_store(work, make_store)

    assert (back.completed, back.revision) == ({"a": 3}, 5)


@pytest.mark.parametrize("megabytes", [1, 16])
def test_large_outputs_come_back(make_store: Factory, megabytes: int) -> None:
    output = ["é" * 1024] * (megabytes * 512)

    async def work(store: Any) -> Any:
        ctx = await store.load_or_create("r", {})
        ctx.checkpoint("a", output)
        await store.save("r", ctx)
        return await store.load("r")

    assert on_store(work, make_store).completed == {"a": output}


@pytest.mark.parametrize("run_id", ["r" * 10_001, "\N{PILE OF POO}" * 2_501, "r" * 1_000_000])
def test_a_run_id_that_is_too_long_is_refused_by_every_call(make_store: Factory, run_id: str) -> None:
    async def work(store: Any) -> Any:
        for call in (
            store.load(run_id),
            store.load_or_create(run_id, {}),
            store.save(run_id, PipelineContext(run_id, {})),
            store.delete(run_id),
        ):
            with pytest.raises(StateStoreError, match="bytes; at most 10000 are accepted"):
                await call
        return await store.list_runs()

    assert on_store(work, make_store) == []
