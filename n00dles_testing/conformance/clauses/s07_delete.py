"""S07: a deleted run is gone, all of it and alone, and stays so."""

from __future__ import annotations

import asyncio

from ..expect import BrokenClause
from ..long_run import save_a_long_run
from ..raw_files import expect_in_no_file, files_with
from ..records import Record
from ..registry import clause
from ..scenario import Handle, Scenario
from ..subject import StoreSubject

_ROUNDS = 8
_LARGE = 4_000
_SIZES = (20_000, 300_000)
"""In bytes: outputs that some stores keep outside the record."""
_NOTHING = "a deleted run must leave nothing behind"


@clause("S07", level=1, title="a deleted run is gone, alone and for good")
async def deleted_is_gone(subject: StoreSubject) -> None:
    """`delete` removes that run and no other, all of it, and no late save brings it back.

    It may be repeated, and asked for a run that was never there. All of it: every version that was saved, every node of
    a run of 1100 (more than a page of a database's answers, or a batch of its deletions), and every byte. A text that
    is in the inputs and outputs of the run, and was found in the files of the location before, must be in none of them
    once the store is closed, also where it was in a large output that another one has replaced: whoever asks for a
    deletion often has a duty to delete. What the run shares with another one, as a large output that is the same in
    both, stays there for the other. A worker that still has the run in hand and saves it afterwards, or at that moment,
    is refused, or its save changes nothing; a run of the same id that is created then is new, and the worker's outputs
    are not in it. (A store without revisions cannot tell a worker of the old run from one of the new, and is not asked
    to.)

    Seen in: langchain-ai/langgraph #7206 (a late save after a delete brings the run back), langchain-ai/langgraph #8300
    (a delete takes other runs with it).
    """
    await _alone(subject)
    await _again(subject)
    await _every_version(subject)
    await _every_byte(subject)
    for size in _SIZES:
        await _the_same_output(subject, size)
    await _a_long_run(subject)
    await _a_late_save(subject)
    await _a_late_save_after_reopening(subject)
    await _a_save_at_the_same_time(subject)
    await _a_late_save_into_the_next_run(subject)


async def _alone(subject: StoreSubject) -> None:
    async with subject.scenario("one of three runs is deleted") as s:
        first, gone, last = [await _run(s) for _ in range(3)]

        await s.delete(gone.run_id)

        for handle in (first, last):
            again = await s.expect_acknowledged(handle.run_id, because=f"only {gone.run_id!r} was deleted")
            await s.save(again, {"writer": "goes on"})
            await s.expect_acknowledged(handle.run_id, because="it is there, and goes on")
        await _is_gone(s, gone.run_id)


async def _again(subject: StoreSubject) -> None:
    async with subject.scenario("a delete is repeated, and one of a run that was never there") as s:
        gone, stays = await _run(s), await _run(s)

        await s.delete(gone.run_id)
        for run_id in (gone.run_id, gone.run_id, subject.fresh_run_id()):
            await _delete_again(s, run_id)

        await s.expect_acknowledged(stays.run_id, because="it was not deleted")
        await _is_gone(s, gone.run_id)
        await _delete_again(s, gone.run_id)


async def _every_version(subject: StoreSubject) -> None:
    async with subject.scenario("a run of many saves is deleted, created again, and deleted again") as s:
        run_id = subject.fresh_run_id()
        for life in range(3):
            handle = await s.create({"life": f"life {life}"}, run_id)
            s.expect(handle.record).equals(
                Record.new({"life": f"life {life}"}), because=f"the run was deleted {life} times, each time all of it"
            )
            for save in range(5):
                await s.save(handle, {f"node{life}{save}": {"text": f"of life {life}, save {save}"}})
            await s.expect_acknowledged(run_id, because="these are the saves of this life, and no others")

            await s.delete(run_id)

        await _is_gone(s, run_id)


