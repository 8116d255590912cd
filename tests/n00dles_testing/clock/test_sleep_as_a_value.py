"""`no_sleep` also sees a `time.sleep` that somebody else calls: it was passed on, or kept in something of a module."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from n00dles_testing import NoSleep
from n00dles_testing.no_sleep import sleepless

WAITS = {"real": time.sleep}


def by_default(seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
    sleep(seconds)


def by_name_only(seconds: float, *, sleep: Callable[[float], None] = time.sleep) -> None:
    sleep(seconds)


class Poll:
    plain = time.sleep
    static = staticmethod(time.sleep)

    def method(self, seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
        sleep(seconds)


def in_a_pool() -> None:
    with ThreadPoolExecutor() as pool:
        pool.submit(time.sleep, 20).result()


def in_a_thread() -> None:
    thread = threading.Thread(target=time.sleep, args=(20,))
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    "wait",
    [
        lambda: asyncio.run(asyncio.to_thread(time.sleep, 20)),
        in_a_pool,
        in_a_thread,
        lambda: list(map(time.sleep, [20])),
        lambda: WAITS["real"](20),
        lambda: by_default(20),
        lambda: by_name_only(20),
        lambda: Poll.plain(20),
        lambda: Poll().plain(20),  # type: ignore[misc, call-arg]
        lambda: Poll.static(20),
        lambda: Poll().method(20),
    ],
)
def test_it_is_recorded_and_not_slept(wait: Callable[[], object], no_sleep: NoSleep) -> None:
    begin = time.perf_counter()
    wait()

    assert time.perf_counter() - begin < 15
    assert [(call.seconds, call.is_blocking) for call in no_sleep.calls] == [(20, False)]


def test_all_of_it_is_as_it_was_afterwards() -> None:
    def kept() -> list[object]:
        named = list((by_name_only.__kwdefaults__ or {}).values())
        defaults = [by_default.__defaults__, Poll.method.__defaults__]
        return [WAITS["real"], *named, *defaults, vars(Poll)["plain"], vars(Poll)["static"]]

    before = kept()
    with sleepless():
        assert not any(now is then for now, then in zip(kept(), before, strict=True))

    assert all(now is then for now, then in zip(kept(), before, strict=True))


def test_a_loop_that_is_handed_a_sleep_is_blocked_by_it() -> None:
    async def handed() -> None:
        asyncio.get_running_loop().call_soon(time.sleep, 7)
        await asyncio.sleep(0.01)

    async def kept() -> None:
        WAITS["real"](8)

    with sleepless() as sleeps:
        asyncio.run(handed())
        asyncio.run(kept())

    assert [call.seconds for call in sleeps.blocking] == [7, 8]
    assert all("test_sleep_as_a_value.py:" in call.where for call in sleeps.blocking)
