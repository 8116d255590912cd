"""A worker inside this process: what it says and does of faults, of strange runs, and of the end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from n00dles import (
    ConfigurationError,
    InMemoryStateStore,
    Pipeline,
    PipelineContext,
    ReadOnlyStoreError,
    StateStoreError,
    agent,
    asubmit,
    pipeline,
)
from n00dles import worker as worker_module
from n00dles.worker import Note, RunWorker, by_name
from n00dles.worker_places import SUSPECT_LIVES, Places


@agent(retry=1)
async def shout(text: str) -> str:
    if text == "bad":
        raise ValueError("too loud")
    return text.upper()


FLOW = pipeline(shout, name="flow")


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "_SHORTEST_FAULT", 0.001)
    monkeypatch.setattr(worker_module, "_SHORTEST_IDLE", 0.001)


def worked(
    store: Any,
    *texts: str,
    whole: Pipeline = FLOW,
    beside: Iterable[Pipeline] = (),
    until: Callable[[Note], bool] | None = None,
    **options: Any,
) -> list[Note]:
    """Submit runs of FLOW, each with its text as its id, let a worker work, and return what it said."""
    notes: list[Note] = []

    async def main() -> None:
        for text in texts:
            await asubmit(FLOW, run_id=text, store=store, text=text)

        def tell(note: Note) -> None:
            notes.append(note)
            if until is not None and until(note):
                worker.drain()

        worker = RunWorker(
            {flow.name: flow for flow in (whole, *beside)}, store, tell, until_idle=until is None, **options
        )
        async with asyncio.timeout(30):
            assert await worker.work() == 0

    asyncio.run(main())
    return notes


def kinds(notes: list[Note]) -> list[str]:
    return [note.kind for note in notes]


def statuses(store: Any) -> dict[str, str]:
    return {run.run_id: run.status for run in asyncio.run(store.list_runs())}


def test_a_run_that_fails_is_told_with_its_reason_and_the_others_go_on() -> None:
    store = InMemoryStateStore()

    notes = worked(store, "a", "bad", "b", concurrency=1)

    assert kinds(notes)[1:-1] == ["claimed", "finished", "claimed", "failed", "claimed", "finished"]
    assert [(note.run_id, note.life, note.calls) for note in notes if note.kind == "finished"] == [
        ("a", 1, 1),
        ("b", 1, 1),
    ]
    assert "run 'bad' failed at node 'shout': ValueError: too loud" in notes[4].message
    assert statuses(store) == {"a": "finished", "bad": "failed", "b": "finished"}


def leave(text: str) -> str:
    sys.exit(3)


async def leave_async(text: str) -> str:
    raise KeyboardInterrupt


@pytest.mark.parametrize("body", [leave, leave_async])
@pytest.mark.parametrize("is_fan_out", [False, True])
def test_a_node_that_would_end_the_process_fails_its_run_and_not_the_worker(body: Any, is_fan_out: bool) -> None:
    store, bad = InMemoryStateStore(), agent(retry=1)(body).named("bad")
    leaving = pipeline(shout | bad if is_fan_out else bad, name="leaving")
    asyncio.run(asubmit(leaving, run_id="bad", store=store, text="x"))

    notes = worked(store, "a", beside=[leaving])

    (failed,) = (note for note in notes if note.kind == "failed")
    assert "run 'bad' failed at node 'bad'" in failed.message
    assert "which would have ended its worker" in failed.message
    assert statuses(store) == {"a": "finished", "bad": "failed"}


def test_no_more_runs_than_asked_for_are_worked_on_at_a_time() -> None:
    working, most = 0, 0

    @agent
    async def count(text: str) -> str:
        nonlocal working, most
        working += 1
        most = max(most, working)
        await asyncio.sleep(0.01)
        working -= 1
        return text

    store = InMemoryStateStore()
    notes = worked(store, *"abcdefgh", whole=pipeline(count, name="flow"), concurrency=3)

    assert most == 3
    assert kinds(notes).count("finished") == 8


class FailingClaims(InMemoryStateStore):
    """A store whose list, and so whose claims, fail a few times."""

    def __init__(self, times: int, error: Exception) -> None:
        super().__init__()
        self.left, self.error = times, error

    async def list_runs(self, **options: Any) -> Any:
        if self.left:
            self.left -= 1
            raise self.error
        return await super().list_runs(**options)


@pytest.mark.parametrize("error", [StateStoreError("the server is down"), OSError("the server is down")])
def test_a_fault_of_the_store_is_told_and_does_not_end_a_worker(error: Exception) -> None:
    store = FailingClaims(3, error)

    notes = worked(store, "a")

    assert kinds(notes) == ["started", *["store fault"] * 3, "store is back", "claimed", "finished", "ended"]
    assert notes[1].message.startswith(f"{type(error).__name__}: the server is down (tried again in ")


def test_a_store_that_lacks_a_package_ends_a_worker_at_once() -> None:
    store = FailingClaims(1, ConfigurationError("it needs the package redis"))

    with pytest.raises(ConfigurationError, match="the package redis"):
        worked(store, until=lambda _: False)


def test_a_store_that_takes_no_writes_ends_a_worker_at_its_start_and_later_is_waited_for() -> None:
    replica = ReadOnlyStoreError("it is a replica: name the primary")
    demoted = FailingClaims(0, replica)

    def demote(note: Note) -> bool:
        demoted.left += 3 * (note.kind == "claimed")
        return note.kind == "store is back"

    with pytest.raises(ReadOnlyStoreError, match="name the primary"):
        worked(FailingClaims(1, replica), "a", until=lambda _: False)
    notes = worked(demoted, "a", until=demote)

    assert kinds(notes).count("store fault") == 3
    assert notes[-1].kind == "ended"


def test_the_time_to_drain_counts_from_the_signal_and_not_from_the_end_of_a_claim() -> None:
    notes: list[Note] = []
    workers: list[RunWorker] = []

    class SlowClaims(InMemoryStateStore):
        async def list_runs(self, **options: Any) -> Any:
            workers[0].drain()
            await asyncio.sleep(0.6)
            return await super().list_runs(**options)

    @agent
    async def wait(text: str) -> str:
        await asyncio.sleep(30)
        return text

    async def main() -> None:
        store, flow = SlowClaims(), pipeline(wait, name="flow")
        workers.append(RunWorker({"flow": flow}, store, notes.append, drain_timeout=0.6))
        await asubmit(flow, run_id="a", store=store, text="a")
        async with asyncio.timeout(10):
            assert await workers[0].work() == 0

    asyncio.run(main())

    (released,) = (note for note in notes if note.kind == "released")
    assert released.seconds is not None
    assert released.seconds < 0.6  # what is left of its time, and not all of it anew


class FailingSaves(InMemoryStateStore):
    """A store that lets runs be claimed, and does not take the saves of some attempts."""

    left = 0

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        if ctx.lives and self.left:
            self.left -= 1
            raise StateStoreError("the disk is full", run_id=run_id)
        await super().save(run_id, ctx)


def test_a_run_that_is_not_saved_is_let_go_and_tried_again_later() -> None:
    store = FailingSaves()
    store.left = 6  # three attempts a save, so two lives

    notes = worked(store, "a")

    assert kinds(notes) == [
        *("started", "claimed", "released", "store fault", "claimed", "released", "store fault", "claimed"),
        *("finished", "store is back", "ended"),
    ]
    assert notes[2].message == "StateStoreError: the disk is full"
    assert asyncio.run(store.load("a")).lives == 1  # type: ignore[union-attr]


def test_a_worker_that_is_to_end_when_idle_gives_up_a_store_that_fails_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_module, "_LONGEST_FAULT", 0.001)
    monkeypatch.setattr("n00dles.checkpointing._FIRST_DELAY", 0.0)
    full, down = FailingSaves(), FailingClaims(1000, StateStoreError("the password is wrong"))
    full.left = 1000

    with pytest.raises(StateStoreError, match=r"gives up after 10 faults of the store in a row\..*password is wrong"):
        worked(down)
    with pytest.raises(StateStoreError, match=r"gives up after 10 faults .* run 'a' was not saved or read"):
        worked(full, "a")


def test_a_run_that_is_released_while_its_worker_looks_is_not_left_behind_by_until_idle() -> None:
    class Slow(FailingSaves):
        async def save(self, run_id: str, ctx: PipelineContext) -> None:
            await asyncio.sleep(0.02)
            await super().save(run_id, ctx)

        async def list_leases(self, run_ids: Any) -> Any:
            found = await super().list_leases(run_ids)
            await asyncio.sleep(0.2)  # what was seen to be held is free by the time that the claim is told
            return found

    store = Slow()
    store.left = 3

    assert kinds(worked(store, "a")).count("finished") == 1


def test_an_outage_that_all_runs_of_a_worker_meet_is_one_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "_SHORTEST_FAULT", 1.0)
    store = FailingSaves()
    store.left = 4 * 3  # three attempts a save
    faults: list[Note] = []

    def are_all_told(note: Note) -> bool:
        faults.extend([note] if note.kind == "store fault" else [])
        return len(faults) == 4

    worked(store, *"abcd", until=are_all_told)

    assert max(float(note.message.partition("tried again in ")[2].split()[0]) for note in faults) <= 1.0


def test_a_run_whose_pipeline_has_changed_is_left_alone_and_told_once() -> None:
    store = InMemoryStateStore()

    async def half_done() -> None:
        ctx = PipelineContext("old", {"text": "x"})
        ctx.pipeline, ctx.signature = "flow", ["gone(text: str) -> str"]
        ctx.checkpoint("gone", "y")
        await store.save("old", ctx)

    asyncio.run(half_done())
    before = asyncio.run(store.load("old"))

    def after_some_looks(note: Note) -> bool:
        return note.run_id == "b" and note.kind == "finished"

    notes = worked(store, "a", "b", concurrency=1, until=after_some_looks)
    after = asyncio.run(store.load("old"))

    told = [note for note in notes if note.run_id == "old"]
    assert kinds(told) == ["claimed", "left alone"]
    assert "PipelineChangedError: run 'old' cannot be resumed" in told[1].message
    assert before is not None
    assert after is not None
    assert before.to_dict() == after.to_dict()
    assert asyncio.run(store.list_leases(["old"])) == []


def test_a_run_that_was_deleted_after_it_was_claimed_is_lost() -> None:
    class Deleting(InMemoryStateStore):
        async def load(self, run_id: str) -> PipelineContext | None:
            found = await super().load(run_id)
            if run_id in await self._held():
                self.asked += 1
                if self.asked > 1:  # the first is the claim's own
                    await self.delete(run_id)
                    return None
            return found

        asked = 0

        async def _held(self) -> set[str]:
            return {lease.run_id for lease in await self.list_leases(["a"])}

    assert kinds(worked(Deleting(), "a")) == ["started", "claimed", "lost", "ended"]


def test_two_pipelines_of_one_name_are_refused_and_one_that_is_named_twice_is_not() -> None:
    other = pipeline(shout.named("other"), name="flow")

    with pytest.raises(ConfigurationError, match=r"two pipelines are named 'flow': a\.py:flow and b\.py:flow\."):
        by_name([("a.py:flow", FLOW), ("b.py:flow", other)])
    assert by_name([("a.py:flow", FLOW), ("a.py:flow", FLOW), ("a.py:shout", shout)]).keys() == {"flow", "shout"}


def test_a_worker_whose_pipeline_cannot_be_called_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    @agent(model="gpt-4o-mini")
    def ask(text: str) -> str:
        """Answer."""
        ...

    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        RunWorker({"ask": pipeline(ask)}, InMemoryStateStore(), print)


def test_a_suspect_works_alone_and_others_beside_each_other() -> None:
    log: list[str] = []

    async def work(places: Places, name: str, stalled: int) -> None:
        ctx = PipelineContext(name, {})
        ctx.stalled = stalled
        async with places.of(ctx):
            log.append(f"+{name}")
            await asyncio.sleep(0.01)
            log.append(f"-{name}")

    async def main() -> None:
        places = Places()
        suspect = SUSPECT_LIVES
        jobs = [("a", 0), ("S", suspect), ("b", 0), ("T", suspect)]
        tasks = [asyncio.create_task(work(places, *job)) for job in jobs]
        await asyncio.sleep(0)
        assert places.has_suspects
        await asyncio.gather(*tasks)
        assert not places.has_suspects

    asyncio.run(main())

    assert log[:4] == ["+a", "+b", "-a", "-b"]
    assert log[4:] in (["+S", "-S", "+T", "-T"], ["+T", "-T", "+S", "-S"])
