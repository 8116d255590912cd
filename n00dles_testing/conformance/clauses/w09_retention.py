"""W09: retention, where offered: a prune removes what is finished and old, whole, and nothing that is at work."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...factories import call_either
from ..durability import require_durable
from ..expect import MisuseError, VacuousCheck
from ..many_workers import all_at_once, require_shared, workers
from ..offers import require_offered
from ..raw_files import expect_in_no_file, files_with
from ..records import show
from ..registry import clause
from ..scenario import Handle, Scenario
from ..subject import StoreSubject
from ..turnover import finish_and_begin_again

_GAPS = (2.2, 4.4, 8.8)
"""In seconds, between the old runs and the young ones. A longer one is for a machine that is too busy for the first."""
_MARGIN = 0.6
_WHOLE_SECONDS = 1.0
"""A store may keep its times in whole seconds, so that a run looks older than it is."""
_PROCESSES = 2
_ATTEMPTS = ((120, 0.0), (480, 0.0), (480, 0.002), (480, 0.005), (480, 0.01), (480, 0.02), (480, 0.02), (480, 0.02))
"""Runs of each process, and for how many seconds at most each stays finished. Where calls are quick or the machine is
busy, a prune of several steps rarely meets a run that is deleted at once."""
_PART_OF_A_CALL = 0.5
_STATUSES = ("running", "waiting", "failed")


@dataclass(slots=True)
class _Runs:
    """The runs of a scenario: `old` is finished and old, those in `stay` are not both."""

    old: Handle
    stay: list[Handle]
    token: str


@clause("W09", level=4, title="a prune removes what is finished and old, whole, and nothing that is at work")
async def retention(subject: StoreSubject) -> None:
    """Where retention is offered, `prune(older_than=seconds)` removes runs that are finished and older, whole.

    Finished runs are kept for a while, and then they have to go: for their space, and for whose data is in them. Runs
    that wait, that are being worked on or that have failed stay, however old: somebody may resume them. So does a run
    that was begun long ago and finished a moment ago: what counts is its last save. What goes is gone as after a
    delete: for every process, with every byte (S07), and no late save brings it back; its id is among those returned.

    Then two other processes finish runs, delete them and begin them anew under the same ids, over and over, while this
    one prunes without a pause: a run that was finished when it was listed may be another one by the time that it is
    removed. No call on a run that is not finished may be refused, and each such run is there in the end.

    A store without `prune` keeps its runs for ever, and this does not apply.

    Seen in: langchain-ai/langgraph #8300 (a delete takes other runs with it), langchain-ai/langgraph #7206 (a late save
    brings back what was deleted).
    """
    await require_durable(subject)
    await require_shared(subject)
    await require_offered(subject, "prune")
    if subject.findings:
        return
    await _old_and_finished(subject)
    if not subject.findings:
        await _beside_traffic(subject)


async def _old_and_finished(subject: StoreSubject) -> None:
    for gap in _GAPS:
        async with subject.scenario(f"finished and other runs, {gap:g} s old and young ones") as s:
            runs = await _old_runs(s)
            await asyncio.sleep(gap)
            began = time.monotonic()
            await _make_young(s, runs)
            removed = await _prune(s, gap - _MARGIN)
            if time.monotonic() - began + _WHOLE_SECONDS < gap - _MARGIN:
                await _judge(s, runs, removed)
                return
        if subject.findings:
            return
    raise MisuseError("a few saves took so long that young runs could not be told from old ones; run the check again")


async def _old_runs(s: Scenario) -> _Runs:
    """Make a finished run, one of each other status, and one that is begun and finished later."""
    token = "".join(s.subject.draw.token() for _ in range(4))
    old = await s.create({"topic": token})
    await s.save(old, {"researcher": {"facts": [token]}})
    old.context.status = "finished"
    await s.save(old, {"writer": f"{token}." * 4_000})
    stay = []
    for status in _STATUSES:
        handle = await s.create({"status": status})
        handle.context.status = status  # type: ignore[assignment]
        await s.save(handle, {"researcher": status})
        stay.append(handle)
    stay.append(await s.create({"status": "finished later"}))
    await s.save(stay[-1], {"researcher": "begun long ago"})
    return _Runs(old, stay, token)


async def _make_young(s: Scenario, runs: _Runs) -> None:
    young = await s.create({"status": "finished just now"})
    for handle in (runs.stay[-1], young):
        handle.context.status = "finished"
        await s.save(handle, {"writer": "finished just now"})
    runs.stay.append(young)


async def _judge(s: Scenario, runs: _Runs, removed: Any) -> None:
    s.expect(sorted(removed)).equals([runs.old.run_id], what="what prune returned", because="only this run was removed")
    for handle in runs.stay:
        why = f"it was not finished and old: {handle.record.inputs['status']}"
        await s.expect_acknowledged(handle.run_id, because=why, inputs={"topic": "another"})
    await s.late_save(runs.old, {"late": "after the prune"})
    async with s.elsewhere() as other:
        s.expect((await other.look_for(runs.old.run_id, {"created": "anew"})).inputs).equals(
            {"created": "anew"},
            what="the inputs",
            because="the run was removed, so that another process creates it anew",
        )
    await s.delete(runs.old.run_id)
    if s.folder is not None:
        await s.close()
        expect_in_no_file(
            s.expect(files_with(s.folder, runs.token)), because="a run that was removed must leave nothing behind"
        )


async def _beside_traffic(subject: StoreSubject) -> None:
    for runs, pause in _ATTEMPTS:
        if await _beside_traffic_with(subject, runs, pause) or subject.findings:
            return
    raise VacuousCheck("no prune has removed anything while the others were at work, so nothing was shown")


async def _beside_traffic_with(subject: StoreSubject, runs: int, pause: float) -> bool:
    """Prune beside others with so many runs each; return whether anything was removed while they were at work."""
    during = 0
    title = f"{_PROCESSES} processes finish runs, and begin them anew, while this one prunes"
    async with subject.scenario(title) as s, workers(s, _PROCESSES) as others:
        await s.open()
        run_ids = [[subject.fresh_run_id() for _ in range(runs)] for _ in range(_PROCESSES)]
        seconds = subject.call_seconds * _PART_OF_A_CALL
        plans = [{"run_ids": ids, "seconds": seconds, "pause": pause} for ids in run_ids]
        traffic = asyncio.create_task(
            all_at_once(others, finish_and_begin_again, "finishes runs and begins them anew", plans)
        )
        removed, spans = 0, list[tuple[float, float]]()
        try:
            while not traffic.done():
                began = time.monotonic()
                if count := len(await _prune(s, 0.0)):
                    removed += count
                    spans.append((began, time.monotonic()))
            came = await traffic
        finally:
            traffic.cancel()
        s.expect(f"{removed} runs removed").has_no(
            next((lost for each in came for lost in each["lost"]), None),
            allowed="only finished runs are removed",
            because="it was begun anew, and not finished: there was nothing to prune of it",
        )
        during = sum(any(each["began"] < end and begin < each["ended"] for each in came) for begin, end in spans)
        s.tell(f"{during} of these have removed {removed} runs, beside {sum(each['done'] for each in came)} at work")
    return during > 0


async def _prune(s: Scenario, older_than: float) -> Any:
    await s.open()
    calling = call_either(partial(s.raw.prune, older_than=older_than))
    return await s.call(f"prune(older_than={older_than:g})", calling, show)
