"""The process in which the checks run; started by `HelperProcess` with two descriptors as arguments.

The store under test lives here, apart from the runner, which only listens: whatever the store does to its process
(hang, exit, print, crash), the runner is left to tell it.

It says `started` when it is up. The first message to it says what to check; `ready` or `unusable` is the answer. Each
further one names a `clause` or a `capability`, or asks whether locations are `apart`. It is answered with `scenario`
and `step` messages while that goes on, with `result` at its end, and with `idle` when nothing of it is left.
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
from dataclasses import replace
from pathlib import Path
from typing import Any

from n00dles.errors import N00dlesError

from ..channel import Channel
from ..parent import adopt_orphans, die_with_parent
from ..verdicts import ClauseResult, Verdict
from .apart import same_data
from .claims import claims_of
from .expect import MisuseError, NotApplicableError, UnknownOutcomeError, VacuousCheck
from .nursery import Nursery
from .out_of_band import OutOfBandReader
from .probes import find_out
from .registry import Clause, implemented
from .scenario import describe, where
from .served import ServedLocations, Service
from .subject import DEFAULT_SECONDS, StoreSubject
from .target import StoreTarget

__all__ = ["main", "result_of"]

_SHOWN_FINDINGS = 5
_SHOWN_FRAMES = 4


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
        service = Service.of(start["target"], start["server"])
        self._served = None if service is None else ServedLocations(service, start["nonce"])
        if service is not None:
            self._target = replace(self._target, note=service.note)
        self._only_location = start["only_location"]
        if self._only_location is not None:
            if self._served is not None:
                self._only_location = self._served.fresh()
            self._target = replace(self._target, takes_location=False)
        self.claims = self._target.claims
        self.reader = self._find_reader()
        self._memory: dict[str, Any] = {}
        self._asked = 0

    @property
    def ready(self) -> dict[str, Any]:
        """The answer to the first message."""
        reader = None if self.reader is None else self.reader.name
        return {
            "ready": True,
            "note": self._target.note,
            "claims": self.claims.to_dict(),
            "reader": reader,
            "takes_location": self._target.takes_location,
        }

    async def try_to_open(self) -> None:
        """Open the store once: a target that is none is told at once, not by every clause.

        What is known then is told before the store is closed: how it closes, or whether, is for the checks to judge.
        """
        subject = self._subject("opening")
        instance = await self._target.open(subject.fresh_location())
        # A URL gives a store of ours around another's.
        store = getattr(instance.raw, "inner", instance.raw) if "://" in self._target.text else instance.raw
        self.claims = self.claims.over(claims_of(store, f"the store of {self._target.text}"))
        with contextlib.suppress(Exception, SystemExit, asyncio.CancelledError):
            self._channel.send(self.ready)
            await instance.close()

    async def answer(self, message: dict[str, Any]) -> None:
        """Do what a message asks for, and send the result before the event loop is closed: a store may hang that."""
        self._asked = message["number"]
        match message:
            case {"clause": id_, "plan": plan, "seconds": seconds, "most": most}:
                clause = next(clause for clause in implemented() if clause.id == id_)
                subject = self._subject(id_, plan, seconds, most)
                subject.on_tally = lambda tally: self._channel.send({"tally": tally.to_dict()})
                await self._check(clause, self._telling(subject))
            case {"capability": name}:
                outcome, proof = await find_out(name, self._telling(self._subject(name)))
                self._send_result({"outcome": outcome.value, "proof": proof})
            case {"apart": _}:
                found = await same_data(self._telling(self._subject("apart")), self._subject("opening"))
                self._send_result(found)

    def _send_result(self, result: Any, **more: Any) -> None:
        """Answer what was asked last, and nothing else."""
        self._channel.send({"result": result, "number": self._asked, **more})

    def _telling(self, subject: StoreSubject) -> StoreSubject:
        subject.on_own_work = lambda begins: self._channel.send({"own_work": begins})
        subject.on_call_elsewhere = lambda begins: self._channel.send({"call_elsewhere": begins})
        return subject

    async def _check(self, clause: Clause, subject: StoreSubject) -> None:
        reader = self.reader
        before = 0 if reader is None else reader.compared
        result = await result_of(clause, subject)
        if self._served is not None:
            self._served.clear()
        told = None if reader is None else {"compared": reader.compared - before, "fault": reader.fault}
        self._send_result(result.to_dict(), reader=told)

    def _find_reader(self) -> OutOfBandReader | None:
        limit = max(0.1, self._start["limit"] / 2)  # before the runner takes the store for one that hangs
        if self._start["reader"]:
            return OutOfBandReader.load(self._start["reader"], limit)
        if self._target.reader is None or self._start["reader"] == "":
            return None
        return OutOfBandReader(f"of {self._target.text}", self._target.reader, limit)

    def close(self) -> None:
        """End what the checks have started."""
        nursery: Nursery | None = self._memory.get("nursery")
        if nursery is not None:
            nursery.close()
        if self._served is not None:
            self._served.close()

    def _subject(
        self,
        clause: str,
        plan: dict[str, Any] | None = None,
        seconds: float = DEFAULT_SECONDS,
        most: int | None = None,
    ) -> StoreSubject:
        return StoreSubject(
            self._target,
            self._locations,
            clause=clause,
            seed=self._start["seed"],
            nonce=self._start["nonce"],
            listener=_Telling(self._channel),
            memory=self._memory,
            only_location=self._only_location,
            reader=self.reader,
            replay_options=self._start["replay_options"],
            plan=plan,
            seconds=seconds,
            most=most,
            served=self._served,
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
        tuple(subject.untried),
    )


async def _judged(clause: Clause, subject: StoreSubject) -> tuple[Verdict, str]:
    try:
        await clause.check(subject)
    except NotApplicableError as proof:
        return Verdict.NOT_APPLICABLE, str(proof)
    except MisuseError as missing:
        return Verdict.NOT_RUN, str(missing)
    except UnknownOutcomeError as unknown:
        return Verdict.UNKNOWN, str(unknown)
    except VacuousCheck as nothing:
        return Verdict.VACUOUS, str(nothing)
    except Exception as error:
        # A check that breaks has shown nothing, and must not look as if it had.
        frames = traceback.extract_tb(error.__traceback__)[-_SHOWN_FRAMES:]
        place = ", in ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
        return Verdict.VACUOUS, f"the check itself broke, please report it: {describe(error)} ({place})"
    return Verdict.PASS, ""


def main(reads: str, writes: str) -> None:
    """Serve until the other end hangs up; the arguments are the numbers of two inherited descriptors."""
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    adopt_orphans()
    die_with_parent(os.getppid())
    channel = Channel(int(reads), int(writes), only_here=True)
    implemented()  # imported before the clock of any call begins
    channel.send({"started": True})
    start = channel.receive()
    if start is None:
        return
    try:
        worker = _Worker(channel, start)
        if start["try_to_open"]:
            channel.send({"opening": True})
            asyncio.run(worker.try_to_open())
    except N00dlesError as error:
        channel.send({"unusable": str(error)})
    except (Exception, SystemExit) as error:
        place = "".join(f" ({text})" for _, text in where(error))
        channel.send({"unusable": f"opening the store raised {describe(error)}{place}"})
    else:
        if start["try_to_open"]:
            channel.send({"closed": True})
        else:
            channel.send(worker.ready)
        while (message := channel.receive()) is not None:
            asyncio.run(worker.answer(message))
            channel.send({"idle": True})
        worker.close()
    sys.stdout.flush()
    # A store may have left threads behind that would keep the process.
    os._exit(0)
