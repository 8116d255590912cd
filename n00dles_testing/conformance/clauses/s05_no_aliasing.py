"""S05: a save is a snapshot and a load is a copy."""

from __future__ import annotations

from ..probes.offered import Method
from ..records import Record
from ..registry import clause
from ..scenario import Handle, Scenario
from ..spoil import spoil, spoil_run
from ..subject import StoreSubject

_INPUTS = {"topic": "cats", "brief": {"facts": ["purr"]}}
_LOADS = 6
_OUTPUT = {"facts": ["a"], "meta": {"by": "researcher"}}


@clause("S05", level=1, title="what the caller mutates is not what is stored")
async def no_aliasing(subject: StoreSubject) -> None:
    """A save is a snapshot, and a load is a copy.

    What the caller does to the object that it saved, or to one that it loaded, changes nothing stored; that holds for
    inputs too, and at any depth, and for the optional method `load` where it gives a run as n00dles reads it: each call
    gives what was last acknowledged, in an object of its own. Stores that keep the caller's object pass every test in
    memory and fail on disk; in memory, a node that edits its argument edits the checkpoint, and a resumed run computes
    from what was never saved.

    Seen in: langchain-ai/langgraph #8835 and #8748, microsoft/agent-framework #7685, pydantic/pydantic-ai #1684.
    """
    await _inputs_handed_in(subject)
    await _a_new_run_handed_out(subject)
    await _the_saved_context(subject)
    await _a_loaded_run(subject)
    await _two_loads(subject)
    await _many_loads(subject)
    await _a_load_while_the_saver_goes_on(subject)
    await _by_load(subject)


async def _inputs_handed_in(subject: StoreSubject) -> None:
    async with subject.scenario("the caller changes the inputs that it passed") as s:
        handle = await s.create(_INPUTS)

        if not _edits(s, "the dict of inputs that it passed", spoil(lambda: handle.handed)):
            return

        await s.expect_acknowledged(handle.run_id, because="the run was created before the caller's edit")


async def _a_new_run_handed_out(subject: StoreSubject) -> None:
    async with subject.scenario("the caller changes the new run that it got") as s:
        handle = await s.create(_INPUTS)

        if not _edits_what_came(s, handle):
            return

        await s.expect_acknowledged(handle.run_id, because="nothing was saved since the run was created")


async def _the_saved_context(subject: StoreSubject) -> None:
    async with subject.scenario("the caller changes the context that it saved") as s:
        handle = await s.create(_INPUTS)
        await s.save(handle, {"researcher": _OUTPUT, "reviewer": [1]})

        _edits_what_came(s, handle)
        if not _edits(s, "the context that it saved, and completes a node without a save", spoil_run(handle.context)):
            return
        handle.context.checkpoint("unsaved", "lost with the process")

        await s.expect_acknowledged(handle.run_id, because="the save was acknowledged before the caller's edits")


async def _a_loaded_run(subject: StoreSubject) -> None:
    async with subject.scenario("the caller changes a run that it loaded") as s:
        handle = await s.create(_INPUTS)
        await s.save(handle, {"researcher": _OUTPUT})
        loaded = await s.load(handle.run_id)

        if not _edits_what_came(s, loaded):
            return
        loaded.context.checkpoint("unsaved", "lost with the process")

        await s.expect_acknowledged(handle.run_id, because="what was loaded is a copy, and it was not saved again")


async def _two_loads(subject: StoreSubject) -> None:
    async with subject.scenario("two loads of one run, and one of them is changed") as s:
        handle = await s.create(_INPUTS)
        await s.save(handle, {"researcher": _OUTPUT})
        first, second = await s.load(handle.run_id), await s.load(handle.run_id)

        if not _edits_what_came(s, first):
            return

        s.expect(Record.read(second.reply)).equals(
            s.acknowledged[handle.run_id], because="each load is a copy of its own; only the first was edited"
        )


async def _many_loads(subject: StoreSubject) -> None:
    """A store may begin to keep what it gives out once a run is read often."""
    async with subject.scenario(f"{_LOADS} loads of one run, each of them changed") as s:
        handle = await s.create(_INPUTS)
        await s.save(handle, {"researcher": _OUTPUT})
        untouched = await s.load(handle.run_id)

        if not _edits_what_came(s, await s.load(handle.run_id)):
            return
        for _ in range(_LOADS - 1):
            loaded = await s.expect_acknowledged(handle.run_id, because="every load before was a copy")
            _edits_what_came(s, loaded)

        s.expect(Record.read(untouched.reply)).equals(
            s.acknowledged[handle.run_id], because="this load is a copy of its own; only others were edited"
        )
        await s.expect_acknowledged(handle.run_id, because="every load before was a copy, and none was saved")


async def _a_load_while_the_saver_goes_on(subject: StoreSubject) -> None:
    async with subject.scenario("a loaded run stays as it was while the run goes on") as s:
        handle = await s.create(_INPUTS)
        await s.save(handle, {"researcher": _OUTPUT})
        loaded = await s.load(handle.run_id)
        before = loaded.record

        await s.save(handle, {"writer": "On Cats"})

        s.expect(Record.read(loaded.reply)).equals(before, because="it was loaded before the second save")
        await s.expect_acknowledged(handle.run_id, because="the second save was acknowledged")


async def _by_load(subject: StoreSubject) -> None:
    """A resume asks it first, so it may not be behind, nor be spoiled by who asked before."""
    async with subject.scenario("a run is read by load, edited and saved, in turn") as s:
        handle = await s.create(_INPUTS)
        await s.save(handle, {"researcher": _OUTPUT})
        reads = await _reads_by_load(s, handle.run_id)
        if reads is None:
            return
        for number in range(3):
            _edits(s, "what load gave", spoil_run(await reads(handle.run_id)))
            s.expect(Record.read(await reads(handle.run_id))).equals(
                s.acknowledged[handle.run_id],
                because="each load is a copy of its own, and only the one before was edited",
            )
            await s.save(handle, {f"writer{number}": {"title": "On Cats"}})
            s.expect(Record.read(await reads(handle.run_id))).equals(
                s.acknowledged[handle.run_id], because="the save was acknowledged before this load"
            )


async def _reads_by_load(s: Scenario, run_id: str) -> Method | None:
    """Return the store's `load`, if it gives a run as n00dles reads it; what else it may do is no matter here."""
    try:
        method = Method(s, "load", "run_id")
        came = Record.read(await method(run_id))
    except Exception:
        return None
    return method if came == s.acknowledged[run_id] else None


def _edits_what_came(s: Scenario, handle: Handle) -> int:
    """Edit the store's own reply, then the context made of it; return how many edits of the reply took effect."""
    edits = _edits(s, f"the {type(handle.reply).__name__} that it got, at any depth", spoil_run(handle.reply))
    if handle.context is not handle.reply:
        spoil_run(handle.context)
    return edits


def _edits(s: Scenario, what: str, edits: int) -> int:
    """Tell what was edited; where nothing could be, note that the scenario shows nothing."""
    s.tell(f"the caller edits {what} ({edits} edits)")
    if not edits:
        s.subject.notes.append(f"{what} could not be edited, so that was not tried: {s.title}")
    return edits
