"""C01: acknowledged saves are there after close and reopen, and in another process."""

from __future__ import annotations

from ..durability import require_durable
from ..registry import clause
from ..scenario import Scenario
from ..subject import StoreSubject
from ..values import MAY_BE_REFUSED, NUMBERS, OUTPUTS, TEXTS

_OPENINGS = 12
"""More than a store is likely to let pass before it tidies up."""


@clause("C01", level=2, title="acknowledged saves are there after close and reopen, and in another process")
async def kept_after_close(subject: StoreSubject) -> None:
    """What was acknowledged is there after the store is closed and opened again, here and in a fresh process.

    That holds for a creation, a save and a delete; for every value that the store has taken; over several such cycles;
    and in both directions. The other process
    opens the store when this one has closed it: whether two may have it open at once is for level 4.

    Seen in: microsoft/agent-framework #8181 (what one process saves, the next one cannot load).
    """
    await require_durable(subject)
    await _close_and_reopen(subject)
    await _close_without_a_save(subject)
    await _opened_many_times(subject)
    await _a_deleted_run(subject)
    await _the_same_values(subject)
    await _read_in_another_process(subject)
    await _written_in_another_process(subject)


async def _close_and_reopen(subject: StoreSubject) -> None:
    async with subject.scenario("three cycles of save, close, reopen") as s:
        first = await s.create()
        other = await s.create()
        await s.save(other, {"untouched": ["since", "the first cycle"]})
        for cycle in range(3):
            handle = await s.load(first.run_id)
            await s.save(handle, subject.draw.plain_outputs(f"node{cycle}a", 1))
            await s.save(handle, subject.draw.plain_outputs(f"node{cycle}b", 2))

            if not await s.reopen():
                _note_same_object(subject)

            await s.expect_acknowledged(first.run_id, because="every save was acknowledged before the close")
            await s.expect_acknowledged(other.run_id, because="it was acknowledged in the first cycle")


async def _close_without_a_save(subject: StoreSubject) -> None:
    async with subject.scenario("a creation, close, reopen") as s:
        run_id = (await s.create({"topic": "cats"})).run_id
        if not await _tells_known_runs(s, run_id):
            return

        await s.reopen()

        await s.expect_acknowledged(
            run_id,
            inputs={"topic": "dogs"},
            because="the creation was acknowledged before the close, so the run is known",
        )


async def _opened_many_times(subject: StoreSubject) -> None:
    async with subject.scenario(
        f"opened {_OPENINGS} times, beside a run that nobody uses, and one without outputs"
    ) as s:
        used, unused, bare = await s.create(), await s.create(), await s.create({"topic": "bare"})
        await s.save(unused, {"untouched": "since the first opening"})
        is_known = await _tells_known_runs(s, bare.run_id)
        for opening in range(_OPENINGS):
            await s.reopen()
            await s.save(await s.load(used.run_id), {f"node{opening:02}": f"facts {opening}"})
        for run_id in (used.run_id, unused.run_id):
            await s.expect_acknowledged(run_id, because="it was acknowledged, and never deleted")
        if is_known:
            await s.expect_acknowledged(
                bare.run_id, inputs={"topic": "dogs"}, because="its creation was acknowledged, and it was never deleted"
            )


async def _a_deleted_run(subject: StoreSubject) -> None:
    async with subject.scenario("a delete, close, reopen") as s:
        gone, stays = await s.create(), await s.create()
        await s.save(gone, {"researcher": "facts"})
        await s.save(stays, {"researcher": "facts"})
        await s.delete(gone.run_id)

        await s.reopen()

        await s.expect_unknown(gone.run_id, because="its delete was acknowledged before the close")
        await s.expect_acknowledged(stays.run_id, because="it was saved, and another run was deleted")


async def _the_same_values(subject: StoreSubject) -> None:
    """Compared with what the open store gives: a value that it loses at once, or refuses, is for S02 to tell."""
    async with subject.scenario("values that stores lose, before and after a close") as s:
        run_id = (await s.create(dict(TEXTS))).run_id
        await s.saves_or_refuses(await s.load(run_id), dict((*OUTPUTS, *NUMBERS, *TEXTS)))
        for title, output in MAY_BE_REFUSED:
            await s.saves_or_refuses(await s.load(run_id), {title: output})
        before = (await s.load(run_id)).record

        await s.reopen()

        s.expect((await s.load(run_id)).record).equals(before, because="the store gave this before it was closed")
        await s.close()
        async with s.elsewhere() as other:
            s.expect(await other.load(run_id)).equals(before, because="the store gave this before it was closed")


async def _read_in_another_process(subject: StoreSubject) -> None:
    async with subject.scenario("saved here, read in another process") as s:
        handle = await s.create()
        await s.save(handle, subject.draw.plain_outputs("a", 4))
        await s.save(handle, subject.draw.plain_outputs("b", 2))
        await s.close()

        async with s.elsewhere(fresh=True) as other:
            came = await other.load(handle.run_id)
            s.expect(came).equals(
                s.acknowledged[handle.run_id],
                because="it was acknowledged, and the store closed, before the other opened",
            )


async def _written_in_another_process(subject: StoreSubject) -> None:
    async with subject.scenario("saved in another process, read and gone on with here") as s:
        async with s.elsewhere() as other:
            run_id = await other.create({"topic": "cats"})
            await other.save(run_id, {"researcher": ["purr"]})
            await other.close()

        handle = await s.expect_acknowledged(run_id, because="it was acknowledged, and the store closed, in the other")
        await s.save(handle, {"writer": "On Cats"})
        await s.reopen()
        await s.expect_acknowledged(run_id, because="both processes' saves were acknowledged")


async def _tells_known_runs(s: Scenario, run_id: str) -> bool:
    """Whether the open store itself keeps the inputs of a known run; if not, that is S01's finding."""
    now = await s.load(run_id, {"topic": "dogs"})
    kept = now.record.inputs == s.acknowledged[run_id].inputs
    if not kept:
        s.subject.notes.append("a bare creation was not tried: the open store does not know it either (see S01)")
    return kept


def _note_same_object(subject: StoreSubject) -> None:
    note = "opening again gave the same object, so only the other process shows what is kept"
    if note not in subject.notes:
        subject.notes.append(note)
