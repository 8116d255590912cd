"""S05: a save is a snapshot and a load is a copy."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, MutableMapping, MutableSequence
from typing import Any

from ..records import Record
from ..registry import clause
from ..scenario import Handle, Scenario
from ..subject import StoreSubject

_INPUTS = {"topic": "cats", "brief": {"facts": ["purr"]}}
_OUTPUT = {"facts": ["a"], "meta": {"by": "researcher"}}


@clause("S05", level=1, title="what the caller mutates is not what is stored")
async def no_aliasing(subject: StoreSubject) -> None:
    """A save is a snapshot, and a load is a copy.

    What the caller does to the object that it saved, or to one that it loaded, changes nothing stored; that holds for
    inputs too, and at any depth. Stores that keep the caller's object pass every test in memory and fail on disk; in
    memory, a node that edits its argument edits the checkpoint, and a resumed run computes from what was never saved.

    Seen in: langchain-ai/langgraph #8835 and #8748, microsoft/agent-framework #7685, pydantic/pydantic-ai #1684.
    """
    await _inputs_handed_in(subject)
    await _a_new_run_handed_out(subject)
    await _the_saved_context(subject)
    await _a_loaded_run(subject)
    await _two_loads(subject)
    await _a_load_while_the_saver_goes_on(subject)


async def _inputs_handed_in(subject: StoreSubject) -> None:
    async with subject.scenario("the caller changes the inputs that it passed") as s:
        handle = await s.create(_INPUTS)

        s.tell("the caller edits the dict of inputs that it passed, at the top and inside")
        _spoil(handle.handed)

        await s.expect_acknowledged(handle.run_id, because="the run was created before the caller's edit")


async def _a_new_run_handed_out(subject: StoreSubject) -> None:
    async with subject.scenario("the caller changes the new run that it got") as s:
        handle = await s.create(_INPUTS)

        _spoil_run(s, handle)

        await s.expect_acknowledged(handle.run_id, because="nothing was saved since the run was created")


async def _the_saved_context(subject: StoreSubject) -> None:
    async with subject.scenario("the caller changes the context that it saved") as s:
        handle = await s.create(_INPUTS)
        await s.save(handle, {"researcher": _OUTPUT, "reviewer": [1]})

        s.tell("the caller edits the outputs in the context that it saved, and completes a node without a save")
        _spoil_run(s, handle)
        handle.context.checkpoint("unsaved", "lost with the process")

        await s.expect_acknowledged(handle.run_id, because="the save was acknowledged before the caller's edits")


async def _a_loaded_run(subject: StoreSubject) -> None:
    async with subject.scenario("the caller changes a run that it loaded") as s:
        handle = await s.create(_INPUTS)
        await s.save(handle, {"researcher": _OUTPUT})
        loaded = await s.load(handle.run_id)

        _spoil_run(s, loaded)
        loaded.context.checkpoint("unsaved", "lost with the process")

        await s.expect_acknowledged(handle.run_id, because="what was loaded is a copy, and it was not saved again")


async def _two_loads(subject: StoreSubject) -> None:
    async with subject.scenario("two loads of one run, and one of them is changed") as s:
        handle = await s.create(_INPUTS)
        await s.save(handle, {"researcher": _OUTPUT})
        first, second = await s.load(handle.run_id), await s.load(handle.run_id)

        _spoil_run(s, first)

        s.expect(Record.read(second.reply)).equals(
            s.acknowledged[handle.run_id], because="each load is a copy of its own; only the first was edited"
        )


async def _a_load_while_the_saver_goes_on(subject: StoreSubject) -> None:
    async with subject.scenario("a loaded run stays as it was while the run goes on") as s:
        handle = await s.create(_INPUTS)
        await s.save(handle, {"researcher": _OUTPUT})
        loaded = await s.load(handle.run_id)
        before = loaded.record

        await s.save(handle, {"writer": "On Cats"})

        s.expect(Record.read(loaded.reply)).equals(before, because="it was loaded before the second save")
        await s.expect_acknowledged(handle.run_id, because="the second save was acknowledged")


def _spoil_run(s: Scenario, handle: Handle) -> None:
    """Edit all that a caller can reach in what it got: the store's own reply, and the context made of it."""
    s.tell(f"the caller edits inputs, outputs and order of the {type(handle.reply).__name__} that it got, at any depth")
    for thing in (handle.reply,) if handle.reply is handle.context else (handle.reply, handle.context):
        for name in ("inputs", "completed", "order"):
            _spoil(thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None))


def _spoil(value: Any) -> None:
    """Edit a value in place, its inner containers first. What refuses to be edited is left, its content is not."""
    inner = list(value.values()) if isinstance(value, Mapping) else list(value) if isinstance(value, list) else []
    for part in inner:
        _spoil(part)
    with contextlib.suppress(Exception):
        if isinstance(value, MutableMapping):
            value["spoiled"] = True
            for key in list(value):
                if not isinstance(value[key], MutableMapping | MutableSequence):
                    value[key] = "spoiled"
        elif isinstance(value, MutableSequence):
            value.append("spoiled")
