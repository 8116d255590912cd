"""S12: newest is decided by sequence, not by a clock."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ..clock import SkewedClock, WallClock
from ..durability import keeps_runs
from ..elsewhere import Elsewhere
from ..registry import clause
from ..scenario import Scenario
from ..subject import StoreSubject

_HOUR = 3600
_DAY = 24 * _HOUR
_SAVES = 260
"""More than a byte counts to, and than a number of two digits."""
_PART_OF_A_CALL = 0.5
_TURNS = 2
_SAVES_OF_A_TURN = 3
_ELSEWHERE = "a process whose clock is an hour behind goes on, and this one after it"


@dataclass(frozen=True, slots=True)
class _Clock:
    """How a clock goes: what each save adds to it in seconds, and each look at it in nanoseconds."""

    title: str
    steps: tuple[int, ...]
    tick_ns: int


_MICROSECOND = 1_000
_CLOCKS = (
    _Clock("stands still", (0, 0, 0, 0, 0), 0),
    _Clock("shows the same microsecond", (0, 0, 0, 0, 0), 1),
    _Clock("is set back by an hour before each save", (-_HOUR,) * 5, _MICROSECOND),
    _Clock("is set back by an hour once, and goes on", (0, 1, -_HOUR, 1, 1), _MICROSECOND),
    _Clock("is set 40 days ahead, and back by 10", (0, 40 * _DAY, 1, -10 * _DAY, 1), _MICROSECOND),
    _Clock("is set back and forth", (24 * _HOUR, -_HOUR, 7 * _HOUR, -48 * _HOUR, 1), _MICROSECOND),
)


@clause("S12", level=1, title="newest is decided by sequence, not by clock", sets_the_clock=True)
async def sequence_decides(subject: StoreSubject) -> None:
    """The last acknowledged save is loaded, whatever the clock showed when it was made.

    The clock of the process stands still, shows the same microsecond again, or is set back by an hour between two
    saves, or set 40 days ahead (a run does not expire unasked: it may wait that long for a person's answer), as it
    happens with a virtual machine that is resumed, or a host that is corrected; the times of the store's files follow
    it. After each save, and after the store is opened again, the run must be as it was last acknowledged; so must one
    that is deleted and created anew at an earlier hour. No save may be refused: nobody else has saved. Waiting goes on
    as ever, since monotonic clocks are left alone. The clock of a database server, or of a library that does not ask
    Python, cannot be set here.

    Two hosts do not agree on the time either. Where a run is found by other processes, it goes on in one whose clock is
    an hour behind, and here again, in turn, each opening the store when the other has closed it: after each save the
    run is as it was last acknowledged, there and here. A store that takes its order from times which only rise, as
    generators of UUIDv7 and ULIDs do, passes in one process, which knows the last time that it has given out; another
    process does not. A store with which the same turns fail under one clock is not tried so, which is noted.

    Nor does a sequence end: one run is saved 260 times, more than a counter of a byte or of two digits holds, and it
    and the runs beside it are as they were last acknowledged (of a slow store it is fewer, which is noted).

    Seen in: microsoft/agent-framework #8513, langchain-ai/langgraphjs PR #2854 ("latest" by time stamp: ties and a
    clock that was set back give an older state), langchain-ai/langgraph #7179 (ids by times that only rise within a
    process: what one with a slower clock saves is passed over), google/adk-python #4751 (a save in the same microsecond
    is taken for a stale one).
    """
    await _many_saves(subject)
    await _another_clock_elsewhere(subject)
    for clock in _CLOCKS:
        async with subject.scenario(f"the clock {clock.title}") as s:
            await _under(s, clock)


async def _many_saves(subject: StoreSubject) -> None:
    """No clock is set: the sequence itself is long."""
    async with subject.scenario(f"{_SAVES} saves of one run, beside two others") as s:
        run_ids = [(await s.create({"topic": topic})).run_id for topic in ("cats", "dogs", "birds")]
        for run_id in run_ids:
            await s.save(await s.load(run_id), {"researcher": run_id})
        handle = await s.load(run_ids[0])
        ends = time.monotonic() + subject.call_seconds * _PART_OF_A_CALL
        for number in range(1, _SAVES + 1):
            await s.save(handle, {f"node{number}": number})
            if number < _SAVES and time.monotonic() > ends:
                subject.notes.append(f"{number} saves of one run were tried, not {_SAVES}: they take long")
                break

        # As long, in one save: whether so many nodes come back is for S02.
        control = await s.create({"topic": "fish"})
        await s.save(control, dict(handle.context.completed))
        if (await s.load(control.run_id)).record != s.acknowledged[control.run_id]:
            return
        because = "each save was acknowledged, and no number of them makes one older"
        for run_id in run_ids:
            await s.expect_acknowledged(run_id, because=because)
        if await s.keeps_after_reopening(control.run_id, *run_ids[1:]):
            await s.expect_acknowledged(run_ids[0], because=because)


async def _another_clock_elsewhere(subject: StoreSubject) -> None:
    """Before any clock is set here: the last time that a library has used in this process is the true one yet."""
    if not await keeps_runs(subject):
        return
    if not await _goes_on_under_one_clock(subject):
        subject.untried.append(_ELSEWHERE)
        why = "that comes out wrong under one clock, too (see C01 and W04)"
        subject.notes.append(f"not tried: {_ELSEWHERE}: {why}")
        return
    async with subject.scenario(_ELSEWHERE) as s:
        await _in_turn(s, -_HOUR)


async def _goes_on_under_one_clock(subject: StoreSubject) -> bool:
    async with subject.probe("another process goes on, and this one after it") as s:
        await _in_turn(s, 0)
        return True
    return False


async def _in_turn(s: Scenario, seconds: int) -> None:
    """Save a run here, and in a process whose clock is so many seconds ahead of this one's."""
    run_id = (await s.create({"topic": "cats"})).run_id
    async with s.elsewhere(patience=s.subject.patience) as other:
        await other.set_clock(seconds)
        there = SkewedClock(seconds)
        for turn in range(_TURNS):
            handle = await s.load(run_id)
            for number in range(_SAVES_OF_A_TURN):
                await s.save(handle, {f"here{turn}{number}": {"text": f"save {number} of turn {turn}"}})
            await s.expect_acknowledged(
                run_id, because="this was the last save, and the clock is that of all before it"
            )
            await s.close()
            there.leave_files(s.location)
            await _turn_elsewhere(s, other, run_id, f"there{turn}")
            there.date_files(s.location)
            await s.expect_acknowledged(run_id, because="the other process has saved last, whatever its clock showed")


