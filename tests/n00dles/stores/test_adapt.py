"""Taking a store as it comes."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from n00dles import ConfigurationError, CorruptCheckpointError, InMemoryStateStore, PipelineContext
from n00dles.stores import Closable, ListsRuns, Loads, MadeAtFirstUse, Prunes, TellsTime, as_context, as_store

RECORD: dict[str, Any] = {"run_id": "r", "inputs": {"x": 1}, "completed": {"a": [1]}, "order": ["a"]}


class SyncStore:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.threads: set[threading.Thread] = set()

    def load_or_create(self, run_id: str, inputs: Any) -> Any:
        self.calls.append(("load_or_create", run_id, inputs))
        self.threads.add(threading.current_thread())
        return dict(RECORD)

    def save(self, run_id: str, ctx: Any) -> None:
        self.calls.append(("save", run_id, ctx))

    def delete(self, run_id: str) -> None:
        self.calls.append(("delete", run_id))


class AsyncStore(SyncStore):
    async def load_or_create(self, run_id: str, inputs: Any) -> Any:
        return super().load_or_create(run_id, inputs)

    async def save(self, run_id: str, ctx: Any) -> None:  # type: ignore[override]
        super().save(run_id, ctx)

    async def delete(self, run_id: str) -> None:  # type: ignore[override]
        super().delete(run_id)


class FullStore(AsyncStore):
    closed = 0

    def load(self, run_id: str) -> Any:
        return None if run_id == "nope" else SimpleNamespace(**RECORD)

    async def list_runs(self, *, status: Any = None, limit: Any = None) -> Any:
        return [status, limit]

    async def prune(self, *, older_than: float) -> Any:
        return [older_than]

    def server_time(self) -> float:
        return 7.5

    def unmade(self) -> str:
        return "there is no bucket"

    def close(self) -> None:
        self.closed += 1


def test_a_store_of_ours_is_taken_as_it_is() -> None:
    store = InMemoryStateStore()

    assert as_store(store) is store


@pytest.mark.parametrize("kind", [SyncStore, AsyncStore])
def test_the_three_methods_are_enough_sync_or_async(kind: type[SyncStore]) -> None:
    inner = kind()
    store = as_store(inner)

    async def use() -> PipelineContext:
        ctx = await store.load_or_create("r", {"x": 1})
        await store.save("r", ctx)
        await store.delete("r")
        return ctx

    ctx = asyncio.run(use())

    assert (ctx.run_id, ctx.inputs, ctx.completed, ctx.order) == ("r", {"x": 1}, {"a": [1]}, ["a"])
    assert inner.calls == [("load_or_create", "r", {"x": 1}), ("save", "r", ctx), ("delete", "r")]
    assert (threading.main_thread() in inner.threads) == (kind is AsyncStore)


def test_what_a_store_can_do_beyond_that_is_passed_on_and_nothing_else_is_claimed() -> None:
    plain, inner = as_store(SyncStore()), FullStore()
    full: Any = as_store(inner)

    async def use() -> list[Any]:
        return [
            await full.load("nope"),
            (await full.load("r")).completed,
            await full.list_runs(status="failed", limit=3),
            await full.prune(older_than=5),
            await full.server_time(),
            await full.unmade(),
            await full.aclose(),
        ]

    assert not isinstance(plain, Loads | ListsRuns | Prunes | TellsTime | MadeAtFirstUse | Closable)
    everything = (Loads, ListsRuns, Prunes, TellsTime, MadeAtFirstUse, Closable)
    assert all(isinstance(full, capability) for capability in everything)
    assert asyncio.run(use()) == [None, {"a": [1]}, ["failed", 3], [5], 7.5, "there is no bucket", None]
    assert inner.closed == 1


def test_what_lacks_a_method_is_refused_by_name() -> None:
    half = SimpleNamespace(save=len, delete=5)

    with pytest.raises(ConfigurationError, match=r"is no state store: it has no method load_or_create, delete\."):
        as_store(half)


def test_a_class_instead_of_an_object_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the class SyncStore, not an object of it"):
        as_store(SyncStore)


@pytest.mark.parametrize("nothing", [None, 5, [], {}, "text"], ids=repr)
def test_anything_else_is_refused(nothing: Any) -> None:
    with pytest.raises(ConfigurationError, match="A store has load_or_create, save, delete"):
        as_store(nothing)


def test_what_a_store_returns_may_be_a_context_a_mapping_or_an_object() -> None:
    ctx = PipelineContext("r", {"x": 1}, {"a": [1]}, ["a"])
    found = [as_context(given, "r") for given in (ctx, RECORD, SimpleNamespace(**RECORD))]

    assert found[0] is ctx
    assert [(each.inputs, each.completed, each.order, each.unsaved) for each in found] == [
        ({"x": 1}, {"a": [1]}, ["a"], ())
    ] * 3


def test_a_record_of_this_release_keeps_its_revision_and_incarnation() -> None:
    ctx = PipelineContext("r", {}, revision=7)

    found = as_context(ctx.to_dict(), "r")

    assert (found.revision, found.incarnation) == (7, ctx.incarnation)


def test_somebody_elses_revision_is_not_taken_for_ours() -> None:
    assert as_context(RECORD | {"revision": "etag-9"}, "r").revision == 0


@pytest.mark.parametrize(
    "given",
    [None, 5, "text", [], {}, {"run_id": "r"}, RECORD | {"order": []}, SimpleNamespace(run_id="r", inputs={})],
    ids=repr,
)
def test_what_is_no_record_is_refused(given: Any) -> None:
    with pytest.raises(CorruptCheckpointError):
        as_context(given, "r")


def test_the_places_of_two_stores_are_equal_only_if_they_keep_the_same_runs() -> None:
    inner, memory = SyncStore(), InMemoryStateStore()

    assert as_store(inner).place == as_store(inner).place
    assert as_store(inner).place != as_store(SyncStore()).place
    assert memory.place == memory.place
    assert memory.place != InMemoryStateStore().place
