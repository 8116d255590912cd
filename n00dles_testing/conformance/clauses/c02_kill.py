"""C02: acknowledged saves are there after SIGKILL right after the acknowledgement."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ..durability import require_durable
from ..elsewhere import Elsewhere
from ..registry import clause
from ..scenario import Scenario
from ..subject import StoreSubject

_LONG = 60
"""Saves, before those right after which a process is killed."""

Deed = Callable[[StoreSubject, Elsewhere], Awaitable[str]]


@clause("C02", level=2, title="acknowledged saves are there after SIGKILL right after the acknowledgement")
async def kept_after_kill(subject: StoreSubject) -> None:
    """What was acknowledged is there after a SIGKILL, and the store goes on.

    A process creates, saves or deletes, tells that the store has acknowledged it, and kills itself with SIGKILL as its
    very next act: no close, no exit handler, no flush. It does so to runs of its own, and to runs that it has loaded,
    as every resume does; and to a run of 61 saves and more, which a store may treat in another way than a short one.
    Who reads then has not opened the location before the kill: of what a process kept to itself nothing is left. Each
    scenario proves itself: the acknowledgement had arrived, and the process died by signal 9. Otherwise it is VACUOUS.

    Seen in: agno-agi/agno #6089 and strands-agents/harness-sdk #859 (a kill leaves a session that was not saved),
    spyrae/kronos-agent-os PR #40 and apache/iggy PR #3905 (crash tests that were graceful stops; a true SIGKILL found
    more).
    """
    await require_durable(subject)
    for title, deed in (("first", _first_save), ("third", _third_save), ("largest", _large_save)):
        await _after_a_kill(subject, f"SIGKILL right after the {title} save", deed)
    await _after_a_creation(subject)
    await _after_a_delete(subject)
    await _after_loading(subject)
    await _in_a_long_run(subject)


async def _after_a_kill(subject: StoreSubject, title: str, deed: Deed) -> None:
    async with subject.scenario(title) as s:
        async with s.elsewhere(fresh=deed is _first_save) as victim:
            run_id = await deed(subject, victim)

        await _is_there_and_goes_on(s, run_id)


async def _first_save(subject: StoreSubject, victim: Elsewhere) -> str:
    run_id = await victim.create({"topic": "cats"})
    await victim.save(run_id, subject.draw.plain_outputs("a", 2), then_die=True)
    return run_id


async def _third_save(subject: StoreSubject, victim: Elsewhere) -> str:
    run_id = await victim.create({"topic": "cats"})
    for start in ("a", "b"):
        await victim.save(run_id, subject.draw.plain_outputs(start, 2))
    await victim.save(run_id, subject.draw.plain_outputs("c", 1), then_die=True)
    return run_id


async def _large_save(subject: StoreSubject, victim: Elsewhere) -> str:
    run_id = await victim.create({"topic": "cats"})
    output: dict[str, Any] = {"text": "purr, " * 20_000 + "purr", "token": subject.draw.token()}
    await victim.save(run_id, {"researcher": output}, then_die=True)
    return run_id


async def _after_a_creation(subject: StoreSubject) -> None:
    async with subject.scenario("SIGKILL right after the creation of a run") as s:
        async with s.elsewhere() as victim:
            run_id = await victim.create({"topic": "cats"}, then_die=True)

        if not await _tells_known_runs(s):
            return
        await s.expect_acknowledged(
            run_id,
            inputs={"topic": "dogs"},
            because="the creation was acknowledged before the kill, so the run is known",
        )
        await _is_there_and_goes_on(s, run_id)


async def _after_a_delete(subject: StoreSubject) -> None:
    async with subject.scenario("SIGKILL right after a delete") as s:
        async with s.elsewhere() as victim:
            gone, stays = await victim.create({"topic": "cats"}), await victim.create({"topic": "dogs"})
            await victim.save(stays, {"researcher": "dogs bark"})
            await victim.save(gone, {"researcher": "cats purr"})
            await victim.delete(gone, then_die=True)

        await s.expect_unknown(gone, because="its delete was acknowledged before the kill")
        await _is_there_and_goes_on(s, stays)


async def _after_loading(subject: StoreSubject) -> None:
    """Each process of the chain is a fresh one that knows the runs from the store alone."""
    async with subject.scenario("SIGKILL right after a save, and after a delete, of runs that were loaded") as s:
        async with s.elsewhere() as author:
            kept, gone = await author.create({"topic": "cats"}), await author.create({"topic": "dogs"})
            await author.save(kept, subject.draw.plain_outputs("a", 2))
            await author.save(gone, {"researcher": "dogs bark"}, then_die=True)  # a close is for C01
        async with s.elsewhere() as victim:
            await victim.load(kept)
            await victim.save(kept, subject.draw.plain_outputs("b", 1), then_die=True)
        async with s.elsewhere() as victim:
            s.expect(await victim.load(kept)).equals(
                s.acknowledged[kept], because="the save of the loaded run was acknowledged before the kill"
            )
            await victim.load(gone)
            for start in ("c", "d"):
                await victim.save(kept, subject.draw.plain_outputs(start, 1))
            await victim.delete(gone, then_die=True)

        await s.expect_unknown(gone, because="it was loaded, and its delete was acknowledged before the kill")
        await _is_there_and_goes_on(s, kept)


async def _in_a_long_run(subject: StoreSubject) -> None:
    """Killed after one save more, and after each of the next two: one shows a store that writes each second save."""
    async with subject.scenario(f"SIGKILL right after a save, in a run of {_LONG} saves and more") as s:
        async with s.elsewhere() as author:
            run_id = await author.create({"topic": "cats"})
            for number in range(_LONG):
                await author.save(run_id, {f"node{number:03}": f"facts {number}"})
            await author.save(run_id, {f"node{_LONG:03}": "the last"}, then_die=True)
        await s.expect_acknowledged(run_id, because="every save was acknowledged before the kill")
        await s.close()
        for number in (1, 2):
            async with s.elsewhere() as victim:
                await victim.load(run_id)
                await victim.save(run_id, {f"node{_LONG + number:03}": "after a load"}, then_die=True)
            await s.expect_acknowledged(run_id, because="every save was acknowledged before a kill")
            await s.close()


async def _is_there_and_goes_on(s: Scenario, run_id: str) -> None:
    handle = await s.expect_acknowledged(run_id, because="it was acknowledged before the kill")
    await s.save(handle, {"writer": "after the kill"})
    await s.expect_acknowledged(run_id, because="the store is whole, and goes on where the killed process was")


async def _tells_known_runs(s: Scenario) -> bool:
    """Whether the store knows a run that was only created; if not, that is S01's finding, not this clause's."""
    fresh = await s.create({"topic": "birds"})
    known = (await s.load(fresh.run_id, {"topic": "dogs"})).record.inputs == fresh.record.inputs
    if not known:
        s.subject.notes.append("a bare creation was not tried: the open store does not know it either (see S01)")
    return known
