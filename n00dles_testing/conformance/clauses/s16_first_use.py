"""S16: processes that use a fresh location for the first time, at once, all succeed."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any

from ..durability import require_durable
from ..elsewhere import Elsewhere
from ..expect import BrokenClause, MisuseError, VacuousCheck
from ..first_use import use_first
from ..records import Record
from ..registry import clause
from ..scenario import Scenario
from ..subject import StoreSubject

_PROCESSES = 8
_ROUNDS = 8
"""With rests before the calls, three rounds in four catch a store that looks and then acts."""
_FEWEST_ROUNDS = 6
_MANY_ROUNDS = 24
_SECONDS = 1.5
"""Time for the rounds of a slow store."""
_MOST_SECONDS = 10.0
"""Time for more rounds than many, on a machine that is too busy for a race."""
_SHARE = 0.5
"""Of the time for the clause, which a store may need for a few rounds."""
_LEAD_SECONDS = 0.01
"""Until all have been told when to begin."""


@clause("S16", level=1, title="processes that open a fresh location at once all succeed")
async def first_use(subject: StoreSubject) -> None:
    """Eight processes that open a fresh location at the same moment all succeed.

    So it is when workers are deployed: the first thing that they do is to make the same folder, file, table or index.
    Whoever looks whether it is there, and then makes it, is right every time but this one. Each process opens the
    store, creates a run of its own and one that all have in common, saves its own, loads it, and closes the store.
    Nothing of it may raise, and each run must be there afterwards, for another process. (Whose inputs the common run
    has is asked by W03.) All have been started and have imported the store before, and begin at a moment that is agreed
    upon; before its calls to the system each rests for a fraction of a millisecond, as a loaded machine has it rest. It
    is tried on eight fresh locations, since one round does not catch every such store. That calls have overlapped is
    proven: a round in which they have not is made again, and with fewer than six in which they have the check is
    VACUOUS. How long a store waits for its turn is its own matter, within the limit for a call.

    Seen in: openai/openai-agents-python PR #4987, theexperiencecompany/gaia PR #1173 and nbramia/LifeOS #952 (the
    switch to WAL, the creation of tables, or a migration by several openers fails).
    """
    await require_durable(subject)
    if not subject.target.takes_location:
        raise MisuseError(
            "a first use needs a fresh location each time. Give the factory one argument, the location, a folder as a "
            "string"
        )
    # One thread for each process that is waited for.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2 * _PROCESSES))
    is_found_later = await _one_alone(subject)
    async with (
        subject.scenario(f"{_PROCESSES} processes open a fresh location at once") as s,
        AsyncExitStack() as stack,
    ):
        reader = await stack.enter_async_context(s.elsewhere())
        racers = [await stack.enter_async_context(s.elsewhere()) for _ in range(_PROCESSES)]
        await _rounds(s, racers, reader if is_found_later else None)


async def _one_alone(subject: StoreSubject) -> bool:
    """Whether what one process has saved alone is found by another one; if not, that is C01's finding."""
    async with subject.probe("is a run found by another process?") as s:
        async with s.elsewhere() as other:
            run_id = await other.create({"topic": "cats"})
            await other.save(run_id, {"researcher": "facts"})
            await other.close()
        async with s.elsewhere() as other:
            if await other.load(run_id) == s.acknowledged[run_id]:
                return True
    subject.notes.append("whether the runs are there afterwards was not tried: that of one process alone is not (C01)")
    return False


async def _rounds(s: Scenario, racers: Sequence[Elsewhere], reader: Elsewhere | None) -> None:
    started = time.monotonic()
    overlapped = 0
    for number in itertools.count(1):
        overlapped += await _round(s, number, racers, reader)
        seconds = time.monotonic() - started
        if overlapped >= _ROUNDS or (seconds > _SECONDS and overlapped >= _FEWEST_ROUNDS):
            break
        if seconds > _SHARE * s.subject.seconds or (seconds > _MOST_SECONDS and number >= _MANY_ROUNDS):
            raise VacuousCheck(
                f"in {overlapped} of {number} rounds, which took {seconds:.1f} s, a process began before another one "
                f"had ended; fewer than {_FEWEST_ROUNDS} show too little. On a machine that does less, or with a "
                "higher --limit, there are more"
            )
    if overlapped < _ROUNDS:
        s.subject.notes.append(f"{overlapped} rounds in which processes overlapped, not {_ROUNDS}")


async def _round(s: Scenario, number: int, racers: Sequence[Elsewhere], reader: Elsewhere | None) -> bool:
    """Race once, on a fresh location; return whether it was a race."""
    s.location = s.subject.fresh_location()
    common_id = s.subject.fresh_run_id()
    run_ids = [s.subject.fresh_run_id() for _ in racers]
    at = time.monotonic() + _LEAD_SECONDS
    calls = [
        racer.perform(use_first, run_id=run_id, common_id=common_id, at=at)
        for racer, run_id in zip(racers, run_ids, strict=True)
    ]
    # All are told before any is waited for, and all have ended before any is judged.
    ends = await asyncio.gather(*calls, return_exceptions=True)
    came: list[dict[str, Any]] = []
    for end in ends:
        if isinstance(end, BaseException):
            raise end
        came.append(end)
    failed = [each for each in came if "raised" in each]
    s.tell(
        f"round {number}, {len(racers)} processes at once: open, load_or_create(own run), load_or_create(common run), "
        f"save, load, close → {len(came) - len(failed)} succeeded"
    )
    if failed:
        raise _not_all(failed, len(racers))
    wanted = Record.new({"topic": "cats"}).after({"researcher": "facts"})
    for run_id, each in zip(run_ids, came, strict=True):
        s.expect(Record.from_dict(each["record"])).equals(wanted, because="this process has just saved it")
        s.acknowledged[run_id] = wanted
    if reader is not None:
        for run_id in run_ids:
            s.expect(await reader.load(run_id)).equals(wanted, because="each of the processes has saved its own run")
        await reader.close()
    return _have_overlapped([each["span"] for each in came])


def _not_all(failed: Sequence[dict[str, Any]], count: int) -> BrokenClause:
    first = failed[0]
    raised = f"{first['call']} raised {first['raised']}"
    return BrokenClause(
        f"{len(failed)} of {count} processes that opened a fresh location at once failed: {raised}",
        (
            *((label, text) for label, text in first["where"]),
            ("allowed", "every call is acknowledged, after a wait if need be"),
            ("came", "; ".join(sorted({f"{each['call']} raised {each['raised']}" for each in failed}))),
            ("why", "workers are started together; each of them is the first for a moment"),
        ),
    )


def _have_overlapped(spans: Sequence[Sequence[float]]) -> bool:
    """Whether a process began before another one had ended."""
    in_order = sorted((began, ended) for began, ended in spans)
    return any(later[0] < earlier[1] for earlier, later in itertools.pairwise(in_order))
