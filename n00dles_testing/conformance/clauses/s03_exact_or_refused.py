"""S03: acknowledged or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...corpus import BENT, FOREIGN, KEPT, Hostile, same
from ..durability import keeps_nothing
from ..expect import BrokenClause
from ..fresh_process import expect_in_a_fresh_process
from ..raw_runs import load_raw, save_raw, takes_raw_runs
from ..records import show
from ..refusals import expect_named, save_or_refusal
from ..registry import clause
from ..scenario import Scenario
from ..subject import StoreSubject

_NODE = "researcher"
_INPUT = "brief"
_SHOWN = 3
_NO_FORM = "JSON has no form for it, and the store has acknowledged it: it has one of its own, which must be exact"


@clause("S03", level=1, title="a value is kept exactly, or refused by an error that names it")
async def exact_or_refused(subject: StoreSubject) -> None:
    """Any value that `save` accepts comes back equal in value and JSON type, also in a fresh process.

    Tried with the public corpus of [hostile values](hostile-values.md). What JSON holds exactly is saved as an output
    and passed as an input; it is kept, or refused by an error that names the node (or input), and the run then stays as
    it was. It is read again here, and in a fresh interpreter that has nothing in memory.

    Whose duty is what: a value that JSON cannot hold exactly is refused by the *context*, in `checkpoint`, before a
    store is called; so a store that takes contexts has no more to do. A store that takes a raw run as well (any object
    with the four fields) is handed the others too. If it acknowledges what JSON has no form for (bytes, sets, times,
    decimals, Enums, dataclasses, secrets), it has a form of its own, and gives it back equal, or breaks the clause.
    What the `json` module bends without a word (tuples, keys that are no texts) is a note, and no fault: a store that
    encodes with it relies on the context.

    Seen in: langchain-ai/langgraph #6718 (a nested Enum comes back as None), agentscope-ai/agentscope #1117 (a lone
    surrogate kills the save of a session), microsoft/agent-framework #8256 (the keys 1 and "1" collapse),
    microsoft/agent-framework #8181 (what save takes, load refuses days later), pydantic/pydantic-core #851 (secrets
    stored as asterisks).
    """
    kept = [hostile for hostile in KEPT if await _is_kept(subject, hostile)]
    await _in_a_fresh_process(subject, kept)
    if not await takes_raw_runs(subject):
        subject.notes.append("the store takes only contexts, which refuse what JSON cannot hold")
        return
    await _foreign(subject)
    await _note_what_is_bent(subject)


async def _is_kept(subject: StoreSubject, hostile: Hostile) -> bool:
    """Whether the value was acknowledged and has come back; a refusal is noted."""
    async with subject.scenario(f"an output and an input: {hostile.title}") as s:
        handle = await s.create()
        await s.save(handle, {"before": "kept"})

        refusal = await save_or_refusal(s, handle, {_NODE: _wrapped(hostile)})
        if refusal is not None:
            await s.expect_acknowledged(handle.run_id, because="the save was refused, so the run stays as it was")
            expect_named(refusal, _NODE, "node")
            subject.notes.append(f"refused, naming the node: {hostile.title}")
            return False

        await s.expect_acknowledged(handle.run_id, because=f"the save was acknowledged; elsewhere it {hostile.harm}")
        return await _is_kept_as_input(s, hostile)
    return False


async def _is_kept_as_input(s: Scenario, hostile: Hostile) -> bool:
    inputs = {_INPUT: _wrapped(hostile)}
    try:
        run_id = (await s.create(inputs)).run_id
    except BrokenClause as broken:
        if not isinstance(broken.__cause__, Exception):
            raise
        expect_named(broken.__cause__, _INPUT, "input")
        return True
    await s.expect_acknowledged(run_id, because="the creation was acknowledged with these inputs")
    return True


async def _in_a_fresh_process(subject: StoreSubject, kept: Sequence[Hostile]) -> None:
    if await keeps_nothing(subject):
        subject.notes.append("not read in a fresh process: the store keeps nothing beyond its own")
        return
    async with subject.scenario("the values that were kept, read in a fresh process") as s:
        handle = await s.create()
        # Plain names, in the order of the alphabet: a fault in those is told once, by S02 and S06.
        await s.save(handle, {f"value{number:03}": _wrapped(each) for number, each in enumerate(kept)})

        await expect_in_a_fresh_process(
            s,
            handle.run_id,
            because="the save was acknowledged, and each was there in the process that saved it",
        )


async def _foreign(subject: StoreSubject) -> None:
    async with subject.scenario("handed to the store as they are: values that JSON has no form for") as s:
        for hostile in FOREIGN:
            handle = await s.create()
            s.tell(f"the output is {hostile.title}")
            if not await save_raw(s, handle, {_NODE: _wrapped(hostile)}):
                await s.expect_acknowledged(handle.run_id, because="the save was refused, so the run stays as it was")
                continue
            came = (await load_raw(s, handle)).completed.get(_NODE)
            if not same(_wrapped(hostile), came):
                raise _changed(hostile, came)


async def _note_what_is_bent(subject: StoreSubject) -> None:
    """What a store does with these is worth knowing to whoever uses it with another executor."""
    bent = []
    async with subject.probe("handed to the store as they are: values that the json module bends") as s:
        bent = [hostile.title for hostile in BENT if await _is_bent(s, hostile)]
    if bent:
        some = ", ".join(bent[:_SHOWN]) + (", …" if len(bent) > _SHOWN else "")
        subject.notes.append(f"changes {len(bent)} of {len(BENT)} values that only a context refuses: {some}")


async def _is_bent(s: Scenario, hostile: Hostile) -> bool:
    handle = await s.create()
    if not await save_raw(s, handle, {_NODE: _wrapped(hostile)}):
        return False
    try:
        return not same(_wrapped(hostile), (await load_raw(s, handle)).completed.get(_NODE))
    except BrokenClause:
        return True


def _wrapped(hostile: Hostile) -> dict[str, Any]:
    """Return a fresh value as a part of an output: what becomes of whole outputs is S02's."""
    return {"value": hostile.value()}


def _changed(hostile: Hostile, came: Any) -> BrokenClause:
    wanted = _wrapped(hostile)
    return BrokenClause(
        f"completed[{_NODE!r}] is {show(came)}, not {show(wanted)}",
        (("allowed", f"{show(wanted)}, or an error"), ("came", show(came)), ("why", _NO_FORM)),
    )
