"""W08: nothing is held while a node runs: a pool of one connection is enough."""

from __future__ import annotations

import asyncio

from ..at_work import expect_no_transaction, open_descriptors, why_no_server_is_asked
from ..durability import require_durable
from ..late_saves import expect_nothing_lost
from ..many_workers import require_shared
from ..registry import clause
from ..scenario import Handle, Scenario
from ..subject import StoreSubject

_AT_WORK = 64
"""More nodes than any usual pool has connections."""
_AT_ONCE = 8
_INPUTS = {"topic": "cats"}


@clause("W08", level=4, title="nothing is held while a node runs: a pool of one connection is enough")
async def one_connection(subject: StoreSubject) -> None:
    """A store holds nothing while a node runs: no connection, no transaction, no lock.

    A node that calls a model runs for minutes, and a worker runs many. A connection that is held for so long is missing
    in the pool, and one transaction that is left open keeps a server from cleaning up, or others from saving. So one
    process has loaded a run, and saved it, and its node runs: another process saves other runs meanwhile, and that very
    run, without having to wait, and nobody has a transaction open, on a SQLite file or, where the suite has started the
    server, in the server's own list of connections. Then 64 nodes run at the same time, of as many runs, on one store
    object: each call is answered, and the process has not opened a descriptor for each of them.

    The same is tried with a pool of one connection, if the suite knows how to ask for one: of a PostgreSQL store of
    n00dles it does, and a factory may have an attribute `pool_of_one`, which is called as the factory itself and opens
    the same store with one connection.

    Seen in: langchain-ai/langgraph #5675 and #3716 (a connection that is idle during a long model call is dropped, and
    the next save fails), langchain-ai/langgraph #8136 ("database is locked": one worker's lock is in another's way).
    """
    await require_durable(subject)
    await require_shared(subject)
    for tries in (_another_process_goes_on, _many_nodes_run, _a_pool_of_one):
        if not subject.findings:
            await tries(subject)
    if why := why_no_server_is_asked(subject):
        subject.notes.append(why)


async def _another_process_goes_on(subject: StoreSubject) -> None:
    async with subject.scenario("a node runs in one process, and another process saves") as s, s.elsewhere() as one:
        await s.open()
        run_id = await one.create(_INPUTS)
        await _others_are_not_kept(s, run_id, "loaded", "has created the run, and its first node runs")
        await one.load(run_id)
        await one.save(run_id, {"writer": "On Cats"})
        await _others_are_not_kept(s, run_id, "saved", "has saved the run, and its next node runs")
        late = {"editor": "the node that ran all the while"}
        is_taken = await one.late_save(run_id, late)
        await expect_nothing_lost(s, run_id, late, is_taken=is_taken)


async def _others_are_not_kept(s: Scenario, run_id: str, when: str, because: str) -> None:
    await expect_no_transaction(s, because=f"a process {because}")
    async with s.elsewhere(patience=s.subject.patience) as another:
        other_run = await another.create({"topic": "dogs"})
        await another.save(other_run, {"barker": "dogs bark"})
        await another.load(run_id)
        await another.save(run_id, {f"when-{when}": "by the other process"})
        await another.delete(other_run)


async def _many_nodes_run(subject: StoreSubject) -> None:
    async with subject.scenario(f"{_AT_WORK} nodes run at the same time, on one store object") as s:
        await _and_save(s, await s.create(_INPUTS))
        before = open_descriptors()
        handles = [await s.create(_INPUTS) for _ in range(_AT_WORK)]
        await _descriptors_are_flat(s, before)
        for handle in handles:
            await _and_save(s, handle)
        await _descriptors_are_flat(s, before)
        for handle in handles:
            await s.expect_acknowledged(handle.run_id, because="its save was acknowledged, as that of every run")


async def _descriptors_are_flat(s: Scenario, before: int | None) -> None:
    after = open_descriptors()
    if before is None or after is None:
        return
    more = after - before
    s.expect(f"{more} more descriptors than before").has_no(
        f"{more} descriptors were opened for {_AT_WORK} runs at work" if more >= _AT_WORK // 2 else None,
        allowed="about as many descriptors as with one run",
        because="each run at work would hold a file or a connection for as long as its node runs",
    )
    await expect_no_transaction(s, because=f"the nodes of {_AT_WORK} runs are running, and no call is under way")


async def _and_save(s: Scenario, handle: Handle) -> None:
    await s.save(handle, {"writer": f"of {handle.run_id}"})


async def _a_pool_of_one(subject: StoreSubject) -> None:
    usual, with_one = subject.target, subject.target.with_a_pool_of_one()
    if with_one is None:
        if subject.served is not None:
            subject.notes.append("a pool of one was not tried: the factory has no attribute pool_of_one")
        return
    subject.target = with_one
    try:
        async with subject.scenario(f"{_AT_ONCE} runs at the same time, with a pool of one connection") as s:
            handles = list(await asyncio.gather(*(s.create(_INPUTS) for _ in range(_AT_ONCE))))
            await asyncio.gather(*(_and_save(s, handle) for handle in handles))
            for handle in handles:
                await s.expect_acknowledged(handle.run_id, because="its save was acknowledged")
    finally:
        subject.target = usual
