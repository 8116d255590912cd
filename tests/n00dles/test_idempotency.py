"""One key for all attempts of a node in a run."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from n00dles import (
    InMemoryStateStore,
    LLMResponse,
    N00dlesError,
    PipelineFailure,
    RetryPolicy,
    agent,
    idempotency_key,
    pipeline,
    resume,
    run,
)
from n00dles.idempotency import current_idempotency_key
from n00dles_testing.llm import LLMServer


def test_every_attempt_in_every_life_gets_the_same_key() -> None:
    keys: list[str] = []

    @agent(retry=RetryPolicy(2, base_delay=0))
    async def charge(order: str) -> str:
        keys.append(idempotency_key())
        if len(keys) < 4:
            raise ConnectionError("lost")
        return order

    store, whole = InMemoryStateStore(), pipeline(charge, name="shop")

    with pytest.raises(PipelineFailure):
        run(whole, run_id="order-1", store=store, order="o")
    resume(whole, "order-1", store=store)

    assert len(keys) == 4
    assert len(set(keys)) == 1
    assert uuid.UUID(keys[0]).version == 5


def test_nodes_runs_and_purposes_have_different_keys() -> None:
    keys: list[str] = []

    @agent
    def charge(order: str) -> str:
        keys.extend([idempotency_key(), idempotency_key("refund")])
        return order

    whole = pipeline(charge >> charge.named("charge_tip"))

    for run_id in ("order-1", "order-2"):
        run(whole, run_id=run_id, store=InMemoryStateStore(), order="o")

    assert len(set(keys)) == len(keys) == 8


def test_members_of_a_fan_out_do_not_see_each_others_key() -> None:
    keys: dict[str, set[str]] = {"left": set(), "right": set()}

    @agent
    async def left(text: str) -> None:
        keys["left"].add(idempotency_key())

    @agent
    def right(text: str) -> None:
        keys["right"].add(idempotency_key())

    run(left | right, run_id="r", store=InMemoryStateStore(), text="x")

    assert [len(found) for found in keys.values()] == [1, 1]
    assert keys["left"] != keys["right"]


def test_outside_a_node_there_is_no_key() -> None:
    with pytest.raises(N00dlesError, match="outside a node"):
        idempotency_key()

    assert current_idempotency_key() is None


def test_in_a_thread_that_a_body_has_started_the_error_says_where_to_take_the_key() -> None:
    @agent
    def charge(text: str) -> str:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(idempotency_key).result()

    with pytest.raises(PipelineFailure, match=r"take the key before you start a thread, and hand it over"):
        run(charge, store=InMemoryStateStore(), text="x")


@pytest.mark.parametrize("model", ["gpt-4o-mini", "claude-sonnet-4-6"])
def test_the_official_sdks_send_the_key(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @agent(model=model)
    def writer(topic: str) -> str:
        """Write."""

    with LLMServer() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        run(writer, run_id="r", store=InMemoryStateStore(), topic="x")
        (call,) = server.journal()

    assert uuid.UUID(call.idempotency_key).version == 5


def test_a_provider_of_ones_own_can_ask_for_the_key() -> None:
    keys: list[str | None] = []

    class Provider:
        async def complete(self, prompt: str, system: str, **kwargs: object) -> LLMResponse:
            keys.append(current_idempotency_key())
            return LLMResponse(content="ok")

    @agent(model="mine", provider=Provider())
    def writer(topic: str) -> str:
        """Write."""

    run(writer, run_id="r", store=InMemoryStateStore(), topic="x")

    assert [key is not None for key in keys] == [True]
