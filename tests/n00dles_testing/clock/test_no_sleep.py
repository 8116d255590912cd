"""`no_sleep`: sleeps are recorded and not slept, and those that block an event loop fail the test."""

from __future__ import annotations

import asyncio
import time
from time import sleep as imported_by_name
from typing import Any

import pytest
from tenacity import AsyncRetrying, Retrying, stop_after_attempt, wait_fixed

from n00dles import InMemoryStateStore, PipelineFailure, RetryPolicy, agent, arun, parallel, pipeline, run
from n00dles_testing import FrozenTime, NoSleep
from tests.n00dles.stores_with_faults import FaultyStore

pytest_plugins = ["pytester"]

FIVE_TIMES = RetryPolicy(max_attempts=4, base_delay=10.0, max_delay=30.0, jitter=False)


def go(step: Any, **options: Any) -> Any:
    return run(step, text="x", store="memory://", **options)


def test_the_back_off_of_the_executor_is_recorded_with_its_node(no_sleep: NoSleep) -> None:
    @agent(retry=FIVE_TIMES)
    async def fails(text: str) -> str:
        raise ConnectionError("cut")

    with pytest.raises(PipelineFailure):
        go(fails)

    assert [(call.seconds, call.who, call.node) for call in no_sleep.calls] == [
        (10.0, "n00dles", "fails"),
        (20.0, "n00dles", "fails"),
        (30.0, "n00dles", "fails"),
    ]
    assert all("test_no_sleep.py:" in call.where for call in no_sleep.calls)


def test_that_of_a_save_is_recorded_too(no_sleep: NoSleep) -> None:
    store = FaultyStore(["before", "before"], inner=InMemoryStateStore())

    @agent
    async def shout(text: str) -> str:
        return text.upper()

    assert run(shout, text="x", store=store).output == "X"
    assert [(call.seconds, call.who, call.node) for call in no_sleep.calls] == [
        (0.05, "n00dles", None),
        (0.1, "tenacity", None),
    ]


def test_tenacity_in_bodies_does_not_sleep(no_sleep: NoSleep) -> None:
    @agent
    def sync(text: str) -> int:
        for attempt in Retrying(stop=stop_after_attempt(3), wait=wait_fixed(60)):
            with attempt:
                assert attempt.retry_state.attempt_number == 3
        return 3

    @agent
    async def awaited(text: str) -> int:
        async for attempt in AsyncRetrying(stop=stop_after_attempt(2), wait=wait_fixed(90)):
            with attempt:
                assert attempt.retry_state.attempt_number == 2
        return 2

    assert go(sync).output == 3
    assert go(awaited).output == 2
    assert [(call.seconds, call.who, call.node, call.is_blocking) for call in no_sleep.calls] == [
        (60.0, "tenacity", "sync", False),
        (60.0, "tenacity", "sync", False),
        (90.0, "tenacity", "awaited", False),
    ]
    assert " in test_tenacity_in_bodies_does_not_sleep.<locals>.sync" in no_sleep.calls[0].where


def test_a_sync_body_does_not_sleep_also_where_sleep_was_imported_by_name(no_sleep: NoSleep) -> None:
    @agent
    def waits(text: str) -> str:
        time.sleep(30)
        imported_by_name(45)
        return text

    begin = time.perf_counter()
    assert go(waits).output == "x"

    assert time.perf_counter() - begin < 20
    assert [(call.seconds, call.who, call.node) for call in no_sleep.calls] == [
        (30, __name__, "waits"),
        (45, __name__, "waits"),
    ]


def test_an_unslept_sleep_gives_others_their_turn_and_its_result(no_sleep: NoSleep) -> None:
    turns: list[str] = []

    async def take(name: str) -> str:
        for _ in range(2):
            turns.append(name)
            await asyncio.sleep(10)
        return await asyncio.sleep(10, name)

    async def main() -> list[str]:
        return list(await asyncio.gather(take("a"), take("b")))

    assert asyncio.run(main()) == ["a", "b"]
    assert turns == ["a", "b", "a", "b"]
    assert len(no_sleep.calls) == 6


