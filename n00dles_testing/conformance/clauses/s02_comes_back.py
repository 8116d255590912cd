"""S02: what was saved comes back."""

from __future__ import annotations

import time
from typing import Any

from ..bookkeeping import note_what_is_lost_at_a_restart
from ..registry import clause
from ..scenario import Handle
from ..subject import StoreSubject
from ..values import LONG_NAMES, LONG_TEXTS, MAY_BE_REFUSED, NUMBERS, OUTPUTS, OVERWRITTEN, TEXTS

_STEPS = (1, 30, 60, 8, 1, 1, 1, 98, 300, 300, 300)
"""How many nodes each save of a long run adds: one at a time around the hundredth, and many at once."""
_AT_ONCE = 2_100
"""More than the rows that one statement, transaction or request of some databases takes: 25, 500, 1000, 2000."""
_RUNS = 210
_PART_OF_A_CALL = 0.5


@clause("S02", level=1, title="what was saved comes back")
async def what_was_saved_comes_back(subject: StoreSubject) -> None:
    """Outputs, completion order and inputs come back as they were saved.

    A `None` output is distinct from no output, and an empty container from a missing one. Whether a node runs again on
    resume hangs on `is_complete`, and what follows it on its output: a store that drops what is falsy makes a node run
    (and be paid for) again, one that sorts nodes by name hands the wrong "previous output" to the next. Texts are tried
    with white space around them, in the two Unicode forms, and looking like numbers or nothing; numbers at the edges of
    what a double or 64 bits hold; texts also of 100 KB and more, with characters of several bytes across every border
    of a chunk and with line ends of all kinds, a list of 300 numbers as an embedding has, and names of inputs that
    differ behind 64 or 255 characters. For some of these a store may have no room: it may refuse to save them, if the
    run then stays as it was. A run of 1100 nodes comes back whole, one of 2100 that are saved at once, and 210 runs are
    all there beside each other: a page or a batch of a hundred or a thousand, or a cache of a hundred, is full before
    that.

    A context lets a completed node complete again (an executor may retry a step, or correct it). A later save that
    gives it another output replaces the whole of it, also by None, by a smaller dict or list or by a value of another
    type, and leaves the node at its place in the order.

    Asked for are the four fields that every store has to keep. What a resume needs beside these to be honest (attempts
    and usage of nodes, lives, status, error, the pipeline's fingerprint) a store may lose; the report then says so.

    Seen in: HomericIntelligence/Scylla PR #368 (all runs again, a lookup never matched), langchain-ai/langgraph #9021
    and #8388 (values come back as None), dbos-inc/dbos-transact-py #688 (recorded in one order, recovered in another).
    """
    for title, output in (*OUTPUTS, *NUMBERS):
        await _one_output(subject, title, output)
    for title, text in TEXTS:
        await _one_text(subject, title, text)
    for title, output in (*MAY_BE_REFUSED, *LONG_TEXTS):
        await _one_that_may_be_refused(subject, title, output)
    for title, inputs in (*((title, {"text": text}) for title, text in LONG_TEXTS), *LONG_NAMES):
        await _inputs_that_may_be_refused(subject, title, inputs)
    await _none_is_not_missing(subject)
    await _inputs(subject)
    await _order_over_saves(subject)
    await _order_within_a_save(subject)
    await _another_output(subject)
    await _other_outputs_in_the_middle(subject)
    await _many_nodes(subject)
    await _many_in_one_save(subject)
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


async def _inputs_that_may_be_refused(subject: StoreSubject, title: str, inputs: dict[str, Any]) -> None:
    async with subject.scenario(f"inputs, or a refusal: {title}") as s:
        came = await s.creates_or_refuses(inputs, subject.fresh_run_id())
        if isinstance(came, Exception):
            subject.notes.append(f"the store refuses to create a run with {title} as an input ({type(came).__name__})")
            return
        await s.expect_acknowledged(came.run_id, because="the creation was acknowledged with these inputs")
        await s.save(came, {"node": "saved"})
        await s.expect_acknowledged(came.run_id, because="a save of outputs keeps the inputs")


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


async def _another_output(subject: StoreSubject) -> None:
    async with subject.scenario("a completed node is saved again, with another output") as s:
        handle = await s.create()
        await s.save(handle, {"first": "kept"})
        for number, (before, after) in enumerate(OVERWRITTEN):
            node = f"node{number}"
            await s.save(handle, {node: before})
            await s.save(handle, {node: after})
            await s.expect_acknowledged(handle.run_id, because=f"the second save of {node!r} was acknowledged")
        await s.save(handle, {"last": "kept"})
        await s.expect_acknowledged(handle.run_id, because="every save was acknowledged")


async def _other_outputs_in_the_middle(subject: StoreSubject) -> None:
    """Of a run that was loaded, several at once, in another order, and beside a new node."""
    async with subject.scenario("completed nodes of a loaded run are saved again, with a new one among them") as s:
        once, run_id = await s.create(), (await s.create()).run_id
        outputs = {f"node{number}": before for number, (before, _) in enumerate(OVERWRITTEN)}
        await s.save(once, outputs)
        await s.save(await s.load(run_id), outputs)
        others = [(f"node{number}", after) for number, (_, after) in enumerate(OVERWRITTEN)]
        handle = await s.load(run_id)

        await s.save(handle, dict([*others[:0:-2], ("fresh", "of this save"), *others[::4]]))

        await s.expect_acknowledged(run_id, because="the save was acknowledged; who completes again keeps its place")
        if await s.keeps_after_reopening(once.run_id):
            await s.expect_acknowledged(run_id, because="the store was opened again, and kept a run saved once")


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


async def _many_in_one_save(subject: StoreSubject) -> None:
    async with subject.scenario(f"{_AT_ONCE} nodes in one save") as s:
        handle = await s.create()
        await s.save(handle, {"first": "before the many"})

        await s.save(handle, {f"node-{number}": number for number in range(_AT_ONCE)})

        await s.expect_acknowledged(handle.run_id, because=f"the save of {_AT_ONCE} nodes was acknowledged")


async def _many_runs(subject: StoreSubject) -> None:
    async with subject.scenario(f"{_RUNS} runs beside each other") as s:
        ends = time.monotonic() + subject.call_seconds * _PART_OF_A_CALL
        handles: list[Handle] = []
        while len(handles) < _RUNS and time.monotonic() < ends:
            number = len(handles)
            handles.append(await s.create({"number": number}))
            await s.save(handles[-1], {"researcher": {"number": number}})
        if len(handles) < _RUNS:
            subject.notes.append(f"{len(handles)} runs beside each other were tried, not {_RUNS}: they take long")

        for handle in handles:
            await s.expect_acknowledged(handle.run_id, because="it was saved, and never deleted")
        if await s.keeps_after_reopening(handles[-1].run_id):
            for handle in handles:
                await s.expect_acknowledged(handle.run_id, because="the store was opened again, and kept the last run")


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
