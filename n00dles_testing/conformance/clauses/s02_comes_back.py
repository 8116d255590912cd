"""S02: what was saved comes back."""

from __future__ import annotations

from typing import Any

from ..bookkeeping import note_what_is_lost_at_a_restart
from ..registry import clause
from ..subject import StoreSubject
from ..values import MAY_BE_REFUSED, NUMBERS, OUTPUTS, TEXTS

_STEPS = (1, 30, 60, 8, 1, 1, 1, 98, 300, 300, 300)
"""How many nodes each save of a long run adds: one at a time around the hundredth, and many at once."""
_RUNS = 120


@clause("S02", level=1, title="what was saved comes back")
async def what_was_saved_comes_back(subject: StoreSubject) -> None:
    """Outputs, completion order and inputs come back as they were saved.

    A `None` output is distinct from no output, and an empty container from a missing one. Whether a node runs again on
    resume hangs on `is_complete`, and what follows it on its output: a store that drops what is falsy makes a node run
    (and be paid for) again, one that sorts nodes by name hands the wrong "previous output" to the next. Texts are tried
    with white space around them, in the two Unicode forms, and looking like numbers or nothing; numbers at the edges of
    what a double or 64 bits hold. For some of these a store may have no room: it may refuse to save them, if the run
    then stays as it was. A run of 1100 nodes comes back whole, and 120 runs are all there beside each other: a page or
    a batch of a hundred or a thousand, or a cache of a hundred, is full before that.

    Asked for are the four fields that every store has to keep. What a resume needs beside these to be honest (attempts
    and usage of nodes, lives, status, error, the pipeline's fingerprint) a store may lose; the report then says so.

    Seen in: HomericIntelligence/Scylla PR #368 (all runs again, a lookup never matched), langchain-ai/langgraph #9021
    and #8388 (values come back as None), dbos-inc/dbos-transact-py #688 (recorded in one order, recovered in another).
    """
    for title, output in (*OUTPUTS, *NUMBERS):
        await _one_output(subject, title, output)
    for title, text in TEXTS:
        await _one_text(subject, title, text)
    for title, output in MAY_BE_REFUSED:
        await _one_that_may_be_refused(subject, title, output)
    await _none_is_not_missing(subject)
    await _inputs(subject)
    await _order_over_saves(subject)
    await _order_within_a_save(subject)
    await _many_nodes(subject)
    await _a_long_run(subject)
    await _runs_side_by_side(subject)
    await _many_runs(subject)
    for _ in range(3):
        await _drawn(subject)
    await _note_whether_revisions_are_kept(subject)
    await note_what_is_lost_at_a_restart(subject)


async def _one_output(subject: StoreSubject, title: str, output: Any) -> None:
    async with subject.scenario(f"an output: {title}") as s:
        handle = await s.create()

        await s.save(handle, {"node": output})

        await s.expect_acknowledged(handle.run_id, because="the save was acknowledged")


async def _one_text(subject: StoreSubject, title: str, text: str) -> None:
    async with subject.scenario(f"an output and an input: {title}") as s:
        handle = await s.create({"text": text})

        await s.save(handle, {"node": text})
        await s.save(handle, {"other": {"part": [text], text: "as a key"}})

        await s.expect_acknowledged(handle.run_id, because="both saves were acknowledged")


async def _one_that_may_be_refused(subject: StoreSubject, title: str, output: Any) -> None:
    async with subject.scenario(f"an output, or a refusal: {title}") as s:
        handle = await s.create()
        await s.save(handle, {"before": "kept"})

        if await s.saves_or_refuses(handle, {"node": output}):
            await s.expect_acknowledged(handle.run_id, because="the save was acknowledged")
        else:
            subject.notes.append(f"the store refuses to save {title}")
            await s.expect_acknowledged(handle.run_id, because="the save was refused, so the run stays as it was")


async def _none_is_not_missing(subject: StoreSubject) -> None:
    async with subject.scenario("a node that returned None, and one that has not run") as s:
        handle = await s.create()

        await s.save(handle, {"returned_none": None})

        again = await s.expect_acknowledged(handle.run_id, because="None is an output: the node has completed")
        s.expect(again.context.is_complete("returned_none")).equals(
            True, what="is_complete('returned_none')", because="the node has completed, with None"
        )
        s.expect(again.context.is_complete("never_ran")).equals(
            False, what="is_complete('never_ran')", because="the node has never run"
        )


