"""One timer for all calls: who is overdue is ended, who is not goes on, and a foreign cancellation stays one."""

from __future__ import annotations

import asyncio

import pytest

from n00dles.time_limits import TimeLimits


async def slow(limits: TimeLimits, seconds: float) -> str:
    try:
        with limits.of(seconds):
            await asyncio.Event().wait()
    except TimeoutError:
        return f"ended after {seconds}"
    return "not ended"


@pytest.mark.asyncio
async def test_a_shorter_limit_that_starts_later_ends_first() -> None:
    limits = TimeLimits()
    ended: list[str] = []

    async def noted(seconds: float) -> None:
        ended.append(await slow(limits, seconds))

    await asyncio.gather(noted(0.08), noted(0.02), noted(0.05))

    assert ended == ["ended after 0.02", "ended after 0.05", "ended after 0.08"]


@pytest.mark.asyncio
async def test_the_timer_of_a_call_that_is_done_does_not_end_a_later_one() -> None:
    limits = TimeLimits()
    with limits.of(0.01):
        pass

    with limits.of(60) as later:
        await asyncio.sleep(0.03)

    assert not later.expired()
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


@pytest.mark.asyncio
async def test_a_cancellation_by_somebody_else_is_no_timeout() -> None:
    limits = TimeLimits()
    task = asyncio.create_task(slow(limits, 60))
    await asyncio.sleep(0)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.asyncio
async def test_a_block_that_swallows_its_end_is_left_as_it_ends_itself() -> None:
    limits = TimeLimits()

    with limits.of(0.01) as limit:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            swallowed = True

    assert swallowed
    assert limit.expired()
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


@pytest.mark.asyncio
async def test_nothing_is_armed_after_close() -> None:
    limits = TimeLimits()
    loop = asyncio.get_running_loop()
    with limits.of(30):
        armed = [handle for handle in loop._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]

    limits.close()

    assert len(armed) == 1
    assert all(handle.cancelled() for handle in loop._scheduled)  # type: ignore[attr-defined]
