"""W07: leases, where offered: one holder at a time, in all processes, and nobody waits for the dead."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from itertools import pairwise
from typing import Any

from ..durability import require_durable
from ..elsewhere import Elsewhere, Lasted
from ..expect import VacuousCheck
from ..late_saves import expect_nothing_lost
from ..many_workers import all_at_once, require_shared, workers
from ..offers import require_offered
from ..registry import clause
from ..scenario import Scenario
from ..subject import StoreSubject
from ..turns import take_turns

_LONG = 600.0
_SHORT = 0.4
_GRAIN = 0.01
"""In seconds: what clocks may be coarse by."""
_PAUSE = 0.01
_SECONDS_TO_EXPIRE = 10.0
_SECONDS_TO_SEE_A_DEATH = 2.0
"""The system frees what a process held when it ends; a server may take a moment to see the connection closed."""
_DAY = 86_400
_PROCESSES, _TURNS, _ATTEMPTS = 4, 5, 3
_INPUTS = {"topic": "cats"}


@clause("W07", level=4, title="a lease has one holder at a time, and nobody waits for the dead")
async def leases(subject: StoreSubject) -> None:
    """Where leases are offered, one worker at a time holds a run, in all processes that have the store open.

    Four processes want one lease, hold it for a moment and give it up, many times: no two turns may overlap, by the
    one monotonic clock of the host. A lease lasts as long as it was asked for, and not less; who renews it keeps it,
    and who releases it frees the run at once. A worker is stopped by SIGSTOP, so that it cannot renew: another takes
    over when the lease has expired, not before, and when the first one wakes up, its renewal is refused, its release
    frees nothing, and its save takes nothing back. A worker that is killed by SIGKILL on the same host leaves the run
    free at once, however long its lease was to last: who restarts a worker does not want to wait for it. A worker whose
    wall clock is a day ahead, or a day behind, neither gets what another holds, nor loses what it holds, nor keeps what
    it does not renew. One run's lease has nothing to do with that of another.

    A store without leases has none to break, and this does not apply: it fences by its revision alone (W02, W04).

    Seen in: langchain-ai/langgraph #8136 (a guard that is one per instance), NousResearch/hermes-agent #80921 (several
    processes resume one parked run).
    """
    await require_durable(subject)
    await require_shared(subject)
    await require_offered(subject, "leases")
    if subject.findings:
        return
    for tries in (
        _one_holder,
        _kept_by_who_renews_it,
        _taken_over_when_it_expires,
        _free_when_its_holder_is_dead,
        _whatever_a_clock_shows,
    ):
        await tries(subject)


async def _one_holder(subject: StoreSubject) -> None:
    async with subject.scenario(f"{_PROCESSES} processes want one lease, {_TURNS} times each") as s:
        for _ in range(_ATTEMPTS):
            came = await _take_turns(s, subject.fresh_run_id())
            turns = sorted((given, until) for each in came for given, until in each["turns"])
            s.expect(f"{len(turns)} turns").has_no(
                _overlap(turns), allowed="one holder at a time", because="a lease keeps a second worker from starting"
            )
            missed = [each["refusal"] for each in came if len(each["turns"]) < _TURNS]
            s.expect(f"{len(turns)} turns").has_no(
                f"a process did not get the lease {_TURNS} times: {missed[0]}" if missed else None,
                allowed="whoever asks again gets it when it is free",
                because="each holder had given it up after two milliseconds",
            )
            if any(each["refused"] for each in came):
                return
        raise VacuousCheck(f"no process asked for the lease while another had it, in {_ATTEMPTS} attempts")


async def _take_turns(s: Scenario, run_id: str) -> list[dict[str, Any]]:
    await s.open()
    plan = {"run_id": run_id, "turns": _TURNS, "seconds": s.subject.call_seconds}
    async with workers(s, _PROCESSES) as others:
        return await all_at_once(others, take_turns, "takes turns", [plan] * _PROCESSES)


def _overlap(turns: list[tuple[float, float]]) -> str | None:
    for first, second in pairwise(turns):
        if second[0] < first[1]:
            return f"one holder had it until {_ms(first[1], turns)}, another was given it at {_ms(second[0], turns)}"
    return None


def _ms(at: float, turns: list[tuple[float, float]]) -> str:
    return f"{(at - turns[0][0]) * 1000:.2f} ms"


async def _kept_by_who_renews_it(subject: StoreSubject) -> None:
    async with subject.scenario("a lease is renewed, and released") as s, s.elsewhere() as one, s.elsewhere() as other:
        run_id, another_run = subject.fresh_run_id(), subject.fresh_run_id()
        renewed = await _renewed_before_it_expires(s, one, run_id)
        await _must(s, other.acquire(another_run, _LONG), "the lease that is held is that of another run")
        await asyncio.sleep(max(0.0, renewed.ended + _SHORT + _GRAIN - time.monotonic()))

        await _must_not(s, other.acquire(run_id, _LONG), "the lease was renewed for ten minutes")
        await one.release(run_id)
        await _must(s, other.acquire(run_id, _LONG), "the lease was released")
        await one.release(run_id)
        await _must_not(s, one.acquire(run_id, _LONG), "a release of a lease that is over frees nothing of another's")
        await _must(s, other.renew(run_id, _LONG), "it still holds the run")


async def _renewed_before_it_expires(s: Scenario, one: Elsewhere, run_id: str) -> Lasted:
    """Renew a short lease for a long time. On a busy machine it may expire before: that is tried again."""
    for _ in range(_ATTEMPTS):
        given = await _must(s, one.acquire(run_id, _SHORT), "nobody holds the run")
        renewed = await one.renew(run_id, _LONG)
        if renewed is not None or time.monotonic() < given.began + _SHORT:
            break
        await one.release(run_id)
    _judge(s, renewed is not None, "renewed", "it has not expired, and nobody else has asked for it")
    assert renewed is not None
    return renewed


async def _taken_over_when_it_expires(subject: StoreSubject) -> None:
    async with subject.scenario("a holder is stopped, and another takes over") as s:
        async with s.elsewhere() as first, s.elsewhere() as second, s.elsewhere() as third:
            run_id = await first.create(_INPUTS)
            await first.save(run_id, {"researcher": "purr"})
            given = await _must(s, first.acquire(run_id, _SHORT), "nobody holds the run")
            await first.stop()
            taken = await _in_time(
                s, second, run_id, _LONG, seconds=_SECONDS_TO_EXPIRE, because="its lease has expired"
            )
            early = given.began + _SHORT - taken.ended
            s.expect(f"it was given after {taken.ended - given.began:.3f} s").has_no(
                f"a lease of {_SHORT:g} s was given to another {early:.3f} s too early" if early > _GRAIN else None,
                allowed=f"at the earliest after {_SHORT:g} s",
                because="its holder may be at work for as long as that",
            )
            await second.look_for(run_id, _INPUTS)
            await second.save(run_id, {"critic": "approved by who took over"})
            first.go_on()

            await _must_not(s, first.renew(run_id, _LONG), "another has taken over")
            await first.release(run_id)
            await _must_not(s, third.acquire(run_id, _LONG), "the lease is that of who took over, and not released")
            await _must(s, second.renew(run_id, _LONG), "it holds the run")
            is_taken = await first.late_save(run_id, {"writer": "by the old holder"})
        end = await expect_nothing_lost(s, run_id, {"writer": "by the old holder"}, is_taken=is_taken)
        if is_taken:
            subject.notes.append(f"leases do not fence: the save of an old holder was {end}")


async def _free_when_its_holder_is_dead(subject: StoreSubject) -> None:
    async with subject.scenario("a holder is killed") as s, s.elsewhere() as second:
        run_id = await second.create(_INPUTS)
        async with s.elsewhere() as first:
            await first.acquire(run_id, _LONG, then_die=True)
            why = "its holder is dead, on this host"
            await _in_time(s, second, run_id, _LONG, seconds=_SECONDS_TO_SEE_A_DEATH, because=why)


async def _whatever_a_clock_shows(subject: StoreSubject) -> None:
    async with (
        subject.scenario("the clocks of two workers are a day ahead and a day behind") as s,
        s.elsewhere() as right,
        s.elsewhere() as ahead,
        s.elsewhere() as behind,
    ):
        await ahead.set_clock(_DAY)
        await behind.set_clock(-_DAY)
        clocks = {"ahead": ahead, "right": right, "behind": behind}
        run_id = subject.fresh_run_id()
        for whose, holder in clocks.items():
            await _must(s, holder.acquire(run_id, _LONG), "nobody holds the run")
            for others, worker in clocks.items():
                if worker is not holder:
                    why = f"it is held, by the worker whose clock is {whose}, and who asks has one that is {others}"
                    await _must_not(s, worker.acquire(run_id, _LONG), why)
            await holder.release(run_id)
        await _must(s, ahead.acquire(run_id, _SHORT), "nobody holds the run")
        for worker in (right, behind):
            why = "the lease was for less than a second"
            await _in_time(s, worker, run_id, _SHORT, seconds=_SECONDS_TO_EXPIRE, because=why)


async def _must(s: Scenario, asked: Awaitable[Lasted | None], because: str) -> Lasted:
    came = await asked
    _judge(s, came is not None, "given", because)
    assert came is not None
    return came


async def _must_not(s: Scenario, asked: Awaitable[Lasted | None], because: str) -> None:
    _judge(s, await asked is None, "refused", because)


def _judge(s: Scenario, is_right: bool, allowed: str, because: str) -> None:
    wrong = "was given" if allowed == "refused" else "was refused"
    s.expect(allowed if is_right else wrong).has_no(
        None if is_right else f"a lease {wrong}: {because}", allowed=f"it is {allowed}", because=because
    )


async def _in_time(s: Scenario, worker: Elsewhere, run_id: str, ttl: float, *, seconds: float, because: str) -> Lasted:
    """Ask for a lease until it is given; three times at least, on a busy machine."""
    ends, attempts = time.monotonic() + seconds, 0
    while (came := await worker.acquire(run_id, ttl)) is None and (attempts < _ATTEMPTS or time.monotonic() < ends):
        attempts += 1
        await asyncio.sleep(_PAUSE)
    _judge(s, came is not None, "given", because)
    assert came is not None
    return came
