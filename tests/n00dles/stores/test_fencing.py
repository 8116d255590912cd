"""Who may save: no older state, no deleted run, nobody twice; on a fresh store of each kind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from n00dles import PipelineContext, StaleContextError
from tests.n00dles.stores.each import Factory, on_store, visible


@pytest.mark.parametrize("earlier_saves", [0, 1])
def test_a_save_from_an_older_revision_is_refused_and_changes_nothing(make_store: Factory, earlier_saves: int) -> None:
    async def work(store: Any) -> Any:
        first = await store.load_or_create("r", {})
        for _ in range(earlier_saves):
            await store.save("r", first)
        second = await store.load("r")
        second.checkpoint("a", "second")
        await store.save("r", second)
        first.checkpoint("a", "first")
        for _ in range(2):
            with pytest.raises(StaleContextError, match=r"it is at revision \d, and this save continues revision \d"):
                await store.save("r", first)
        return await store.load("r"), second

    back, second = on_store(work, make_store)

    assert visible(back) == visible(second)
    assert back.completed == {"a": "second"}


@pytest.mark.parametrize("earlier_saves", [0, 1])
def test_a_late_save_does_not_bring_a_deleted_run_back(make_store: Factory, earlier_saves: int) -> None:
    async def work(store: Any) -> Any:
        ctx = await store.load_or_create("r", {})
        for _ in range(earlier_saves):
            await store.save("r", ctx)
        loaded = await store.load("r")
        await store.delete("r")
        await store.delete("r")
        for late in (ctx, loaded):
            late.checkpoint("a", 1)
            with pytest.raises(StaleContextError, match="was deleted"):
                await store.save("r", late)
        return await store.load("r")

    assert on_store(work, make_store) is None


@pytest.mark.parametrize("earlier_saves", [0, 1])
def test_a_late_save_does_not_touch_a_new_run_of_the_same_id(make_store: Factory, earlier_saves: int) -> None:
    async def work(store: Any) -> Any:
        old = await store.load_or_create("r", {"x": "old"})
        for _ in range(earlier_saves):
            await store.save("r", old)
        await store.delete("r")
        new = await store.load_or_create("r", {"x": "new"})
        for _ in range(earlier_saves):
            await store.save("r", new)
        old.checkpoint("a", "old")
        with pytest.raises(StaleContextError, match="another run of this id"):
            await store.save("r", old)
        new.checkpoint("a", "new")
        await store.save("r", new)
        return await store.load("r")

    back = on_store(work, make_store)

    assert (back.inputs, back.completed) == ({"x": "new"}, {"a": "new"})


def test_a_context_that_was_made_by_hand_can_be_saved_once(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        mine = PipelineContext("r", {"x": 1}, {"a": 1}, ["a"])
        rival = PipelineContext("r", {"x": 2})
        await store.save("r", mine)
        with pytest.raises(StaleContextError):
            await store.save("r", rival)
        mine.checkpoint("b", 2)
        await store.save("r", mine)
        return await store.load("r")

    back = on_store(work, make_store)

    assert (back.inputs, back.order, back.revision) == ({"x": 1}, ["a", "b"], 2)


def test_a_save_that_landed_without_a_reply_is_recognised(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        ctx = await store.load_or_create("r", {})
        ctx.checkpoint("a", 1)
        acknowledge = ctx.acknowledge
        ctx.acknowledge = lambda batch: None
        await store.save("r", ctx)
        ctx.acknowledge = acknowledge
        ctx.checkpoint("b", 2)
        await store.save("r", ctx)
        return await store.load("r"), ctx

    back, ctx = on_store(work, make_store)

    assert (back.order, ctx.unsaved) == (["a", "b"], ())
    assert back.revision == ctx.revision == 3


def test_somebody_elses_save_is_not_taken_for_ones_own(make_store: Factory) -> None:
    import copy

    async def work(store: Any) -> Any:
        ctx = await store.load_or_create("r", {})
        twin = copy.deepcopy(ctx)
        ctx.checkpoint("a", "ctx")
        twin.checkpoint("a", "twin")
        ctx.begin_save()  # and the save does not arrive
        await store.save("r", twin)
        with pytest.raises(StaleContextError):
            await store.save("r", ctx)
        return await store.load("r")

    assert on_store(work, make_store).completed == {"a": "twin"}


def test_overlapping_saves_of_one_context_lose_nothing(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        ctx = await store.load_or_create("r", {})

        async def one(number: int) -> None:
            ctx.checkpoint(f"n{number}", number)
            await store.save("r", ctx)

        await asyncio.gather(*(one(number) for number in range(20)))
        return await store.load("r")

    back = on_store(work, make_store)

    assert dict(back.completed) == {f"n{number}": number for number in range(20)}


def test_one_of_many_creates_a_run_and_all_see_the_same(make_store: Factory) -> None:
    async def work(store: Any) -> Any:
        return await asyncio.gather(*(store.load_or_create("r", {"x": number}) for number in range(10)))

    found = on_store(work, make_store)

    assert len({(ctx.inputs["x"], ctx.incarnation) for ctx in found}) == 1
    assert [ctx.is_new for ctx in found].count(True) == 1
