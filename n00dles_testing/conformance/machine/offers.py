"""What a store offers beyond what every store must: probed, once for all clauses, never declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..durability import keeps_runs
from ..elsewhere import Elsewhere
from ..expect import BrokenClause
from ..records import Record
from ..scenario import Scenario
from ..subject import StoreSubject
from ..target import StoreTarget

__all__ = ["Offers", "keeps_revisions", "open_twice", "probe_offers"]

_INPUTS = {"topic": "cats"}
_OTHERS = {"topic": "dogs"}


@dataclass(frozen=True, slots=True)
class Offers:
    """What can be done with a store: whether a run outlives its instance, and who may have it open at once.

    `instances` says that two instances of one process see each other's saves, `processes` that two processes do.
    """

    revisions: bool
    durable: bool
    instances: bool
    processes: bool


async def probe_offers(subject: StoreSubject) -> Offers:
    """Find out what the store offers. What it does only in part counts as not offered."""
    durable = await keeps_runs(subject)
    return Offers(
        revisions=await keeps_revisions(subject),
        durable=durable,
        instances=durable and await subject.once("shared by instances", lambda: _shares_instances(subject)),
        processes=durable and await subject.once("shared by processes", lambda: _shares_processes(subject)),
    )


async def keeps_revisions(subject: StoreSubject) -> bool:
    """Whether the store counts the saves of a run, so that it can tell who continues an older state; as S07 asks."""
    return await subject.once("revision", lambda: _keeps_revisions(subject))


async def _keeps_revisions(subject: StoreSubject) -> bool:
    async with subject.probe("does the store keep a revision?") as s:
        handle = await s.create()
        await s.save(handle, {"researcher": {"facts": ["a"]}})
        await s.save(handle, {"reviewer": "approved"})
        return (await s.load(handle.run_id)).context.revision > 0
    return False


async def open_twice(target: StoreTarget, location: str | None, run_id: str) -> dict[str, Any]:
    """Open two instances in this process, and load a run in both: a store with one owner at a time may wait for ever.

    For another process, which can be killed then.
    """
    instances = []
    for _ in range(2):
        instances.append(await target.open(location))
        await instances[-1].load_or_create(run_id, dict(_INPUTS))
    for instance in instances:
        await instance.close()
    return {"told": "opened, twice"}


async def _opens_twice(subject: StoreSubject) -> bool:
    async with (
        subject.probe("can one process have the store open twice?") as s,
        s.elsewhere(patience=subject.patience) as other,
    ):
        await other.perform(open_twice, run_id=subject.fresh_run_id())
        return True
    return False


async def _shares_instances(subject: StoreSubject) -> bool:
    if not await _opens_twice(subject):
        return False
    async with subject.probe("do two instances of the store see each other's saves?") as s:
        second = Scenario(subject, s.title, s.journal, s.location, is_probe=True)
        try:
            return await _see_each_other(s, second)
        finally:
            await _closed(second)
    return False


async def _see_each_other(s: Scenario, second: Scenario) -> bool:
    run_id = (await s.create(_INPUTS)).run_id
    if (await second.create(_OTHERS, run_id)).record != Record.new(_INPUTS):
        return False
    allowed = Record.new(_INPUTS)
    for number, each in enumerate((s, second, s, second)):
        handle = await each.create(_OTHERS, run_id)
        if handle.record != allowed:
            return False
        allowed = allowed.after({f"node{number}": "saved"})
        await each.save(handle, {f"node{number}": "saved"})
    await second.delete(run_id)
    return (await s.create(_OTHERS, run_id)).record == Record.new(_OTHERS)


async def _shares_processes(subject: StoreSubject) -> bool:
    async with (
        subject.probe("do two processes see each other's saves?") as s,
        s.elsewhere(patience=subject.patience) as other,
    ):
        return await _sees_the_other(s, other)
    return False


async def _sees_the_other(s: Scenario, other: Elsewhere) -> bool:
    run_id = (await s.create(_INPUTS)).run_id
    for number in range(2):
        if await other.load(run_id) != s.acknowledged[run_id]:
            return False
        await other.save(run_id, {f"other{number}": "saved"})
        handle = await s.load(run_id)
        if handle.record != s.acknowledged[run_id]:
            return False
        await s.save(handle, {f"node{number}": "saved"})
    await other.delete(run_id)
    return (await s.create(_OTHERS, run_id)).record == Record.new(_OTHERS)


async def _closed(s: Scenario) -> None:
    try:
        await s.close()
    except BrokenClause:
        return
