"""What a pipeline is told of its failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from n00dles import (
    InMemoryStateStore,
    PipelineFailure,
    pipeline,
    run,
)
from tests.n00dles.executor.flaky import calls, flaky


@pytest.fixture(autouse=True)
def _fresh() -> None:
    calls.clear()


def test_on_error_is_called_and_awaited_from_the_inside_out() -> None:
    told: list[tuple[str, str]] = []

    async def inner_handler(failure: PipelineFailure) -> None:
        await asyncio.sleep(0)
        told.append(("inner", failure.node_name))

    def outer_handler(failure: PipelineFailure) -> None:
        told.append(("outer", failure.node_name))

    inner = pipeline(flaky("a", 9), name="inner", on_error=inner_handler)

    with pytest.raises(PipelineFailure):
        run(pipeline(inner, name="outer", on_error=outer_handler), store="memory://", value="x")

    assert told == [("inner", "a"), ("outer", "a")]


def test_an_on_error_that_fails_is_noted_and_hides_nothing() -> None:
    def handler(failure: PipelineFailure) -> None:
        raise ValueError("handler's own mistake")

    with pytest.raises(PipelineFailure) as caught:
        run(pipeline(flaky("a", 9), name="p", on_error=handler), store="memory://", value="x")

    assert str(caught.value.cause) == "no luck 6"
    assert caught.value.__notes__ == ["and on_error of pipeline 'p' failed: ValueError: handler's own mistake"]


def test_on_error_finds_the_failure_in_the_store_already() -> None:
    store = InMemoryStateStore()
    found: list[Any] = []

    async def handler(failure: PipelineFailure) -> None:
        stored = await store.load(failure.run_id)
        assert stored is not None
        found.append((stored.status, stored.order))

    with pytest.raises(PipelineFailure):
        run(pipeline(flaky("a", 0) >> flaky("b", 9), on_error=handler), store=store, value="x")

    assert found == [("failed", ["a"])]
