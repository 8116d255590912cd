"""Attempts that take too long."""

from __future__ import annotations

import asyncio
import threading

import pytest

from n00dles import (
    Agent,
    PipelineFailure,
    RetryPolicy,
    agent,
    pipeline,
    run,
)
from tests.n00dles.executor.flaky import AT_ONCE, calls, flaky


@pytest.fixture(autouse=True)
def _fresh() -> None:
    calls.clear()


def test_an_attempt_that_takes_too_long_is_ended_and_the_next_one_made() -> None:
    ended: list[str] = []

    @agent(timeout=0.05, retry=AT_ONCE)
    async def slow(value: str) -> str:
        calls.append("slow")
        if len(calls) < 3:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("ended")
        return value

    result = run(slow, store="memory://", value="x")

    assert (result.output, len(calls), ended) == ("x", 3, ["ended", "ended"])
    assert result.agent_traces[0].error == "TimeoutError: node 'slow' was not done within its timeout of 0.05 s"


def test_the_most_specific_timeout_holds() -> None:
    @agent(retry=1)
    async def slow(value: str) -> str:
        await asyncio.Event().wait()
        return value

    with pytest.raises(PipelineFailure, match=r"within its timeout of 0\.02 s"):
        run(
            pipeline(pipeline(slow, name="inner", timeout=0.02), name="outer", timeout=50), store="memory://", value="x"
        )
    with pytest.raises(PipelineFailure, match=r"within its timeout of 0\.03 s"):
        run(pipeline(Agent(slow.fn, timeout=0.03, retry=1), timeout=50), store="memory://", value="x")


def test_a_timeout_that_the_body_itself_raises_is_an_error_like_any_other() -> None:
    node = flaky("a", 1, TimeoutError)

    result = run(node, store="memory://", value="x")

    assert (result.output, result.agent_traces[0].error) == ("a(x)", "TimeoutError: no luck 0")


def test_a_sync_body_that_is_over_its_time_is_waited_for_and_what_it_returns_is_kept() -> None:
    called: list[str] = []

    @agent(timeout=0.05, retry=RetryPolicy(2, base_delay=0))
    def slow(value: str) -> str:
        called.append(value)
        threading.Event().wait(0.1)
        return value

    result = run(slow, store="memory://", value="x")

    assert (result.output, called) == ("x", ["x"])


def test_a_sync_body_that_is_over_its_time_and_fails_is_called_again_only_when_it_has_ended() -> None:
    running, most = 0, 0
    lock = threading.Lock()

    @agent(timeout=0.05, retry=RetryPolicy(2, base_delay=0))
    def slow(value: str) -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.1)
        with lock:
            running -= 1
        raise ValueError("no")

    with pytest.raises(PipelineFailure, match="was not done within its timeout"):
        run(slow, store="memory://", value="x")

    assert (most, running) == (1, 0)