async def _turn_elsewhere(s: Scenario, other: Elsewhere, run_id: str, start: str) -> None:
    last = await other.load(run_id)
    s.expect(last).equals(s.acknowledged[run_id], because="this was the last save, whatever the clock there shows")
    for number in range(_SAVES_OF_A_TURN):
        await other.save(run_id, {f"{start}{number}": {"text": f"save {number} elsewhere"}})
        came = await other.load(run_id)
        s.expect(came).equals(s.acknowledged[run_id], because="this process has saved last, whatever its clock shows")
    await other.close()


async def _under(s: Scenario, clock: _Clock) -> None:
    # Before the clock is set: what is imported, or built, at first use.
    other = await s.create({"topic": "dogs"})
    await s.save(other, {"researcher": "bark"})
    forgets = await _forgets_what_is_deleted(s)
    shown = WallClock(clock.tick_ns)
    shown.date_files(s.location)
    with shown.installed():
        run_id = (await s.create({"topic": "cats"})).run_id
        await _save_in_turn(s, shown, clock, run_id, "a")
        await s.expect_acknowledged(other.run_id, because="it was saved before the clock was set, and never deleted")
        if await s.keeps_after_reopening(other.run_id):
            await s.expect_acknowledged(run_id, because="the store was opened again; the last save is the newest")
            await _save_in_turn(s, shown, clock, run_id, "b")
        if not forgets:
            return
        await s.delete(run_id)
        shown.date_files(s.location)
        _set(s, shown, clock.steps[-1])
        await s.create({"topic": "cats, anew"}, run_id)
        await _save_in_turn(s, shown, clock, run_id, "c")


async def _forgets_what_is_deleted(s: Scenario) -> bool:
    """Whether a run that is deleted and created anew is new, under a clock that goes on; if not, that is S07's."""
    run_id = (await s.create({"topic": "birds"})).run_id
    await s.save(await s.load(run_id), {"researcher": "sing"})
    await s.delete(run_id)
    return (await s.create({"topic": "birds, anew"}, run_id)).record == s.acknowledged[run_id]


async def _save_in_turn(s: Scenario, shown: WallClock, clock: _Clock, run_id: str, start: str) -> None:
    """Save through one handle, and now and then through another that has just been loaded."""
    handle = await s.load(run_id)
    for number, step in enumerate(clock.steps):
        _set(s, shown, step)
        if number % 2:
            handle = await s.load(run_id)
        await s.save(handle, {f"{start}{number}": {"text": f"save {number}"}})
        shown.date_files(s.location)
        await s.expect_acknowledged(run_id, because="this was the last save, whatever the clock shows")


def _set(s: Scenario, shown: WallClock, step: int) -> None:
    shown.offset += step
    s.tell(f"the clock shows {shown.offset:+} s")
