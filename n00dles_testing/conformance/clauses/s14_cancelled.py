"""S14: a cancelled save is done or not done, never late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from ..cancelling import Moment, When, cancel_a_save, time_a_save
from ..expect import BrokenClause, VacuousCheck
from ..registry import clause
from ..scenario import Handle, Scenario
from ..subject import StoreSubject

T = TypeVar("T")

_MOST_AWAITS = 8
_LARGE = 20_000
_OTHERS = 3
_LEAST_WAIT, _LEAST_LIMIT = 0.15, 5.0
_SAVES_WORTH_OF_WAITING, _SAVES_WORTH_OF_A_LIMIT = 3, 100
"""How long is waited for what may land late, and for a call to return: as many times what a save takes, at least."""


@dataclass(slots=True)
class _Pace:
    """How often an undisturbed save gives way to others, and how long it takes."""

    awaits: int
    seconds: float

    @property
    def limit(self) -> float:
        return max(_LEAST_LIMIT, _SAVES_WORTH_OF_A_LIMIT * self.seconds)

    @property
    def landing(self) -> float:
        return max(_LEAST_WAIT, _SAVES_WORTH_OF_WAITING * self.seconds)

    def moments(self) -> list[Moment]:
        """Return when to cancel: before it begins, at each await, and in the middle of what others do for it."""
        # A store may give way at one save and not at the next, so the first await is always tried.
        places = {1, max(1, self.awaits), *range(1, self.awaits + 1, self.awaits // _MOST_AWAITS + 1)}
        awaits = [Moment(when, at) for at in sorted(places) for when in (When.WAITS, When.IS_OVER)]
        times = [Moment(When.PART, part=part, seconds=self.seconds) for part in (0.25, 0.5, 0.75)]
        limits = [Moment(When.LIMIT, part=part, seconds=self.seconds) for part in (0.0, 0.5)]
        return [Moment(When.BEFORE), *awaits, *(times if self.awaits else ()), *limits]


@dataclass(slots=True)
class _Met:
    """How many saves gave way, where they were to be cancelled, and how many cancellations came there."""

    gave_way: int = 0
    hits: int = 0


@clause("S14", level=1, title="a cancelled save is done or not done, never late")
async def cancelled_saves(subject: StoreSubject) -> None:
    """A cancelled `save` is done or not done, and never late; the store is usable at once.

    The task that awaits a save is cancelled: before it has begun, at each of its awaits, as soon as what it awaits is
    done, after parts of the time that a save takes, and by `asyncio.timeout`. As soon as the task has ended, the run is
    loaded, and other runs at the same time. The run is then as it was, or has the whole save in it; each other run is
    itself: a reply that nobody has waited for must not be taken for the next one. Then a fresh handle saves another
    node. From there on nothing of the cancelled save may appear: not at the next load, not after a time in which it
    must have landed, not after the store was opened again. Other runs are left alone once they were loaded behind the
    cancellation: what was seen then is still there after that time, since nobody has called the store in between. Every
    call has to return within 5 s (or a hundred times what a save takes): a lock that is still held, or a connection
    that is never given back, is found so.

    That cancellations met saves in the middle is proven, or else the check is VACUOUS. A save that gives way to nothing
    in the event loop cannot be met there; it is done, or has not begun, and the report says so. Methods that are not
    async run in threads, as n00dles calls them: it awaits their end.

    Seen in: langchain-ai/langgraph PR #6701 and PR #7168 (a save whose caller was cancelled still lands, behind newer
    ones).
    """
    met = _Met()
    for size, text in (("small", "short"), ("large", "text, " * _LARGE + "text")):
        pace = await _pace(subject, text)
        if pace is None or subject.findings:
            return
        await _cancel_each(subject, f"saves of a {size} output are cancelled", pace, text, met)
        if pace.awaits and not subject.findings:
            title = f"saves of a {size} output are cancelled, and what is seen then stays"
            await _leave_each_alone(subject, title, pace, text)
    if met.hits or subject.findings:
        return
    if met.gave_way:
        raise VacuousCheck(f"{met.gave_way} saves were under way when they were cancelled, and none of them noticed")
    subject.notes.append("a save gives way to nothing in the event loop: a cancellation comes before it, or after it")


async def _pace(subject: StoreSubject, text: str) -> _Pace | None:
    async with subject.scenario(f"a save of {len(text)} characters is not cancelled") as s:
        handle = await s.create({"topic": "cats"})
        await s.save(handle, {"a": "warms up"})
        pace = _Pace(*await time_a_save(s, handle, {"b": text}))
        await s.expect_acknowledged(handle.run_id, because="nobody has cancelled the save")
        return pace
    return None


async def _cancel_each(subject: StoreSubject, title: str, pace: _Pace, text: str, met: _Met) -> None:
    async with subject.scenario(title) as s:
        others = [await s.create({"other": f"run {number}"}) for number in range(_OTHERS)]
        for number, handle in enumerate(others):
            await s.save(handle, {"node": f"of run {number}"})
        runs = {await _cancel(s, moment, others, _Save(text, pace, met)): moment for moment in pace.moments()}
        if met.hits:
            s.tell(f"for {pace.landing:.2f} s whatever is left of the cancelled saves may land")
            await asyncio.sleep(pace.landing)
        for run_id, moment in runs.items():
            because = f"a save of it was cancelled {moment}, and nothing of that may land behind a newer one"
            await s.expect_acknowledged(run_id, because=because)
        if await s.keeps_after_reopening(others[0].run_id):
            for run_id in runs:
                await s.expect_acknowledged(run_id, because="so the run was before the store was opened again")


async def _leave_each_alone(subject: StoreSubject, title: str, pace: _Pace, text: str) -> None:
    """Cancel saves, load each run, and load it again after a while in which nobody saves.

    A newer save could cover, or drop, what lands late; without one the run must stay as it was seen.
    """
    async with subject.scenario(title) as s:
        seen: dict[str, Moment] = {}
        moments = pace.moments()
        handles = [await s.create({"topic": "cats"}) for _ in moments]
        for handle in handles:
            await s.save(handle, {"a": "before"})
        for handle, moment in zip(handles, moments, strict=True):
            cancelled = await cancel_a_save(s, handle, {"b": text}, moment, limit=pace.limit)
            found: Handle = await _within(s, pace.limit, s.load(handle.run_id), "load_or_create")
            _expect_done_or_not(s, found, {"b": text}, is_acknowledged=cancelled.is_acknowledged)
            seen[handle.run_id] = moment
        s.tell(f"for {2 * pace.landing:.2f} s nobody calls the store")
        await asyncio.sleep(2 * pace.landing)
        for run_id, moment in seen.items():
            because = f"so it was seen after a save of it was cancelled {moment}, and nobody has saved it since"
            await s.expect_acknowledged(run_id, because=because)


def _expect_done_or_not(s: Scenario, found: Handle, outputs: dict[str, str], *, is_acknowledged: bool) -> None:
    """Take what was found behind a cancelled save for what is stored: the run as before, or with the whole save."""
    old = s.acknowledged[found.run_id]
    new = old.after(outputs)
    if is_acknowledged:
        because, s.acknowledged[found.run_id] = "the save returned, though it was cancelled", new
    else:
        because = "the cancelled save is done or not done, whole"
        s.acknowledged[found.run_id] = new if "b" in found.record.completed else old
    s.expect(found.record).equals(s.acknowledged[found.run_id], because=because)


@dataclass(frozen=True, slots=True)
class _Save:
    """What is saved and cancelled."""

    text: str
    pace: _Pace
    met: _Met


async def _cancel(s: Scenario, moment: Moment, others: list[Handle], save: _Save) -> str:
    """Cancel a save of a fresh run, use the store at once, and save the run again; return its id."""
    outputs, pace, met = {"b": save.text}, save.pace, save.met
    handle = await s.create({"topic": "cats"})
    await s.save(handle, {"a": "before"})
    cancelled = await cancel_a_save(s, handle, outputs, moment, limit=pace.limit)
    met.hits += cancelled.is_hit
    met.gave_way += moment.when is When.WAITS and cancelled.awaits >= moment.at
    found = await _usable_at_once(s, handle, others, pace)
    _expect_done_or_not(s, found, outputs, is_acknowledged=cancelled.is_acknowledged)
    await _within(s, pace.limit, s.save(found, {"c": "newer, of a fresh handle"}), "save")
    await s.expect_acknowledged(handle.run_id, because="a newer save was acknowledged behind the cancelled one")
    return handle.run_id


async def _usable_at_once(s: Scenario, handle: Handle, others: list[Handle], pace: _Pace) -> Handle:
    """Load the run and the others, all at the same time; return the run. Each other one must be itself."""
    loads = asyncio.gather(*(s.load(each.run_id) for each in (handle, *others)))
    try:
        found: list[Handle] = await _within(s, pace.limit, loads, "load_or_create")
    except BrokenClause as broken:
        if any(label == "allowed" for label, _ in broken.details):
            raise
        details = (("allowed", "each call gets its own reply"), ("came", broken.message))
        why = ("why", "a save was cancelled just before; its reply, or its state, is no concern of the next call")
        raise BrokenClause(broken.message, (*broken.details, *details, why)) from broken
    for each in found[1:]:
        s.expect(each.record).equals(
            s.acknowledged[each.run_id], because="it was asked for by its id, after a save of another run was cancelled"
        )
    return found[0]


async def _within(s: Scenario, limit: float, call: Awaitable[T], name: str) -> T:
    """Return what the call returns, which must not take longer than `limit` seconds."""
    task = asyncio.ensure_future(call)
    await asyncio.wait({task}, timeout=limit)
    if not task.done():
        s.tell(f"{name} has not returned")
        raise BrokenClause(
            f"after a cancelled save, {name} has not returned within {limit:.0f} s",
            (
                ("allowed", "the store is usable at once"),
                ("came", "nothing"),
                ("why", "a lock that nobody gives back, or a reply that never comes, stops every other run, too"),
            ),
        )
    return task.result()
