"""A life that ends in an orderly way is no death, and what a failing fan-out does not do any more."""

from __future__ import annotations

import asyncio

import pytest

from n00dles import (
    InMemoryStateStore,
    PipelineContext,
    PipelineFailure,
    RetryPolicy,
    StaleContextError,
    StateStore,
    agent,
    arun,
    parallel,
    pipeline,
    resume,
    run,
)
from n00dles.events import CheckpointSaved, Event
from n00dles.executor import MAX_STALLED_LIVES


@agent
async def slow(text: str) -> str:
    await asyncio.sleep(30)
    return text


def test_any_number_of_timeouts_is_no_death() -> None:
    store = InMemoryStateStore()

    for _ in range(MAX_STALLED_LIVES + 2):
        with pytest.raises(TimeoutError, match=r"run 'r' was not done within 0.01 s.*resume\(pipeline, 'r'\)"):
            run(pipeline(slow, name="p"), run_id="r", store=store, timeout=0.01, text="x")

    stored = asyncio.run(store.load("r"))
    assert stored is not None
    assert (stored.lives, stored.stalled) == (MAX_STALLED_LIVES + 2, 0)


def test_a_run_without_an_id_that_times_out_names_the_one_it_was_given() -> None:
    store = InMemoryStateStore()

    with pytest.raises(TimeoutError) as raised:
        run(pipeline(slow, name="p"), store=store, timeout=0.01, text="x")

    (stored,) = asyncio.run(store.list_runs())
    assert repr(stored.run_id) in str(raised.value)


def test_a_resume_has_a_timeout_too() -> None:
    store = InMemoryStateStore()
    asyncio.run(store.load_or_create("r", {"text": "x"}))

    with pytest.raises(TimeoutError, match="run 'r' was not done"):
        resume(pipeline(slow, name="p"), "r", store=store, timeout=0.01)


def test_a_cancelled_life_is_told_to_observers() -> None:
    seen: list[str] = []

    async def main() -> None:
        life = asyncio.create_task(
            arun(slow, store=InMemoryStateStore(), observers=[lambda event: seen.append(event.name)], text="x")
        )
        while "node_started" not in seen:
            await asyncio.sleep(0)
        life.cancel()
        await asyncio.wait([life])

    asyncio.run(main())

    assert seen[-2:] == ["checkpoint_saving", "checkpoint_saved"]
    assert "run_failed" in seen


def test_once_a_member_has_failed_no_other_call_is_made() -> None:
    calls: list[str] = []
    boom_may_fail = asyncio.Event()

    @agent
    async def first(text: str) -> str:
        calls.append("first")
        boom_may_fail.set()
        await asyncio.sleep(0.05)
        return text

    @agent
    async def second(text: str) -> str:
        calls.append("second")
        return text

    @agent(retry=1)
    async def boom(text: str) -> str:
        await boom_may_fail.wait()
        raise ValueError("no")

    store = InMemoryStateStore()
    whole = pipeline(parallel(first >> second, boom))

    with pytest.raises(PipelineFailure, match="boom"):
        run(whole, run_id="r", store=store, text="x")

    stored = asyncio.run(store.load("r"))
    assert stored is not None
    assert calls == ["first"]
    assert stored.order == ["first"]


def test_a_member_that_waits_to_try_again_does_not_once_another_has_failed() -> None:
    calls: list[str] = []

    @agent(retry=RetryPolicy(5, base_delay=0.05, jitter=False))
    async def retried(text: str) -> str:
        calls.append("retried")
        raise ConnectionError("not now")

    @agent(retry=1)
    async def boom(text: str) -> str:
        while not calls:
            await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(PipelineFailure, match="boom"):
        run(retried | boom, store=InMemoryStateStore(), text="x")

    assert calls == ["retried"]


def test_a_stale_context_is_not_kept_for_the_next_resume() -> None:
    class Overtaken(InMemoryStateStore):
        """Loses the reply of one save, and lets another worker go on with the run before it is asked again."""

        overtaken = False

        async def save(self, run_id: str, ctx: PipelineContext) -> None:
            await super().save(run_id, ctx)
            if ctx.completed and not self.overtaken:
                self.overtaken = True
                other = await self.load(run_id)
                assert other is not None
                other.begin_life()
                await super().save(run_id, other)
                ctx.revision -= 1
                raise OSError("the reply was lost")

    @agent
    async def first(text: str) -> str:
        return text

    @agent
    async def second(text: str) -> str:
        return text

    store: StateStore = Overtaken()
    whole = pipeline(first >> second, name="p")

    with pytest.raises(StaleContextError):
        run(whole, run_id="r", store=store, text="x")

    assert resume(whole, "r", store=store).output == "x"


def test_a_call_under_way_is_no_attempt_yet_in_what_a_siblings_save_stores() -> None:
    quick_is_saved = asyncio.Event()

    @agent
    async def quick(text: str) -> str:
        return text

    @agent
    async def lasting(text: str) -> str:
        await quick_is_saved.wait()
        stored = await store.load("r")
        assert stored is not None
        seen.append(stored.record("lasting").attempts)
        return text

    def note(event: Event) -> None:
        if isinstance(event, CheckpointSaved) and "quick" in event.nodes:
            quick_is_saved.set()

    store, seen = InMemoryStateStore(), list[int]()

    result = run(quick | lasting, run_id="r", store=store, observers=[note], text="x")

    assert seen == [0]
    assert [trace.attempts for trace in result.agent_traces] == [1, 1]
