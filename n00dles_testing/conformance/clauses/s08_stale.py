"""S08: a save from an older state is refused or merged, and takes nothing away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..records import Record, difference
from ..registry import clause
from ..scenario import Handle, Scenario
from ..subject import StoreSubject

_INPUTS = {"topic": "cats"}
_LARGE = (20_000, 300_000)
"""In bytes: what some stores keep outside the record, and write before they compare."""


@clause("S08", level=1, title="a save from an older state takes nothing away")
async def stale_saves(subject: StoreSubject) -> None:
    """A save from an older revision is refused, and then changes nothing; or it is merged, and loses nothing.

    Two workers load one run, each completes a node and saves. A store that keeps a revision refuses the second one; a
    store that keeps none may take it, if the record then holds both nodes. What may never happen is that a completed
    node which was acknowledged disappears: it would be called, and paid for, again. That holds for a worker that is one
    save behind or many, that tries again, that has completed the same node with another output (also one of 20 or 300
    KB, which a store may keep outside the record), that saves nothing new, and that has loaded the run before the store
    was opened again. Whoever was refused loads the run again, and goes on.

    Seen in: google/adk-python #4751 and #3717 (a check of timestamps, then reload-and-write; two servers lost events),
    langchain-ai/langgraph #8796 (a late worker forks the run).
    """
    ends: Counter[str] = Counter()
    await _two_workers(subject, ends)
    await _many_saves_behind(subject, ends)
    await _the_same_node(subject, ends)
    for size in _LARGE:
        await _the_same_large_node(subject, ends, size)
    await _nothing_new(subject, ends)
    await _five_workers_in_turn(subject, ends)
    await _loaded_before_reopening(subject, ends)
    if ends:
        subject.notes.append(f"of {ends.total()} stale saves {', '.join(f'{n} were {end}' for end, n in ends.items())}")


async def _two_workers(subject: StoreSubject, ends: Counter[str]) -> None:
    async with subject.scenario("two workers load a run, and each saves a node") as s:
        first = await s.create(_INPUTS)
        await s.save(first, {"researcher": {"facts": ["purr"]}})
        second = await s.load(first.run_id)
        await s.save(first, {"writer": "On Cats"})

        await _stale_save(s, second, {"critic": "approved"}, ends)
        await _goes_on(s, first.run_id)


async def _many_saves_behind(subject: StoreSubject, ends: Counter[str]) -> None:
    async with subject.scenario("a worker that is six saves behind saves two nodes, and tries again") as s:
        late = await s.create(_INPUTS)
        worker = await s.load(late.run_id)
        for save in range(6):
            await s.save(worker, {f"node{save}": {"by": "the worker that went on"}})

        await _stale_save(s, late, {"late0": "by the late one", "late1": ["too"]}, ends)
        for attempt in range(2):
            await _stale_save(s, late, {f"late{attempt + 2}": f"attempt {attempt + 2}"}, ends)
        await _goes_on(s, late.run_id)


async def _the_same_node(subject: StoreSubject, ends: Counter[str]) -> None:
    async with subject.scenario("two workers complete the same node with different outputs") as s:
        first = await s.create(_INPUTS)
        second = await s.load(first.run_id)
        await s.save(first, {"researcher": "purr", "writer": "On Cats"})

        await _stale_save(s, second, {"researcher": "meow"}, ends)
        await _goes_on(s, first.run_id)


async def _the_same_large_node(subject: StoreSubject, ends: Counter[str], size: int) -> None:
    """The late one completes a node that is there, and one that is not."""
    async with subject.scenario(f"two workers complete the same node with outputs of {size} bytes") as s:
        first = await s.create(_INPUTS)
        second = await s.load(first.run_id)
        await s.save(first, {"researcher": "purr." * (size // 5), "writer": "On Cats"})

        await _stale_save(s, second, {"researcher": "meow." * (size // 5), "critic": "hiss." * (size // 5)}, ends)
        await _goes_on(s, first.run_id)


async def _nothing_new(subject: StoreSubject, ends: Counter[str]) -> None:
    async with subject.scenario("a worker saves an older state, with nothing new in it") as s:
        first = await s.create(_INPUTS)
        await s.save(first, {"researcher": "purr"})
        second = await s.load(first.run_id)
        await s.save(first, {"writer": "On Cats"})

        await _stale_save(s, second, {}, ends)
        await _goes_on(s, first.run_id)


async def _five_workers_in_turn(subject: StoreSubject, ends: Counter[str]) -> None:
    async with subject.scenario("five workers load a run, and save one after the other") as s:
        run_id = (await s.create(_INPUTS)).run_id
        first, *others = [await s.load(run_id) for _ in range(5)]
        await s.save(first, {"node0": "by worker 0"})

        for number, worker in enumerate(others, start=1):
            await _stale_save(s, worker, {f"node{number}": f"by worker {number}"}, ends)
        await _goes_on(s, run_id)


async def _loaded_before_reopening(subject: StoreSubject, ends: Counter[str]) -> None:
    async with subject.scenario("a worker has loaded the run before the store was opened again") as s:
        first = await s.create(_INPUTS)
        second = await s.load(first.run_id)
        await s.save(first, {"researcher": "purr"})
        if not await s.keeps_after_reopening(first.run_id):
            return
        third = await s.load(first.run_id)
        await s.save(third, {"writer": "On Cats"})

        await _stale_save(s, second, {"critic": "approved"}, ends)
        await _goes_on(s, first.run_id)


async def _stale_save(s: Scenario, worker: Handle, outputs: Mapping[str, Any], ends: Counter[str]) -> None:
    before = s.acknowledged[worker.run_id]

    is_taken = await s.late_save(worker, outputs)

    came = (await s.load(worker.run_id)).record
    if not is_taken:
        s.expect(came).equals(before, because="the stale save was refused, so the run stays as it was")
        ends["refused"] += 1
        return
    allowed = _both(before, outputs, came)
    s.expect(came.by_name()).equals(allowed.by_name(), because="both saves were acknowledged, so each node is there")
    s.acknowledged[worker.run_id] = came
    ends["merged"] += 1


async def _goes_on(s: Scenario, run_id: str) -> None:
    """Whoever loads the run now has all of it, and can save."""
    worker = await s.load(run_id)
    await s.save(worker, {"z-last": "after loading again"})
    await s.expect_acknowledged(run_id, because="this worker had loaded the newest state, so it could go on")


def _both(before: Record, outputs: Mapping[str, Any], came: Record) -> Record:
    """Return what a merge has to hold; of a node that both completed, either output."""
    both = before.after(outputs)
    for node in before.completed.keys() & outputs.keys() & came.completed.keys():
        if difference(before.completed[node], came.completed[node]) is None:
            both.completed[node] = came.completed[node]
    return both
