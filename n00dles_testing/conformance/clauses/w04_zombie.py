"""W04: a worker that was stopped, and wakes up when another has gone on, takes nothing back."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from ...faults import IOCall, Seam, When
from ..child import still_alive
from ..disturbed import Step, play, told
from ..durability import require_durable
from ..elsewhere import Elsewhere
from ..expect import BrokenClause, VacuousCheck
from ..late_saves import expect_nothing_lost
from ..many_workers import require_shared
from ..player import Player
from ..records import Record
from ..registry import clause
from ..scenario import Scenario
from ..spread import spread
from ..subject import StoreSubject
from ..target import StoreTarget

_INPUTS = {"topic": "cats"}
_FIRST = {"researcher": {"facts": ["purr"]}}
_LATE = {"writer": {"text": "by the worker that was stopped"}}
_SECONDS_TO_BREAK_A_LOCK = 1.5
_TIMES_UNDISTURBED = 20
"""So many times what a save takes here, with nobody stopped, is given as well: on a busy machine it takes longer."""
_PART_OF_A_CALL = 0.5
_STOPS = 8


@clause("W04", level=4, title="a worker that was stopped and wakes up takes nothing back")
async def zombies(subject: StoreSubject) -> None:
    """A worker that was stopped, and wakes up when another has gone on, is refused, and the record does not go back.

    A laptop is closed, a container is frozen, a virtual machine moves, a garbage collector takes its time: a worker
    stands still, everybody takes it for dead, another one resumes its run and finishes or deletes it; then the first
    one wakes up, and does what it was about to do. No lease helps, since it looked at its lease before. So a process is
    stopped by SIGSTOP before its save, which the system confirms; this process goes on with the run, finishes it,
    deletes it, or deletes it and creates it anew; SIGCONT. The save must be refused, and change nothing. A store that
    keeps no revision may merge it, if no completed node is lost; which output then stays of a node that both have
    completed is noted. A run that was deleted stays away, and one that was finished stays finished.

    Then the worker is stopped inside its save, before each call by which the store does it, as far as Python tells
    of these: between a look at the revision and the write. Others may find the run locked then, and have to wait (they
    are given 1.5 s, within which some stores break a lock that they take for old); or else what they have saved
    meanwhile must still be there when the first one has woken up.

    Seen in: langchain-ai/langgraph #8796 (a worker that was stopped in a model call wakes up and forks the run).
    """
    await require_durable(subject)
    await require_shared(subject)
    ends: Counter[str] = Counter()
    await _others_finish(subject, ends)
    await _others_complete_the_same_node(subject, ends)
    await _others_delete(subject)
    await _others_begin_again(subject)
    if not subject.findings:
        await _stopped_inside(subject)
    if ends:
        subject.notes.append(
            "a stopped worker's save was " + "; ".join(f"{end} ({n} times)" for end, n in ends.items())
        )


async def _others_finish(subject: StoreSubject, ends: Counter[str]) -> None:
    async with subject.scenario("a worker is stopped before its save, another finishes the run") as s:
        status = ""

        async def finish(run_id: str) -> None:
            nonlocal status
            handle = await s.load(run_id)
            await s.save(handle, {"critic": "approved"})
            handle.context.status = "finished"
            await s.save(handle, {"editor": ["printed"]})
            status = (await s.load(run_id)).context.status

        async with s.elsewhere() as worker:
            run_id = await _begins(worker)
            is_taken = await _wakes_up(worker, run_id, partial(finish, run_id))
            ends[await expect_nothing_lost(s, run_id, _LATE, is_taken=is_taken)] += 1
            for _ in range(2):
                again = await worker.late_save(run_id, {"again": "it tries once more"})
                await expect_nothing_lost(s, run_id, {"again": "it tries once more"}, is_taken=again)
        handle = await s.expect_acknowledged(run_id, because="so it was when the stopped worker had woken up")
        s.expect(handle.context.status).equals(status, what="the status", because="so it was before it woke up")


async def _others_complete_the_same_node(subject: StoreSubject, ends: Counter[str]) -> None:
    async with subject.scenario("a worker is stopped before its save, another completes the same node") as s:

        async def complete(run_id: str) -> None:
            await s.save(await s.load(run_id), {"writer": {"text": "by the worker that went on"}, "critic": "approved"})

        async with s.elsewhere() as worker:
            run_id = await _begins(worker)
            is_taken = await _wakes_up(worker, run_id, partial(complete, run_id))
            ends[await expect_nothing_lost(s, run_id, _LATE, is_taken=is_taken)] += 1
        await _goes_on(s, run_id)


async def _others_delete(subject: StoreSubject) -> None:
    async with subject.scenario("a worker is stopped before its save, another deletes the run") as s:
        async with s.elsewhere() as worker:
            run_id = await _begins(worker)
            await _wakes_up(worker, run_id, partial(s.delete, run_id))
            await s.expect_unknown(run_id, because="the run was deleted while the worker was stopped")
            await s.delete(run_id)
            await worker.late_save(run_id, {"again": "it tries once more"})
        await s.expect_unknown(run_id, because="the run was deleted, and a save does not create one")


async def _others_begin_again(subject: StoreSubject) -> None:
    """A store without revisions cannot tell a worker of the old run from one of the new."""
    async with subject.scenario("a worker is stopped before its save, another deletes the run and begins it anew") as s:
        has_revisions = False

        async def begin_again(run_id: str) -> None:
            nonlocal has_revisions
            await s.delete(run_id)
            handle = await s.create({"topic": "dogs"}, run_id)
            await s.save(handle, {"researcher": {"facts": ["bark"]}})
            has_revisions = (await s.load(run_id)).context.revision > 0

        async with s.elsewhere() as worker:
            run_id = await _begins(worker)
            await _wakes_up(worker, run_id, partial(begin_again, run_id))
        if not has_revisions:
            subject.notes.append(
                "a late save into a new run of the same id was not judged: a store without revisions cannot tell them"
            )
            return
        await s.expect_acknowledged(run_id, because="the worker's save was of the run before, which was deleted")
        await _goes_on(s, run_id)


async def _begins(worker: Elsewhere) -> str:
    run_id = await worker.create(_INPUTS)
    await worker.save(run_id, _FIRST)
    return run_id


async def _wakes_up(worker: Elsewhere, run_id: str, meanwhile: Callable[[], Awaitable[object]]) -> bool:
    """Stop the worker, ask it for its save, do something else, and let it go on; return whether its save was taken."""
    await worker.stop()
    saving = asyncio.create_task(worker.late_save(run_id, _LATE))
    try:
        await asyncio.sleep(0)
        await meanwhile()
        worker.go_on()
        return await saving
    finally:
        saving.cancel()


async def _goes_on(s: Scenario, run_id: str) -> None:
    await s.save(await s.load(run_id), {"z-last": "after loading again"})
    await s.expect_acknowledged(run_id, because="this worker had loaded the newest state, so it could go on")


async def _stopped_inside(subject: StoreSubject) -> None:
    calls, patience = await _calls_of_a_save(subject)
    if not calls:
        subject.notes.append("not stopped inside a save: Python does not tell of the calls by which the store does it")
        return
    numbers = spread(len(calls), _STOPS)
    # The middle first: if others have to wait there, they probably have to wherever a worker is stopped.
    middle = numbers.pop(len(numbers) // 2)
    kept_out = await _stopped_at(subject, middle, calls, patience)
    for number in [] if kept_out else numbers:
        if not subject.findings:
            await _stopped_at(subject, number, calls, patience)
    if kept_out:
        subject.notes.append(f"a worker that is stopped inside its save keeps others out of the run: {kept_out}")


async def _stopped_at(subject: StoreSubject, number: int, calls: list[str], patience: float) -> str:
    """Stop a worker inside its save, and have another go on; return why that could not, if it could not."""
    kept_out = ""
    async with subject.scenario(
        f"a worker is stopped inside its save, before call {number} ({calls[number - 1]})"
    ) as s:
        run_id, before, call = _a_save(s)
        other = {"critic": "approved by the worker that went on"}
        async with s.elsewhere() as worker:
            text = f"{call['do']} by a worker"
            doing = worker.perform(play_and_stop, text, before=before, call=call, number=number)
            saving = asyncio.create_task(doing)
            try:
                if not await worker.until_it_stops(saving):
                    came = await saving
                    raise VacuousCheck(f"a worker that was to be stopped inside its save was not: {came['told']}")
                s.acknowledged[run_id] = Record.new(_INPUTS).after(_FIRST)
                seen, kept_out = await _another_goes_on(s, run_id, other, patience)
                worker.go_on()
                came = (await saving)["came"]
            finally:
                saving.cancel()
        has_landed = _LATE.keys() <= seen
        if kept_out and "raised" in came:
            # What the other has done before it was kept out is unknown, and its to tell.
            await s.look_for(run_id, _INPUTS)
        elif has_landed or kept_out:
            s.acknowledged[run_id] = s.acknowledged[run_id].after(_LATE)
            await _expect_by_name(s, run_id, because="both workers' saves were acknowledged")
        else:
            await expect_nothing_lost(s, run_id, _LATE, is_taken="raised" not in came)
        await _goes_on(s, run_id)
    return kept_out


async def play_and_stop(
    target: StoreTarget, location: str | None, *, before: Sequence[Step], call: Step, number: int
) -> dict[str, Any]:
    """Do `before`, and then `call`, stopped by SIGSTOP before the call to the outside of this number.

    The thread that is about to make it stops by a signal to itself, with all others. One to the process is taken by any
    of them, on a busy machine so late that the store has done meanwhile what it was to be stopped before.
    """

    def stop(heard: int, _: IOCall, when: When) -> None:
        if (heard, when) == (number, "before"):
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    player, seam = Player(target, location), Seam(stop)
    for step in before:
        await player.do(step)
        still_alive()
    with seam.listening():
        came = await player.outcome(call)
    still_alive()
    await player.close()
    return {"told": told(came), "came": came}


async def _another_goes_on(s: Scenario, run_id: str, outputs: dict[str, Any], patience: float) -> tuple[set[str], str]:
    """Load and save the run in another process; return what nodes it saw, and what kept it out, if it was."""
    seen: set[str] = set()
    async with s.elsewhere(patience=patience) as another:
        try:
            seen = set((await another.look_for(run_id, _INPUTS)).completed)
            await another.save(run_id, outputs)
        except BrokenClause as broken:
            return seen, broken.message
    return seen, ""


async def _expect_by_name(s: Scenario, run_id: str, *, because: str) -> None:
    came = (await s.load(run_id)).record
    s.expect(came.by_name()).equals(s.acknowledged[run_id].by_name(), because=because)
    s.acknowledged[run_id] = came


def _a_save(s: Scenario) -> tuple[str, list[Step], Step]:
    run_id = s.subject.fresh_run_id()
    before: list[Step] = [
        {"do": "load_or_create", "run": run_id, "inputs": _INPUTS},
        {"do": "save", "run": run_id, "outputs": _FIRST},
    ]
    return run_id, before, {"do": "save", "run": run_id, "outputs": _LATE}


async def _calls_of_a_save(subject: StoreSubject) -> tuple[list[str], float]:
    """Return the calls, and how many seconds others are to be given for theirs while one is stopped there."""
    async with subject.probe("by which calls does the store save?") as s, s.elsewhere() as worker:
        _, before, call = _a_save(s)
        with suppress(BrokenClause):
            came = await worker.perform(play, before=before, call=call, after=[], disturbance={"by": "count"})
            run_id, began = await _begins(worker), time.monotonic()
            await worker.save(run_id, _LATE)
            patience = max(_SECONDS_TO_BREAK_A_LOCK, (time.monotonic() - began) * _TIMES_UNDISTURBED)
            return [*came["counted"]["kill"]], min(patience, subject.call_seconds * _PART_OF_A_CALL)
    return [], 0.0
