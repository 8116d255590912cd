"""A context of one store that is saved in another: refused with what to do, and a copy works, for every two stores."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from n00dles import InMemoryStateStore, PipelineContext, SQLiteStateStore, StaleContextError, StateStoreError
from n00dles.stores import Closable, open_store

KINDS = ("memory", "sqlite", "postgres", "redis")


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Any]:
    """Return a function that opens a fresh store of a kind."""

    def opened(kind: str) -> Any:
        name = uuid.uuid4().hex
        if kind == "memory":
            return InMemoryStateStore()
        if kind == "sqlite":
            return SQLiteStateStore(tmp_path / f"{name}.db")
        if kind == "postgres":
            return open_store(request.getfixturevalue("postgres").url(name))
        return open_store(f"{request.getfixturevalue('redis_server').url}?prefix={name}:")

    return opened


def with_two(make: Callable[[str], Any], kinds: tuple[str, str], work: Callable[[Any, Any], Any]) -> Any:
    async def main() -> Any:
        stores = [make(kind) for kind in kinds]
        try:
            return await work(*stores)
        finally:
            for store in stores:
                if isinstance(store, Closable):
                    await store.aclose()

    return asyncio.run(main())


async def two_saves(store: Any) -> PipelineContext:
    ctx: PipelineContext = await store.load_or_create("r", {"x": 1})
    for node in ("a", "b"):
        ctx.checkpoint(node, node)
        await store.save("r", ctx)
    return ctx


pairs = pytest.mark.parametrize("kinds", list(itertools.product(KINDS, repeat=2)), ids="-".join)


@pairs
@pytest.mark.parametrize("is_loaded", [True, False], ids=["loaded", "saved"])
def test_a_context_is_not_saved_where_its_run_is_not(make: Any, kinds: tuple[str, str], is_loaded: bool) -> None:
    async def work(first: Any, second: Any) -> Any:
        ctx = await two_saves(first)
        if is_loaded:
            ctx = await first.load("r")
        ctx.checkpoint("c", "c")
        with pytest.raises(StaleContextError, match=r"run 'r' was not saved.*load the run again"):
            await second.save("r", ctx)
        refused = await second.load("r")
        await first.save("r", ctx)  # at home it goes on
        return refused, await first.load("r")

    refused, at_home = with_two(make, kinds, work)

    assert refused is None
    assert (at_home.order, at_home.revision) == (["a", "b", "c"], 4)


@pairs
def test_a_context_is_not_saved_over_another_run_of_its_id_and_revision(make: Any, kinds: tuple[str, str]) -> None:
    async def work(first: Any, second: Any) -> Any:
        ctx, other = await two_saves(first), await two_saves(second)
        ctx.checkpoint("c", "c")
        with pytest.raises(StaleContextError, match="another run of this id"):
            await second.save("r", ctx)
        other.checkpoint("d", "d")
        await second.save("r", other)
        return await second.load("r")

    assert with_two(make, kinds, work).order == ["a", "b", "d"]


@pairs
def test_a_whole_copy_is_saved_in_any_store_and_goes_on_there(make: Any, kinds: tuple[str, str]) -> None:
    async def work(first: Any, second: Any) -> Any:
        record = (await two_saves(first)).to_dict()
        half = PipelineContext.from_dict({**record, "revision": 0})  # its outputs count as saved
        if not isinstance(second, InMemoryStateStore):
            with pytest.raises(StateStoreError, match=r"saved in another store.*save PipelineContext\(run_id, inputs"):
                await second.save("r", half)
        copy = PipelineContext("r", record["inputs"], record["completed"], record["order"])
        await second.save("r", copy)
        copy.checkpoint("c", "c")
        await second.save("r", copy)
        return await second.load("r")

    back = with_two(make, kinds, work)

    assert (back.order, back.inputs, back.revision) == (["a", "b", "c"], {"x": 1}, 2)
