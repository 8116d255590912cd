"""`frozen_time`, `no_sleep` and `mock_llm` in one test."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from n00dles import RetryPolicy, agent, arun, run
from n00dles_testing import FrozenTime, MockLLM, NoSleep, RateLimited

MESSAGES: Any = [{"role": "user", "content": "hello"}]


@agent(model="gpt-4o-mini", retry=RetryPolicy(max_attempts=3, base_delay=4.0, jitter=False))
def researcher(topic: str) -> str:
    """Research the topic."""


def test_a_rate_limit_is_waited_for_by_the_executor_on_the_held_clock(
    mock_llm: MockLLM, no_sleep: NoSleep, frozen_time: FrozenTime
) -> None:
    begin = frozen_time.now
    mock_llm.fail("researcher", RateLimited(retry_after=5), then="facts", times=2)

    result = run(researcher, topic="x")

    assert result.output == "facts"
    assert [(call.seconds, call.who, call.node) for call in no_sleep.calls] == [
        (5.0, "n00dles", "researcher"),  # as the header says
        (8.0, "n00dles", "researcher"),  # as the policy does, which is longer
    ]
    assert (frozen_time.now - begin).total_seconds() == pytest.approx(13.0)
    assert result.agent_traces[0].attempts == 3


def test_the_retries_of_an_sdk_are_not_slept_and_heed_the_header(mock_llm: MockLLM, no_sleep: NoSleep) -> None:
    from openai import AsyncOpenAI, OpenAI

    mock_llm.fail(None, RateLimited(retry_after=2), then="sync")
    mock_llm.fail(None, RateLimited(retry_after=3), then="async")

    async def asked() -> str | None:
        async with AsyncOpenAI(max_retries=1) as client:
            answer = await client.chat.completions.create(model="gpt-4o-mini", messages=MESSAGES)
        return str(answer.choices[0].message.content)

    with OpenAI(max_retries=1) as client:
        answer = client.chat.completions.create(model="gpt-4o-mini", messages=MESSAGES)

    assert answer.choices[0].message.content == "sync"
    assert asyncio.run(asked()) == "async"
    assert [(call.seconds, call.who) for call in no_sleep.calls] == [
        (2.0, "openai._base_client"),
        (3.0, "openai._base_client"),
    ]


def test_an_sdk_that_retries_synchronously_in_an_async_body_is_found(mock_llm: MockLLM, no_sleep: NoSleep) -> None:
    from openai import OpenAI

    mock_llm.fail("rude", RateLimited(retry_after=2), then="ok")

    @agent
    async def rude(text: str) -> str:
        with OpenAI(max_retries=1) as client:
            answer = client.chat.completions.create(model="gpt-4o-mini", messages=MESSAGES)
        return str(answer.choices[0].message.content)

    assert run(rude, text="x").output == "ok"

    assert [(call.seconds, call.node) for call in no_sleep.blocking] == [(2.0, "rude")]
    assert "test_together.py" in (no_sleep.problem() or "")
    no_sleep.calls.clear()  # else this test fails, as it should


def test_a_clock_that_is_held_does_not_hold_up_a_mocked_model(mock_llm: MockLLM, frozen_time: FrozenTime) -> None:
    mock_llm.reply("researcher", "facts")
    frozen_time.move_to("2030-01-31")

    async def main() -> str:
        async with asyncio.timeout(20):
            return str((await arun(researcher, topic="x")).output)

    assert asyncio.run(main()) == "facts"
    assert time.time() == frozen_time.now.timestamp()
