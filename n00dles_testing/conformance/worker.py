"""The process in which the checks run; started by `HelperProcess` with two descriptors as arguments.

The store under test lives here, apart from the runner, which only listens: whatever the store does to its process
(hang, exit, print, crash), the runner is left to tell it.

It says `started` when it is up. The first message to it says what to check; `ready` or `unusable` is the answer. Each
further one names a clause; it is answered with `scenario` and `step` messages while the check goes on, with `result` at
its end, and with `idle` when nothing of it is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from n00dles.errors import N00dlesError

from ..channel import Channel
from ..verdicts import ClauseResult, Verdict
from .expect import MisuseError, NotApplicableError, VacuousCheck
from .nursery import Nursery
from .registry import Clause, implemented
from .scenario import describe, where
from .subject import StoreSubject
from .target import StoreTarget

__all__ = ["main", "result_of"]

_SHOWN_FINDINGS = 5


class _Telling:
    """Hands on what a check tells, as messages."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def scenario(self, number: int, title: str) -> None:
        self._channel.send({"scenario": number, "title": title})

    def step(self, number: int, text: str) -> None:
        self._channel.send({"step": number, "text": text})


class _Worker:
    def __init__(self, channel: Channel, start: dict[str, Any]) -> None:
        self._channel = channel
        self._start = start
        self._locations = Path(start["locations"])
        self._target = StoreTarget.parse(start["target"])
        self._memory: dict[str, Any] = {}

    async def try_to_open(self) -> None:
        """Open the store once: a target that is none is told at once, not by every clause."""
        subject = self._subject("opening")
        instance = await self._target.open(subject.fresh_location())
        with contextlib.suppress(Exception):
            await instance.close()  # how it closes is for the checks to judge

    async def check(self, clause: Clause) -> None:
        """Run one check and send its result, before the event loop is closed: a store may make that hang."""
        result = await result_of(clause, self._subject(clause.id))
        self._channel.send({"result": result.to_dict()})

    def close(self) -> None:
        """End what the checks have started."""
        nursery: Nursery | None = self._memory.get("nursery")
        if nursery is not None:
            nursery.close()

    def _subject(self, clause: str) -> StoreSubject:
        return StoreSubject(
            self._target,
            self._locations,
            clause=clause,
            seed=self._start["seed"],
            nonce=self._start["nonce"],
            listener=_Telling(self._channel),
            memory=self._memory,
        )


async def result_of(clause: Clause, subject: StoreSubject) -> ClauseResult:
    """Run one check and return what became of it."""
    started = time.monotonic()
    verdict, reason = await _judged(clause, subject)
    if subject.findings:
        verdict, reason = Verdict.FAIL, subject.findings[0].message
    elif verdict is Verdict.PASS and not subject.scenarios:
        verdict, reason = Verdict.VACUOUS, "no scenario came as far as an expectation, so nothing was shown"
    return ClauseResult(
        clause.id,
        clause.title,
        verdict,
        "; ".join(filter(None, [reason, *subject.notes])),
        subject.scenarios,
        time.monotonic() - started,
        tuple(subject.findings[:_SHOWN_FINDINGS]),
    )


async def _judged(clause: Clause, subject: StoreSubject) -> tuple[Verdict, str]:
    try:
        await clause.check(subject)
    except NotApplicableError as proof:
        return Verdict.NOT_APPLICABLE, str(proof)
    except MisuseError as missing:
        return Verdict.NOT_RUN, str(missing)
    except VacuousCheck as nothing:
        return Verdict.VACUOUS, str(nothing)
    except Exception as error:
        # A check that breaks has shown nothing, and must not look as if it had.
        place = "; ".join(text for _, text in where(error))
        traceback.print_exc()
        return Verdict.VACUOUS, f"the check itself broke, please report it: {describe(error)} ({place})"
    return Verdict.PASS, ""


def main(reads: str, writes: str) -> None:
    """Serve until the other end hangs up; the arguments are the numbers of two inherited descriptors."""
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    channel = Channel(int(reads), int(writes))
    channel.send({"started": True})
    start = channel.receive()
    if start is None:
        return
    clauses = {clause.id: clause for clause in implemented()}
    try:
        worker = _Worker(channel, start)
        if start["try_to_open"]:
            asyncio.run(worker.try_to_open())
    except N00dlesError as error:
        channel.send({"unusable": str(error)})
    except (Exception, SystemExit) as error:
        place = "".join(f" ({text})" for _, text in where(error))
        channel.send({"unusable": f"opening the store raised {describe(error)}{place}"})
    else:
        channel.send({"ready": True, "note": worker._target.note})
        while (message := channel.receive()) is not None:
            asyncio.run(worker.check(clauses[message["clause"]]))
            channel.send({"idle": True})
        worker.close()
    sys.stdout.flush()
    # A store may have left threads behind that would keep the process.
    os._exit(0)
