"""S01: what `load_or_create` gives."""

from __future__ import annotations

import asyncio
from typing import Any

from ..expect import BrokenClause
from ..records import Record
from ..registry import clause
from ..scenario import Handle
from ..subject import StoreSubject

_INPUTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("one text", {"topic": "agentic search"}),
    ("no inputs at all", {}),
    ("values that look like nothing", {"none": None, "text": "", "list": [], "dict": {}, "zero": 0, "no": False}),
    ("nested values", {"brief": {"facts": ["a", {"b": [1, 2.5, None, True]}], "empty": {}}}),
)
# In the order of the alphabet, and none empty: a fault in those is told once, by S02.
_SAVES: tuple[dict[str, Any], ...] = (
    {"analyst": ["purrs"]},
    {"author": {"title": "Cats"}, "critic": "approved"},
    {"editor": "shorter"},
    {"printer": 12},
    {"shop": {"sold": 3}, "translator": "Katzen"},
)

_CALLERS = 4
_ROUNDS = 3


@clause("S01", level=1, title="an unknown run gets its inputs, a known one stays as it is")
async def load_or_create_gives_what_is_known(subject: StoreSubject) -> None:
    """`load_or_create` of an unknown run gives exactly the inputs passed, and no outputs.

    Of a known run it gives what was last acknowledged, and leaves the record as it is, whatever inputs are passed. A
    resume calls it with the inputs that the caller has at hand, which may be none or others. A store that takes those,
    or that answers "new run" when it cannot tell, makes the run pay for every node again, or mixes two runs.

    Of callers who create one run at once, through one store object and in one event loop, one does: all of them get its
    inputs (or an error), and so does whoever loads the run later.

    Seen in: dbos-inc/dbos-transact-ts PR #726 (a used id with other inputs), TencentCloud/TencentDB-Agent-Memory #770
    (an unreadable record taken for a first run).
    """
    for title, inputs in (*_INPUTS, ("drawn values", subject.draw.outputs(3))):
        await _an_unknown_run(subject, title, inputs)
    await _runs_do_not_share_inputs(subject)
    for title, passed in (("none", {}), ("others", {"topic": "dogs"}), ("more", {"topic": "cats", "depth": 3})):
        await _a_known_run(subject, title, passed)
    await _a_load_between_load_and_save(subject)
    await _created_at_once(subject)


async def _an_unknown_run(subject: StoreSubject, title: str, inputs: dict[str, Any]) -> None:
    async with subject.scenario(f"an unknown run, {title}") as s:
        handle = await s.create(inputs)

        s.expect(handle.record).equals(
            Record.new(inputs), because="the run was unknown: it has the inputs passed, and nothing completed"
        )
        s.expect(handle.handed).equals(
            inputs, what="the dict of inputs passed", because="it belongs to the caller; the store only reads it"
        )


async def _runs_do_not_share_inputs(subject: StoreSubject) -> None:
    async with subject.scenario("an unknown run beside a known one") as s:
        first = await s.create({"topic": "cats"})
        await s.save(first, {"researcher": "cats purr"})

        second = await s.create({"subject": "dogs"})

        s.expect(second.record).equals(
            Record.new({"subject": "dogs"}), because=f"nothing of run {first.run_id!r} belongs to {second.run_id!r}"
        )


async def _a_known_run(subject: StoreSubject, title: str, passed: dict[str, Any]) -> None:
    """After its creation and after each of several saves, what comes is what was acknowledged last, each time twice."""
    async with subject.scenario(f"a known run, called with {title} inputs") as s:
        handle = await s.create({"topic": "cats"})
        await _is_as_acknowledged(s, handle.run_id, passed, "the run is known since its creation was acknowledged")
        for outputs in _SAVES:
            # The handle is from before the calls with other inputs: had one of them written, this save would be stale.
            await s.save(handle, outputs)
            await _is_as_acknowledged(s, handle.run_id, passed, "this is what the last save acknowledged")


async def _is_as_acknowledged(s: Any, run_id: str, passed: dict[str, Any], because: str) -> None:
    await s.expect_acknowledged(run_id, inputs=passed, because=f"{because}; the inputs passed now change nothing")
    await s.expect_acknowledged(run_id, because=f"{because}, and the call before left the record as it was")


async def _a_load_between_load_and_save(subject: StoreSubject) -> None:
    async with subject.scenario("a load, by somebody else, between a load and its save") as s:
        run_id = (await s.create({"topic": "cats"})).run_id
        worker = await s.load(run_id)
        await s.load(run_id, {"topic": "dogs"})

        await s.save(worker, {"researcher": "cats purr"})

        await s.expect_acknowledged(run_id, because="a load leaves the record as it is, so the save was acknowledged")


async def _created_at_once(subject: StoreSubject) -> None:
    async with subject.scenario(f"{_CALLERS} callers create one run at once, {_ROUNDS} times") as s:
        for _ in range(_ROUNDS):
            run_id = subject.fresh_run_id()
            calls = [s.creates_or_refuses({"caller": f"caller {number}"}, run_id) for number in range(_CALLERS)]
            came = await asyncio.gather(*calls, return_exceptions=True)
            for each in came:
                if isinstance(each, BrokenClause) or not isinstance(each, Handle | Exception):
                    raise each
            records = [each.record for each in came if isinstance(each, Handle)]
            if not records:
                return
            s.acknowledged[run_id] = records[0]
            for record in records[1:]:
                s.expect(record).equals(
                    records[0], because="one caller has created the run, and another got these inputs"
                )
            await s.expect_acknowledged(
                run_id, inputs={}, because="whoever was not refused was told that the run has these inputs"
            )
