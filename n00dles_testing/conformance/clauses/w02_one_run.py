"""W02: many clients, one run: the history is linearizable, and no update is lost."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from random import Random

from ...histories import History
from ...histories.traffic import Traffic
from ...verdicts import Verdict
from ..every_order import in_every_order
from ..expect import UnknownOutcomeError, VacuousCheck
from ..many_workers import all_at_once, keeps_revisions, moment, require_shared, workers
from ..recorded import Recording, expect_no_violation
from ..recorded_traffic import make_recorded_traffic
from ..registry import clause
from ..scenario import Scenario
from ..subject import StoreSubject

_PROCESSES = 3
_ATTEMPTS = 4
_WIDEN = 0.002
_TEXT = "load_or_create(), save() and delete() by 2 clients"


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of traffic: on so many runs, so many calls of each process on each; is one process killed?"""

    title: str
    runs: int
    calls: int
    delete: float = 0.0
    kill: bool = False


_KINDS = (
    _Kind("clients load and save", runs=2, calls=36),
    _Kind("clients load, save and delete", runs=4, calls=14, delete=0.05),
    _Kind("clients load and save, and the process of two is killed", runs=2, calls=24, kill=True),
    _Kind("clients load, save and delete, and the process of two is killed", runs=4, calls=10, delete=0.05, kill=True),
)


@clause("W02", level=4, title="clients that save one run at the same time lose no update")
async def one_run(subject: StoreSubject) -> None:
    """Whatever clients do to one run at the same time, the history is linearizable, and no update is lost.

    First two clients of one store object load and save a run, in every order in which they can go on where the store
    awaits something. Then six clients in three processes load and save the same few runs, at random, now and then from
    an older load, and in half of the histories they delete runs as well. Each call is recorded with its start, its end,
    what it was based on and what it showed. The history must be one that a store could have which does one call after
    the other, each at some moment between its start and its end: a load shows the last save, a save follows the one
    that it was based on, and whoever comes too late is refused. Of two saves upon the same record one is refused; a
    store that keeps no revision may take both, if what both have completed is in every later load. A deleted run stays
    deleted. In half of the histories one process is killed by SIGKILL inside a call: that call may have had its effect,
    or not, and nothing else. At the end a process that has not opened the store before loads all runs.

    The assumptions are checked first: at least 30 % of the saves overlap another call on the same run, or else the
    check is VACUOUS. A fault is told by the two or three calls that conflict, and the history is kept in a file, which
    `n00dles-testing history` judges again.

    Seen in: google/adk-python #4751 and #3717 (two servers lose events of a session), langchain-ai/langgraph #8796 (a
    late worker forks the run).
    """
    await require_shared(subject)
    revisions = await keeps_revisions(subject)
    await in_every_order(subject, revisions=revisions)
    for kind in _KINDS:
        if kind.delete and not revisions:
            continue
        await _until_it_shows_something(subject, kind, revisions)
    if not revisions:
        subject.notes.append(
            "the store keeps no revision: in which order saves took effect was not judged, and no run was deleted, "
            "since such a store cannot tell a run from the next one of its id"
        )


async def _until_it_shows_something(subject: StoreSubject, kind: _Kind, revisions: bool) -> None:
    """Record and judge; again with longer pauses, if the clients have hardly met or the kill came too late."""
    why = ""
    for attempt in range(1, _ATTEMPTS + 1):
        before = len(subject.findings)
        async with subject.scenario(f"six {kind.title}") as s:
            history, is_killed = await _recorded(s, kind, revisions, attempt)
            judgement = expect_no_violation(s, history)
            why = "" if is_killed else "the process that was to be killed inside a call had made all of its calls"
            why = judgement.reason if judgement.verdict is Verdict.VACUOUS else why
            if judgement.verdict is Verdict.UNKNOWN:
                raise UnknownOutcomeError(f"a history of {len(history.calls)} calls: {judgement.reason}")
        if not why or len(subject.findings) > before:
            return
    raise VacuousCheck(f"{kind.title}, tried {_ATTEMPTS} times: {why}")


async def _recorded(s: Scenario, kind: _Kind, revisions: bool, attempt: int) -> tuple[History, bool]:
    """Return the history, and whether the process that was to be killed was; True if none was to be."""
    draw = Random(f"{s.subject.clause}-{s.subject.seed}-{kind.title}-{attempt}")
    runs = tuple(s.subject.fresh_run_id() for _ in range(kind.runs))
    traffic = Traffic(
        draw.randrange(2**31),
        runs,
        clients=2,
        calls=kind.calls,
        delete=kind.delete,
        widen=_WIDEN * attempt,
        timeout=s.subject.call_seconds,
        revisions=revisions,
    )
    recording = Recording(s, traffic)
    async with workers(s, _PROCESSES + 1) as (last, *others):
        at = moment(attempt)
        told = [recording.arguments(process, at=at) for process in range(_PROCESSES)]
        if not kind.kill:
            await all_at_once(others, make_recorded_traffic, _TEXT, told)
            return await recording.history(last), True
        victim, *survivors = others
        dies_at = draw.randrange(4, kind.runs * kind.calls // 2)
        text = f"{_TEXT}, to be killed inside call {dies_at}"
        killing = victim.perform_and_die(text, make_recorded_traffic, by=signal.SIGKILL, dies_at=dies_at, **told[0])
        (is_killed, _), _ = await asyncio.gather(
            killing, all_at_once(survivors, make_recorded_traffic, _TEXT, told[1:])
        )
        return await recording.history(last), is_killed