async def _inputs(subject: StoreSubject) -> None:
    async with subject.scenario("inputs, after saves") as s:
        inputs: dict[str, Any] = {
            "topic": "cats",
            "none": None,
            "list": [],
            "dict": {},
            "deep": {"a": [{"b": {}}]},
            "x": 1.0,
        }
        handle = await s.create(inputs)
        await s.expect_acknowledged(handle.run_id, because="these are the inputs that the run was created with")

        await s.save(handle, {"researcher": "facts"})
        await s.save(handle, {"writer": "text"})

        await s.expect_acknowledged(handle.run_id, because="a save of outputs keeps the inputs")


async def _order_over_saves(subject: StoreSubject) -> None:
    async with subject.scenario("completion order, one save a node, each from a fresh load") as s:
        run_id = (await s.create()).run_id
        for node in ("writer", "researcher", "editor", "10", "9", "Author"):
            handle = await s.load(run_id)
            await s.save(handle, {node: f"by {node}"})
            await s.expect_acknowledged(run_id, because=f"{node!r} completed last; what was there before stays")


async def _order_within_a_save(subject: StoreSubject) -> None:
    async with subject.scenario("completion order, several nodes in one save") as s:
        handle = await s.create()

        await s.save(handle, {"c": 1, "a": 2, "b": 3})
        await s.save(handle, {"0": 4, "z": 5, "B": 6})

        await s.expect_acknowledged(handle.run_id, because="this is the order in which they completed")


async def _many_nodes(subject: StoreSubject) -> None:
    async with subject.scenario("forty nodes, saved through one handle") as s:
        handle = await s.create()
        names = subject.draw.names(40)
        for start in range(0, 40, 8):
            await s.save(handle, {name: {"by": name, "nothing": None} for name in names[start : start + 8]})

        await s.expect_acknowledged(handle.run_id, because="every save was acknowledged")


async def _a_long_run(subject: StoreSubject) -> None:
    async with subject.scenario(f"{sum(_STEPS)} nodes, saved in {len(_STEPS)} steps, each through a fresh handle") as s:
        short, run_id = await s.create(), (await s.create()).run_id
        await s.save(short, {"node": "of a short run"})
        done = 0
        for step in _STEPS:
            handle = await s.load(run_id)
            await s.save(handle, {f"node-{done + number}": {"number": done + number} for number in range(step)})
            done += step
            await s.expect_acknowledged(run_id, because=f"every save was acknowledged, of {done} nodes")

        if await s.keeps_after_reopening(short.run_id):
            await s.expect_acknowledged(run_id, because="the store was opened again, and kept a short run")


async def _many_runs(subject: StoreSubject) -> None:
    async with subject.scenario(f"{_RUNS} runs beside each other") as s:
        handles = [await s.create({"number": number}) for number in range(_RUNS)]
        for number, handle in enumerate(handles):
            await s.save(handle, {"researcher": {"number": number}})

        for handle in handles:
            await s.expect_acknowledged(handle.run_id, because="it was saved, and never deleted")


async def _runs_side_by_side(subject: StoreSubject) -> None:
    async with subject.scenario("two runs with nodes of the same names, saved in turn") as s:
        cats, dogs = await s.create({"topic": "cats"}), await s.create({"topic": "dogs"})
        await s.save(cats, {"researcher": "cats purr"})
        await s.save(dogs, {"writer": "On Dogs", "researcher": "dogs bark"})
        await s.save(cats, {"writer": "On Cats"})

        await s.expect_acknowledged(cats.run_id, because="the other run's saves are not this one's")
        await s.expect_acknowledged(dogs.run_id, because="the other run's saves are not this one's")


async def _drawn(subject: StoreSubject) -> None:
    async with subject.scenario("drawn inputs and outputs") as s:
        handle = await s.create(subject.draw.outputs(3))
        for size in (1, 3, 2):
            fresh = {f"{node}-{subject.draw.token()}": output for node, output in subject.draw.outputs(size).items()}
            await s.save(handle, fresh)
            await s.expect_acknowledged(handle.run_id, because="every save was acknowledged")


async def _note_whether_revisions_are_kept(subject: StoreSubject) -> None:
    """No clause asks for revisions, but whoever reads the report should know on what a second writer depends."""
    async with subject.probe("does the store keep a revision?") as s:
        handle = await s.create()
        await s.save(handle, {"node": "saved once"})
        if (await s.load(handle.run_id)).context.revision == 0:
            subject.notes.append("the store keeps no revision: S08 tells what a stale save does")