async def _every_byte(subject: StoreSubject) -> None:
    if not subject.has_folders:
        why = "its runs lie with a server" if subject.served is not None else "the store takes no location"
        subject.notes.append(f"what is left on disk was not looked for: {why}")
        return
    async with subject.scenario("what is left of a deleted run on disk") as s:
        assert s.location is not None
        token = "".join(subject.draw.token() for _ in range(4))
        stays = await _run(s)
        gone = await s.create({"topic": token})
        await s.save(gone, {"researcher": {"facts": [f"fact {token}"]}})
        await s.save(gone, {"writer": f"{token}." * _LARGE})
        await s.save(gone, {"writer": f"another {token}." * _LARGE, "critic": f"on {token}." * (_LARGE // 8)})
        await s.save(gone, {"critic": f"once more on {token}." * (_LARGE // 8)})
        await s.save(gone, {"editor": f"short {token}"})
        await s.close()
        if not files_with(s.location, token):
            subject.notes.append("what is left on disk was not looked for: texts are not in the files as they are")
        before = files_with(s.location, token)
        s.tell(f"the run's text is in {before or 'no file'}")
        await s.delete(gone.run_id)
        if before and (meanwhile := files_with(s.location, token)):
            subject.notes.append(f"until the store is closed, a deleted run's text is still in {', '.join(meanwhile)}")
        await s.close()

        if before:
            expect_in_no_file(s.expect(files_with(s.location, token)), because=_NOTHING)
        if await s.keeps_after_reopening(stays.run_id):
            await _is_gone(s, gone.run_id)


async def _the_same_output(subject: StoreSubject, size: int) -> None:
    async with subject.scenario(f"runs with the same output of {size} bytes, and one of them is deleted") as s:
        control = await _run(s)
        output = {"text": f"{subject.draw.token()}." * (size // 9)}
        first, second = await s.create(), await s.create()
        for handle in (first, second):
            await s.save(handle, {"researcher": output, "writer": output})

        await s.delete(first.run_id)

        again = await s.expect_acknowledged(second.run_id, because=f"only {first.run_id!r} was deleted")
        await s.save(again, {"writer": "another text"})
        await s.expect_acknowledged(second.run_id, because="another node keeps the output that this one had")
        if await s.keeps_after_reopening(control.run_id):
            await s.expect_acknowledged(second.run_id, because="the store was opened again, and kept another run")


async def _a_long_run(subject: StoreSubject) -> None:
    async with subject.scenario("a long run is deleted, and created anew") as s:
        token = "".join(subject.draw.token() for _ in range(4))
        stays, gone = await _run(s), await s.create({"topic": token})
        saved = await save_a_long_run(s, gone, token)
        before = files_with(s.folder, token) if s.folder is not None else []

        await s.delete(gone.run_id)

        created = await s.expect_unknown(gone.run_id, because=f"the run was deleted, with all of its {saved} nodes")
        await s.save(created, {"writer": "of the new run"})
        await s.expect_acknowledged(gone.run_id, because="the new run has this output, and none of the deleted one's")
        await s.expect_acknowledged(stays.run_id, because="it was not deleted")
        await s.close()
        if before and s.folder is not None:
            expect_in_no_file(s.expect(files_with(s.folder, token)), because=_NOTHING)


async def _a_late_save(subject: StoreSubject) -> None:
    async with subject.scenario("a worker saves a run that was deleted") as s:
        creator = await _run(s)
        loaded = await s.load(creator.run_id)
        await s.delete(creator.run_id)

        for worker in (creator, loaded, creator):
            await s.late_save(worker, {"late": "after the delete"})

        await _is_gone(s, creator.run_id)


async def _a_late_save_after_reopening(subject: StoreSubject) -> None:
    async with subject.scenario("a worker saves a run that was deleted, the store has been opened again") as s:
        worker, stays = await _run(s), await _run(s)
        await s.delete(worker.run_id)
        await s.reopen()

        await s.late_save(worker, {"late": "after the delete"})

        await _is_gone(s, worker.run_id)
        await s.load(stays.run_id)


async def _a_save_at_the_same_time(subject: StoreSubject) -> None:
    async with subject.scenario(f"a save and a delete of one run at the same time, {_ROUNDS} times") as s:
        for number in range(_ROUNDS):
            worker = await _run(s)
            calls = [s.late_save(worker, {"late": "at the same time"}), s.delete(worker.run_id)]
            ends = await asyncio.gather(*(calls if number % 2 else reversed(calls)), return_exceptions=True)
            for end in ends:
                if isinstance(end, BaseException):
                    raise end

            await _is_gone(s, worker.run_id, because="whichever came first, the delete was acknowledged")


async def _a_late_save_into_the_next_run(subject: StoreSubject) -> None:
    if not await subject.once("revision", lambda: _keeps_a_revision(subject)):
        subject.notes.append(
            "a late save into a new run of the same id was not tried: a store without revisions cannot tell the two"
        )
        return
    async with subject.scenario("a worker saves a run that was deleted and created anew") as s:
        worker = await _run(s)
        await s.delete(worker.run_id)
        created = await s.create({"created": "anew"}, worker.run_id)

        await s.late_save(worker, {"late": "of the deleted run"})

        await s.expect_acknowledged(created.run_id, because="the late save was of the run before, which was deleted")
        await s.save(created, {"writer": "of the new run"})
        await s.expect_acknowledged(created.run_id, because="the new run goes on")


async def _run(s: Scenario) -> Handle:
    handle = await s.create()
    await s.save(handle, {"researcher": {"facts": ["a"]}})
    await s.save(handle, {"reviewer": "approved"})
    return handle


async def _is_gone(s: Scenario, run_id: str, because: str = "it was deleted, and the delete acknowledged") -> None:
    """Look for the run, which creates it, and delete it again."""
    await s.expect_unknown(run_id, because=because)
    await s.delete(run_id)


async def _delete_again(s: Scenario, run_id: str) -> None:
    try:
        await s.delete(run_id)
    except BrokenClause as broken:
        details = (("allowed", "the delete is acknowledged"), ("came", broken.message))
        why = (("why", "whoever does not know whether a delete has arrived repeats it; there is nothing to do"),)
        raise BrokenClause(broken.message, (*broken.details, *details, *why)) from broken.__cause__


async def _keeps_a_revision(subject: StoreSubject) -> bool:
    async with subject.probe("does the store keep a revision?") as s:
        return (await s.load((await _run(s)).run_id)).context.revision > 0
    return False
