"""S09: overlapping saves of one run leave every acknowledged node in the record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ..expect import NotApplicableError, VacuousCheck
from ..overlap import Overlap, save_in_one_loop, save_in_threads
from ..records import Record
from ..registry import clause
from ..scenario import Handle, Scenario
from ..subject import StoreSubject

_ROUNDS = 8
_ROUNDS_IN_THREADS = 40
_SAVES = 5
_LARGEST = 200_000

Saves = list[tuple[Handle, str, Any]]
Begin = Callable[[Scenario, Saves], Awaitable[Overlap]]


@dataclass(slots=True)
class _Way:
    """A way to have saves overlap, at most `most` rounds of it, and what has come of it.

    `overlapped` counts the rounds in which calls did, `acknowledged` those in which any save was.
    """

    title: str
    begin: Begin
    most: int
    rounds: int = 0
    overlapped: int = 0
    acknowledged: int = 0
    refusal: str = ""


@clause("S09", level=1, title="overlapping saves lose no acknowledged node")
async def overlapping_saves(subject: StoreSubject) -> None:
    """Saves of one run that are under way at the same time, through one store object, lose nothing.

    Members of a fan-out end while another one is being saved, so the next save begins before the last one has returned;
    each holds what had completed when it began. In whatever order they land, the record must then hold every node whose
    save was acknowledged; also when two handles of the run save at once (where the store may refuse all but one), and
    when the store is opened again. Outputs of different sizes overtake one another.

    That calls have overlapped is proven, or else the check is VACUOUS: one began before another had returned. A store
    whose saves give way to no other in one event loop is called from several threads; if it refuses that, saves cannot
    overlap, and the clause does not apply.

    Seen in: strands-agents/harness-sdk #3633 (a save while a sibling ends), google/adk-python #4751 (interleaved
    writers lose events), langchain-ai/langgraph #8136 (a guard that is one per instance).
    """
    in_a_loop = _Way("at once", save_in_one_loop, _ROUNDS)
    await _try(subject, in_a_loop)
    if in_a_loop.overlapped >= in_a_loop.rounds // 2 or subject.findings:
        return
    in_threads = _Way("in threads", _in_threads, _ROUNDS_IN_THREADS)
    await _try(subject, in_threads)
    if not (in_a_loop.overlapped or in_threads.overlapped or subject.findings):
        _nothing_overlapped(in_a_loop, in_threads)


async def _try(subject: StoreSubject, way: _Way) -> None:
    await _rounds(subject, f"{_SAVES} saves {way.title}, of one context", _of_one_context, way)
    await _rounds(subject, f"{_SAVES} saves {way.title}, of a handle each", _of_a_handle_each, way)


async def _rounds(
    subject: StoreSubject, title: str, saves_of: Callable[[Scenario, int], Awaitable[Saves]], way: _Way
) -> None:
    """Try it on a fresh run each time, until it has overlapped often enough."""
    before = way.overlapped
    async with subject.scenario(title) as s:
        controls, tried = [await _saved_in_turn(s)], list[str]()
        for number in range(way.most):
            saves = await saves_of(s, number)
            overlap = await way.begin(s, saves)
            way.rounds += 1
            way.overlapped += overlap.is_proven and bool(overlap.acknowledged)
            way.acknowledged += bool(overlap.acknowledged)
            way.refusal = overlap.refused[0] if overlap.refused else way.refusal
            tried.append(saves[0][0].run_id)
            await _holds(s, tried[-1], {node: output for _, node, output in saves}, overlap)
            if way.overlapped - before >= _ROUNDS:
                break
        controls.append(await _saved_in_turn(s))
        if not await s.keeps_after_reopening(*controls):
            return
        for run_id in tried:
            await s.expect_acknowledged(run_id, because="so it was before the store was opened again")
        await s.save(await s.load(tried[-1]), {"z-last": "after opening again"})
        await s.expect_acknowledged(tried[-1], because="the store was opened again, and goes on")


async def _saved_in_turn(s: Scenario) -> str:
    """Save the same nodes one after the other, so that only the overlapping is missing; return the id of the run."""
    run_id = (await s.create({"topic": "in turn"})).run_id
    for node, output in _nodes(s):
        await s.saves_or_refuses(await s.load(run_id), {node: output})
    return run_id


async def _in_threads(s: Scenario, saves: Saves) -> Overlap:
    return await save_in_threads(s, await s.opened(), saves)


async def _of_one_context(s: Scenario, number: int) -> Saves:
    handle = await s.create({"topic": f"round {number}"})
    return [(handle, *node) for node in _nodes(s)]


async def _of_a_handle_each(s: Scenario, number: int) -> Saves:
    run_id = (await s.create({"topic": f"round {number}"})).run_id
    return [(await s.load(run_id), *node) for node in _nodes(s)]


def _nodes(s: Scenario) -> list[tuple[str, Any]]:
    """The first is the largest, and is likely to land last."""
    token = s.subject.draw.token()
    return [(f"node{at}", {"text": f"{token} " * (_LARGEST // (9 * 8**at) + 1) + token}) for at in range(_SAVES)]


async def _holds(s: Scenario, run_id: str, tried: dict[str, Any], overlap: Overlap) -> None:
    """Every acknowledged node is there, and nothing that nobody saved."""
    came = (await s.load(run_id)).record
    wanted = {node: tried[node] for node in came.completed if node in tried} | overlap.acknowledged
    s.expect(came.by_name()).equals(
        Record(s.acknowledged[run_id].inputs, wanted, tuple(sorted(wanted))),
        because=f"the saves of {', '.join(sorted(overlap.acknowledged)) or 'no node'} were acknowledged",
    )
    s.acknowledged[run_id] = came


def _nothing_overlapped(in_a_loop: _Way, in_threads: _Way) -> None:
    if in_a_loop.acknowledged and not in_threads.acknowledged:
        raise NotApplicableError(
            f"saves cannot overlap: in {in_a_loop.rounds} rounds of {_SAVES} at once, in one event loop, each ended "
            f"before the next began, and saves from other threads are refused ({in_threads.refusal})"
        )
    raise VacuousCheck(
        f"no save began before another had returned: not in {in_a_loop.rounds} rounds in one event loop, and not in "
        f"{in_threads.rounds} in threads, so nothing was shown"
    )
