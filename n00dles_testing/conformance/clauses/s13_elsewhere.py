"""S13: usable from another task, event loop and thread, and after a fork, or a typed error at once."""

from __future__ import annotations

import asyncio
import os
from functools import partial

from ..durability import keeps_nothing
from ..judged_uses import Uses
from ..registry import clause
from ..scenario import Scenario
from ..subject import StoreSubject
from ..used_elsewhere import use_after_a_fork, use_in_loops, use_in_threads

_THREADS = 4
_LIMIT = 10.0
_INPUTS = {"topic": "cats"}


@clause("S13", level=1, title="usable from elsewhere, or an error at once")
async def usable_from_elsewhere(subject: StoreSubject) -> None:
    """One store object is usable from another task, event loop and thread, and after a fork, or raises at once.

    A script calls `asyncio.run` twice; a web server has a loop in each thread; a server of workers forks after it has
    opened its database. The suite does all of this in other processes: one object in two event loops, one after the
    other, and in a loop of another thread; in four threads at once, each with a run of its own and all with one more;
    and in a process and its fork, at the same time, each with a run of its own, and then one after the other with one
    of both. Once both close the store, once the parent does so while the child goes on, which then ends without.

    Any call may raise, which is noted, and changes nothing; none may hang, for 10 s (or `--limit`, if that is less).
    What was acknowledged must come back, whole and unmixed: to whoever saved it, to the first owner, and, if the store
    is durable, to a third process. A store in memory is copied by a fork: there, what was saved before is found. One
    run that both have saved is asked for only if two processes that open the store by themselves can do that: whether
    they can, is for level 4.

    Seen in: langchain-ai/langgraph #8136 (a guard that is one per instance, and of no use in the next process),
    pytest-dev/pytest-asyncio #145 (what belongs to an event loop outlives it).
    """
    await _tasks(subject)
    refusals: dict[str, str] = {}
    limit = min(_LIMIT, subject.call_seconds)
    await _loops(subject, refusals, limit)
    await _threads(subject, refusals, limit)
    if hasattr(os, "fork"):
        await _forks(subject, refusals, limit)
    else:
        subject.notes.append("not tried: a fork, which this system does not have")
    subject.notes += [f"{who}: {error}" for who, error in refusals.items()]


async def _tasks(subject: StoreSubject) -> None:
    async with subject.scenario("each call in a task of its own") as s:
        handle = await asyncio.create_task(s.create(_INPUTS))
        await asyncio.create_task(s.save(handle, {"a": "of another task"}))
        again = await asyncio.create_task(s.load(handle.run_id))
        s.expect(again.record).equals(s.acknowledged[handle.run_id], because="it was acknowledged to another task")
        await asyncio.create_task(s.save(again, {"b": "of a third task"}))
        await asyncio.create_task(s.close())
        await asyncio.create_task(s.open())


async def _loops(subject: StoreSubject, refusals: dict[str, str], limit: float) -> None:
    async with subject.scenario("two event loops, one after the other, and one of another thread") as s:
        run_id = subject.fresh_run_id()
        async with s.elsewhere() as other:
            came = await other.perform(use_in_loops, run_id=run_id, limit=limit)
        Uses(s, "the first event loop", refusals).judge(came, limit)
        await _is_kept(s)


async def _threads(subject: StoreSubject, refusals: dict[str, str], limit: float) -> None:
    loses = not await subject.once("saves of two handles", lambda: _keeps_saves_of_two_handles(subject))
    async with subject.scenario(f"{_THREADS} threads at once, each with an event loop and a run of its own") as s:
        run_ids = [subject.fresh_run_id() for _ in range(_THREADS)]
        together = subject.fresh_run_id()
        async with s.elsewhere() as other:
            came = await other.perform(use_in_threads, run_ids=run_ids, together=together, limit=limit)
        Uses(s, "who opened it", refusals, shared={together}, ignored={together} if loses else set()).judge(came, limit)
        await _is_kept(s)
    if loses:
        subject.notes.append("one run that all threads save was not judged: one thread loses its saves, too (S08, S09)")


async def _forks(subject: StoreSubject, refusals: dict[str, str], limit: float) -> None:
    serves_two = await subject.once("serves two processes", lambda: _serves_two_processes(subject))
    for closes_first, title in (
        (False, "a process and its fork"),
        (True, "a process that closes before its fork does"),
    ):
        async with subject.scenario(f"{title}, at the same time") as s:
            runs = {name: subject.fresh_run_id() for name in ("mine", "childs", "both")}
            async with s.elsewhere() as other:
                came = await other.perform(use_after_a_fork, **runs, closes_first=closes_first, limit=limit)
            ignored = set() if serves_two else {runs["both"]}
            Uses(s, "the parent", refusals, ignored=ignored).judge(came, limit)
            await _is_kept(s, ends=("closed", "killed"))
    if not serves_two:
        subject.notes.append(
            "a run that a process and its fork both save was not judged: two processes that open the store by "
            "themselves cannot do that either"
        )


async def _is_kept(s: Scenario, *, ends: tuple[str, ...] = ("closed",)) -> None:
    """Have a third process look for what was acknowledged, if the store keeps it when it ends in these ways."""
    if await keeps_nothing(s.subject):
        return
    for end in ends:
        if not await s.subject.once(f"kept when {end}", partial(_keeps, s.subject, is_closed=end == "closed")):
            note = (
                f"a third process did not look: what one process alone has saved, and then was {end}, it does not find"
            )
            if note not in s.subject.notes:
                s.subject.notes.append(note)
            return
    async with s.elsewhere() as third:
        for run_id, record in s.acknowledged.items():
            s.expect((await third.load(run_id)).by_name()).equals(
                record.by_name(), because="it was acknowledged, and this process has opened the store afterwards"
            )


async def _keeps(subject: StoreSubject, *, is_closed: bool) -> bool:
    async with subject.probe("is a run found that another process has saved?") as s:
        async with s.elsewhere() as one:
            run_id = await one.create(_INPUTS)
            await one.save(run_id, {"a": "of one process"}, then_die=not is_closed)
            if is_closed:
                await one.close()
        async with s.elsewhere() as other:
            return await other.load(run_id) == s.acknowledged[run_id]
    return False


async def _keeps_saves_of_two_handles(subject: StoreSubject) -> bool:
    async with subject.probe("are saves of two handles at the same time refused or kept?") as s:
        run_id = (await s.create(_INPUTS)).run_id
        handles = [await s.load(run_id) for _ in range(3)]
        saves = [s.late_save(handle, {f"node{number}": "kept"}) for number, handle in enumerate(handles)]
        taken = {f"node{number}" for number, is_taken in enumerate(await asyncio.gather(*saves)) if is_taken}
        return taken <= (await s.load(run_id)).record.completed.keys()
    return False


async def _serves_two_processes(subject: StoreSubject) -> bool:
    title = "can two processes save one run, one after the other?"
    async with (
        subject.probe(title) as s,
        s.elsewhere(patience=subject.patience) as one,
        s.elsewhere(patience=subject.patience) as two,
    ):
        run_id = await one.create(_INPUTS)
        await two.look_for(run_id, _INPUTS)
        await two.save(run_id, {"two": "of the second process"})
        await one.look_for(run_id, _INPUTS)
        await one.save(run_id, {"one": "of the first process"})
        return (await two.look_for(run_id, _INPUTS)).completed.keys() == {"one", "two"}
    return False
