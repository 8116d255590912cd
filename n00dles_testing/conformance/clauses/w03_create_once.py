"""W03: many callers create one run at the same time: one of them does, and all see its inputs."""

from __future__ import annotations

import time
from itertools import pairwise

from ...histories import History
from ...histories.traffic import Traffic
from ..expect import VacuousCheck
from ..many_workers import all_at_once, keeps_revisions, require_shared, workers
from ..recorded import Recording, expect_no_violation
from ..recorded_traffic import create_at_once
from ..registry import clause
from ..scenario import Scenario
from ..subject import StoreSubject

_PROCESSES = 4
_CLIENTS = 2
_RUNS = 12
_LEAST = 8
"""Runs of which the creations of two processes have overlapped."""
_ATTEMPTS = 3
_LEAD, _BETWEEN = 0.05, 0.06
"""Seconds until the first race, and between two."""


@clause("W03", level=4, title="of many callers that create one run one does, and all see its inputs")
async def create_once(subject: StoreSubject) -> None:
    """Of callers of `load_or_create` with different inputs, on an unknown run, one creates it; all see its inputs.

    A message is delivered twice, two workers take the same job, a user clicks twice: the run is started by several at
    the same moment, each with its own idea of the inputs. Whoever is the first creates it. All others get the run as it
    was created, with the inputs of the first, all of them and no others, whatever they have passed. If two believe that
    theirs was stored, the run is computed twice, from different inputs, and one result lies under the id of the other.

    Eight callers in four processes race for twelve runs, one after the other, at a moment that is agreed upon, with a
    fraction of a millisecond of rest before each call to the system, as a loaded machine has it. The history is
    recorded, and judged as in W02; at the end a process that has not opened the store before loads all runs. That the
    creations of two processes have overlapped is proven for eight of the runs at least, or else the check is VACUOUS.

    Seen in: google/adk-python #4751 (two requests create one session), langchain-ai/langgraph #8796 (a second start of
    the same thread).
    """
    await require_shared(subject)
    revisions = await keeps_revisions(subject)
    raced = 0
    for attempt in range(1, _ATTEMPTS + 1):
        before = len(subject.findings)
        async with subject.scenario(f"{_PROCESSES * _CLIENTS} callers race for {_RUNS} runs") as s:
            history, mixed = await _recorded(s, revisions, attempt)
            expect_no_violation(s, history)
            s.expect(mixed[:1]).has_no(
                mixed[0] if mixed else None,
                allowed="the inputs of one of the callers, whole",
                because="nobody has asked for a run of these inputs",
            )
            raced = _raced(history)
        if raced >= _LEAST or len(subject.findings) > before:
            return
    raise VacuousCheck(
        f"creations of two processes have overlapped for {raced} of {_RUNS} runs, and {_LEAST} are needed. Run the "
        "check on a machine that does less"
    )


async def _recorded(s: Scenario, revisions: bool, attempt: int) -> tuple[History, list[str]]:
    runs = tuple(s.subject.fresh_run_id() for _ in range(_RUNS))
    recording = Recording(s, Traffic(s.subject.seed, runs, clients=_CLIENTS, revisions=revisions))
    async with workers(s, _PROCESSES + 1) as (last, *others):
        first, between = time.monotonic() + _LEAD * attempt, _BETWEEN * attempt
        times = [first + between * number for number in range(_RUNS)]
        told = [recording.arguments(process, times=times) for process in range(_PROCESSES)]
        text = f"load_or_create() of {_RUNS} runs by {_CLIENTS} clients with inputs of their own"
        came = await all_at_once(others, create_at_once, text, told)
        return await recording.history(last), [each for one in came for each in one["mixed"]]


def _raced(history: History) -> int:
    """Count the runs of which the first loads of two processes overlapped."""
    count = 0
    for calls in history.by_run().values():
        loads = [call for call in calls if call.operation == "load" and call.client != "last"]
        count += any(
            earlier.returned is not None
            and later.invoked < earlier.returned
            and earlier.client.partition("c")[0] != later.client.partition("c")[0]
            for earlier, later in pairwise(loads)
        )
    return count
