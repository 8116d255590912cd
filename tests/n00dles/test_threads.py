"""Calling blocking code from the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from n00dles.threads import call_in_thread, wait_out


def in_pool(work: Any) -> Any:
    async def main() -> Any:
        with ThreadPoolExecutor(1) as pool:
            return await work(pool)

    return asyncio.run(main())


def test_a_call_returns_or_raises_what_it_does_and_sees_the_callers_variables() -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    async def work(pool: ThreadPoolExecutor) -> Any:
        variable.set("set")
        with pytest.raises(ZeroDivisionError):
            await call_in_thread(pool, lambda: 1 / 0)
        return await call_in_thread(pool, lambda: (variable.get(), threading.current_thread()))

    value, thread = in_pool(work)

    assert value == "set"
    assert thread is not threading.main_thread()


def test_a_cancelled_call_that_has_begun_is_waited_for() -> None:
    began, gate, ended = threading.Event(), threading.Event(), list[str]()

    def body() -> None:
        began.set()
        gate.wait(20)
        ended.append("ended")

    async def work(pool: ThreadPoolExecutor) -> list[str]:
        task = asyncio.create_task(call_in_thread(pool, body))
        while not began.is_set():
            await asyncio.sleep(0.001)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return list(ended)

    assert in_pool(work) == ["ended"]


def test_a_cancelled_call_that_has_not_begun_never_does() -> None:
    gate, called = threading.Event(), list[str]()

    async def work(pool: ThreadPoolExecutor) -> None:
        pool.submit(gate.wait, 20)
        task = asyncio.create_task(call_in_thread(pool, lambda: called.append("called")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()

    in_pool(work)

    assert called == []


def test_a_stop_iteration_does_not_make_the_caller_wait_for_ever() -> None:
    async def work(pool: ThreadPoolExecutor) -> None:
        with pytest.raises(RuntimeError, match="StopIteration"):
            await asyncio.wait_for(call_in_thread(pool, lambda: next(iter(()))), 20)

    in_pool(work)


def test_waiting_out_goes_on_through_cancellations_and_drops_errors() -> None:
    async def main() -> list[bool]:
        gate = asyncio.Event()

        async def fails() -> None:
            await gate.wait()
            raise ValueError("dropped")

        jobs = [asyncio.ensure_future(fails()) for _ in range(2)]
        waiter = asyncio.create_task(wait_out(*jobs))
        early = []
        for _ in range(3):
            await asyncio.sleep(0)
            waiter.cancel()
            await asyncio.sleep(0)
            early.append(waiter.done())
        gate.set()
        await waiter
        return early

    assert asyncio.run(main()) == [False] * 3
