"""W01: many processes, each with runs of its own, in one location: every acknowledged save is there."""

from __future__ import annotations

from ...histories import Call, History
from ...histories.traffic import Traffic
from ..expect import VacuousCheck
from ..many_workers import all_at_once, keeps_revisions, moment, require_shared, workers
from ..recorded import Recording, expect_no_violation, share_of_time, told_by_calls
from ..recorded_traffic import one_run_each
from ..registry import clause
from ..scenario import Scenario
from ..subject import StoreSubject

_PROCESSES = 4
_RUNS = 3
"""Of each process, at once."""
_CALLS = 24
_LEAST_SHARE = 0.3
_ATTEMPTS = 3
_SHOWN = 3
_NANO = 1e9
_WHY = "a worker whose save is refused for another's run cannot go on, and nobody else does its work"


@clause(
    "W01", level=4, title="many processes with runs of their own lose nothing, and wait for no longer than a call may"
)
async def many_runs(subject: StoreSubject) -> None:
    """Workers that share a location and have runs of their own do not disturb each other.

    Four processes open one location, and each loads and saves three runs of its own at the same time, as a worker with
    some concurrency does. Nobody else touches these runs, so nothing may be refused: a call waits for its turn, and
    then it is done. That a database is locked, that a folder is being made, that there is no connection left, is no
    answer to a save. Every acknowledged save must be in the next load of its run, and in that of a process which opens
    the location when all have ended. How long a store lets a call wait is its own matter, within the limit for a call;
    the longest wait is told.

    Each call is recorded with its start, its end and what it showed, and the history judged as in W02. That calls of
    different processes have overlapped is proven, or else the check is VACUOUS. A store that two processes cannot share
    is told so by the probe `shared`, and the clause does not apply.

    Seen in: langchain-ai/langgraph #8136 and mem0ai/mem0 #7196 ("database is locked" for whoever shares the file).
    """
    await require_shared(subject)
    revisions = await keeps_revisions(subject)
    share = 0.0
    for attempt in range(1, _ATTEMPTS + 1):
        async with subject.scenario(f"{_PROCESSES} processes, each with {_RUNS} runs of its own") as s:
            history = await _recorded(s, revisions, attempt)
            _expect_all_done(s, history)
            expect_no_violation(s, history)
            share = share_of_time(history)
            subject.notes.append(f"{len(history.calls)} calls, the longest took {_longest(history):.2f} s")
        if share >= _LEAST_SHARE or subject.findings:
            return
        subject.notes.pop()
    raise VacuousCheck(
        f"calls of two processes were going on in {share:.0%} of the time, and {_LEAST_SHARE:.0%} are needed: the "
        "processes have hardly met. Run the check on a machine that does less"
    )


async def _recorded(s: Scenario, revisions: bool, attempt: int) -> History:
    runs = [[s.subject.fresh_run_id() for _ in range(_RUNS)] for _ in range(_PROCESSES)]
    traffic = Traffic(
        s.subject.seed + attempt,
        (),
        calls=_CALLS,
        load=0.3,
        save=0.7,
        delete=0,
        stale=0,
        widen=0.001 * attempt,
        timeout=s.subject.call_seconds,
        revisions=revisions,
    )
    recording = Recording(s, traffic)
    async with workers(s, _PROCESSES + 1) as (last, *others):
        at = moment(attempt)
        told = []
        for process, own in enumerate(runs):
            arguments = recording.arguments(process, at=at)
            told.append({**arguments, "traffic": {**arguments["traffic"], "runs": own}})
        await all_at_once(others, one_run_each, f"load_or_create() and save() of {_RUNS} runs of its own", told)
        return await recording.history(last, [run for own in runs for run in own])


def _expect_all_done(s: Scenario, history: History) -> None:
    """Raise `BrokenClause` for a call that was not done, though nobody else has its run."""
    refused = [call for call in history.calls if call.outcome != "ok"]
    if refused:
        first = refused[0]
        calls = [first, *_going_on_beside(history, first)[:_SHOWN]]
        message = f"{len(refused)} of {len(history.calls)} calls on runs of their own were not done: {_end(first)}"
        came = "; ".join(sorted({_end(call) for call in refused})[:_SHOWN])
        said = (("allowed", "every call is acknowledged, after a wait if need be"), ("came", came), ("why", _WHY))
        raise told_by_calls(s, history, calls, message, said)


def _end(call: Call) -> str:
    return f"{call.operation} raised {call.error}"


def _going_on_beside(history: History, call: Call) -> list[Call]:
    """Return the calls of other processes that began before this one and had not returned, or began right after."""
    process = call.client.partition("c")[0]
    others = [each for each in history.calls if each.client.partition("c")[0] != process and each.returned is not None]
    return [each for each in others if each.invoked <= call.invoked <= (each.returned or 0)]


def _longest(history: History) -> float:
    return max(((call.returned or call.invoked) - call.invoked for call in history.calls), default=0) / _NANO