def test_short_sleeps_are_slept_and_not_recorded(no_sleep: NoSleep) -> None:
    async def main() -> float:
        begin = asyncio.get_running_loop().time()
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        return asyncio.get_running_loop().time() - begin

    assert asyncio.run(main()) >= 0.0099
    time.sleep(0.001)
    assert no_sleep.calls == []

    no_sleep.threshold = 0.001
    time.sleep(0.001)
    assert [call.seconds for call in no_sleep.calls] == [0.001]
    with pytest.raises(ValueError, match="non-negative"):
        time.sleep(-1)


def test_who_sleeps_by_anyio_is_who_calls_it(no_sleep: NoSleep) -> None:
    import anyio

    no_sleep.threshold = 0.005
    ours: dict[str, Any] = {"__name__": "n00dles_testing.fake", "anyio": anyio}
    exec("async def pause():\n    await anyio.sleep(0.01)", ours)  # a reply of the mock that drips is no back-off

    async def main() -> float:
        await anyio.sleep(60)
        begin = asyncio.get_running_loop().time()
        await ours["pause"]()
        return asyncio.get_running_loop().time() - begin

    assert asyncio.run(main()) >= 0.0099
    assert [(call.seconds, call.who) for call in no_sleep.calls] == [(60, __name__)]


def test_a_sleep_that_is_not_awaited_was_not_asked_for(no_sleep: NoSleep) -> None:
    asyncio.sleep(10).close()

    assert no_sleep.calls == []


def test_a_held_clock_goes_on_by_what_was_not_slept(frozen_time: FrozenTime, no_sleep: NoSleep) -> None:
    begin = time.monotonic()

    @agent(retry=FIVE_TIMES)
    async def fails(text: str) -> str:
        raise ConnectionError("cut")

    with pytest.raises(PipelineFailure):
        go(fails)
    assert time.monotonic() - begin == pytest.approx(60.0)

    @agent
    def first(text: str) -> str:
        time.sleep(2)
        return text

    @agent
    async def second(text: str) -> str:
        await asyncio.sleep(3)
        return text

    begin = time.monotonic()
    go(pipeline(parallel(first, second)))
    assert 3.0 <= round(time.monotonic() - begin, 3) <= 5.0  # side by side, or one after the other

    async def together() -> None:
        await asyncio.gather(asyncio.sleep(2), asyncio.sleep(3))

    begin = time.monotonic()
    asyncio.run(together())
    assert time.monotonic() - begin == pytest.approx(3.0)


BLOCKING = """
import time
from n00dles import agent, run
from n00dles_testing import NoSleep

@agent(retry=1)
async def polite(text: str) -> str:
    return text

@agent(fallback=polite, retry=1)
async def rude(text: str) -> str:
    time.sleep({seconds})
    raise ValueError("and nobody will ever know")

def test_it(no_sleep):
    assert run(rude, text="x", store="memory://").output == "x"
"""


@pytest.mark.parametrize("seconds", [5, 0])
def test_a_blocking_sleep_in_async_code_fails_the_test_by_line_and_node(
    pytester: pytest.Pytester, seconds: int
) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(test_rude=BLOCKING.format(seconds=seconds))

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*time.sleep was called in async code*",
            f"*test_rude.py:11 in rude: time.sleep({seconds}), in node 'rude'",
            "*await asyncio.sleep*",
        ]
    )


def test_a_failure_keeps_its_own_reason_and_is_told_of_the_blocking_sleep(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(test_rude=BLOCKING.format(seconds=5).replace('== "x"', '== "y"'))

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 'x' == 'y'*", "*time.sleep was called in async code*"])


def test_sleep_is_real_again_afterwards(pytester: pytest.Pytester) -> None:
    before = (time.sleep, asyncio.sleep, imported_by_name)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile("import time\ndef test_it(no_sleep):\n    time.sleep(60)\n    assert no_sleep.calls\n")

    pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly").assert_outcomes(passed=1)

    assert (time.sleep, asyncio.sleep, imported_by_name) == before


def test_an_async_test_may_use_it(no_sleep: NoSleep) -> None:
    async def test() -> None:
        @agent(retry=FIVE_TIMES)
        async def fails(text: str) -> str:
            raise ConnectionError("cut")

        with pytest.raises(PipelineFailure):
            await arun(fails, text="x", store="memory://")

    asyncio.run(test())

    assert len(no_sleep.calls) == 3
