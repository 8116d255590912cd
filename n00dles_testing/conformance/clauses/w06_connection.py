"""W06: the connection to the server is cut, delayed, half-open, or loses a reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from ...faults import Fault, TCPProxy, VacuousFaultError
from ..connection_faults import FAULTS, ConnectionFault, Moment
from ..disturbed_server import (
    ThroughProxy,
    expect_proxy,
    expect_typed,
    expect_within,
    require_server,
    through_a_proxy,
)
from ..elsewhere import Elsewhere
from ..expect import BrokenClause, VacuousCheck
from ..records import Record
from ..registry import clause
from ..scenario import Scenario
from ..subject import StoreSubject

_AT_ONCE = 8
_SECONDS_TO_FIRE = 5.0
_LOOKED_AT = 0.01
_MORE_CALLS = 3
_THREADS = 4 * _AT_ONCE


@clause("W06", level=4, title="a bad connection gives a typed error or another try, in time, and never a wrong reply")
async def bad_connection(subject: StoreSubject) -> None:
    """Whatever happens to the connection, a call is done, or raises an error that says so; in time, and never wrongly.

    A proxy stands between a process and its server. During a save, and during a load between two saves, the connection
    is cut within the request or the reply, the request or the reply is lost, data is late or comes in crumbs, nothing
    passes for a while or for good, new connections are refused or get no answer; and a connection that waits is cut
    while nothing is called. The call may be made again by the store, or raise an error of the store's, its client's or
    the system's, within the limit for a call: a store without a time limit waits for a half-open connection for ever.
    Then the same store object must work again: of two runs, each must show its own record. A client that has not read
    a reply gives it to the next call, which is the worst of all: the run is then that of somebody else. A save that was
    acknowledged is there, for another process, too; one that raised is there or not, whole.

    Each fault must have happened, or else the check is VACUOUS; one that waits for a connection between two calls
    cannot, if the store keeps none. A store that talks to no server has no connection to lose.

    Seen in: langchain-ai/langgraph #5675 and #3716 (an idle connection is dropped, and the next save fails).
    """
    served = await require_server(subject)
    expect_proxy(served, "W06")
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS))
    turns = asyncio.Semaphore(_AT_ONCE)
    cases = [(fault, moment) for fault in FAULTS for moment in fault.moments]
    tries = [_in_turn(turns, _Try(subject, fault, moment)) for fault, moment in cases]
    ends = await asyncio.gather(*tries, return_exceptions=True)
    for end in ends:
        if isinstance(end, BaseException):
            raise end
    if not subject.findings:
        _expect_all_happened(subject, [each for each in ends if isinstance(each, _Try)])


async def _in_turn(turns: asyncio.Semaphore, one: _Try) -> _Try:
    async with turns:
        await one.run()
    return one


def _expect_all_happened(subject: StoreSubject, tries: Sequence[_Try]) -> None:
    missed = [each for each in tries if not each.has_happened]
    cannot = [each for each in missed if each.moment == "nothing" and not each.links]
    if cannot:
        subject.notes.append("between two calls there is no connection that could be lost")
    for each in missed:
        if each.moment == "a load between two saves":
            subject.notes.append(f"{each.fault.title}: did not happen during a load, which asks no server then")
        elif each not in cannot:
            raise VacuousCheck(f"{each.fault.title}: it did not happen, during {each.moment}")


@dataclass
class _Try:
    """One fault at one moment, on a location and through a proxy of its own."""

    subject: StoreSubject
    fault: ConnectionFault
    moment: Moment
    has_happened: bool = False
    links: int = 0

    async def run(self) -> None:
        title = f"{self.fault.title}, during {self.moment}"
        async with self.subject.scenario(title) as s, s.elsewhere() as reader, through_a_proxy(s) as used:
            await self._tried(s, used, reader)

    async def _tried(self, s: Scenario, used: ThroughProxy, reader: Elsewhere) -> None:
        run, other = s.subject.fresh_run_id(), s.subject.fresh_run_id()
        for run_id in (run, other):
            await used.must(_load(run_id))
            await used.must(_save(run_id, "researcher"))
        least = Record.new({"run": run}).after({"researcher": _output(run, "researcher")})
        the_other = Record.new({"run": other}).after({"researcher": _output(other, "researcher")})

        came, step = await self._disturbed(used, run)

        expect_typed(came, f"{step['do']} while {self.fault.title}")
        maybe: dict[str, Any] = {}
        if step["do"] == "save":
            maybe = {"writer": _output(run, "writer")} if "raised" in came else {}
            least = least if "raised" in came else least.after({"writer": _output(run, "writer")})
        elif "record" in came:
            _expect_the_own_reply(run, Record.from_dict(came["record"]))
            s.expect(Record.from_dict(came["record"])).equals(least, because="this is the run that was asked for")
        for run_id, wanted in ((other, the_other), (run, least)):
            found = await used.loads_again(_load(run_id))
            _expect_the_own_reply(run_id, found)
            because = f"the reply to a load of {run_id!r} is that run, whatever became of the calls before"
            expect_within(s, found, wanted, maybe if run_id == run else {}, because)
        least = await self._goes_on(s, used, run, least, maybe)
        await reader.close()
        for run_id, wanted in ((run, least), (other, the_other)):
            found = await reader.look_for(run_id, {"run": run_id})
            expect_within(s, found, wanted, maybe if run_id == run else {}, "another process asks the server itself")

    async def _disturbed(self, used: ThroughProxy, run: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Make the call while the fault lasts, or after it, if it is about connections that wait."""
        step = _load(run) if self.moment == "a load between two saves" else _save(run, "writer")
        fault = self.fault.make()
        self.links = used.proxy.open_links
        with _disturbed(used.proxy, fault, cut=self.fault.cut) as over:
            if self.moment == "nothing":
                with suppress(TimeoutError):
                    await asyncio.to_thread(fault.wait, 1, _SECONDS_TO_FIRE if self.links else 0.1)
                used.s.tell(f"{self.fault.title}: {self.links} of them")
            else:
                used.s.tell(f"from now on {self.fault.title}")
                ending = asyncio.create_task(_end_in_time(fault, self.fault.lasts, over))
                try:
                    return await self._called(used, step, fault, over), step
                finally:
                    ending.cancel()
        return await self._called(used, step, fault, over), step

    async def _called(
        self, used: ThroughProxy, step: dict[str, Any], fault: Fault, over: Callable[[], None]
    ) -> dict[str, Any]:
        came = await used.call(step)
        for _ in range(_MORE_CALLS):
            if fault.fired or "raised" not in came or not self.fault.cut:
                break
            expect_typed(came, f"{step['do']} over a connection that was cut")
            came = await used.call(step)  # the first one has only seen that its connection is gone
        over()
        self.has_happened = fault.fired > 0
        return came

    async def _goes_on(self, s: Scenario, used: ThroughProxy, run: str, least: Record, maybe: dict[str, Any]) -> Record:
        """Save one node more, with the context as it was loaded last; return what is then acknowledged."""
        found = await used.loads_again(_load(run))
        await used.must(_save(run, "editor"))
        there = {node: maybe[node] for node in maybe if node in found.completed}
        for node in there:
            maybe.pop(node)
        return least.after(there).after({"editor": _output(run, "editor")})


def _expect_the_own_reply(run_id: str, found: Record) -> None:
    """Raise `BrokenClause` if a load shows another run."""
    shown = found.inputs.get("run")
    if shown != run_id:
        raise BrokenClause(
            f"a load got the reply of another call: asked for run {run_id!r}, it shows run {shown!r}",
            (
                ("allowed", f"run {run_id!r}, or an error"),
                ("came", str(found)),
                ("why", "a reply that was not read belongs to nobody: its connection has to go with it"),
            ),
        )


async def _end_in_time(fault: Fault, seconds: float | None, over: Callable[[], None]) -> None:
    """End a fault so many seconds after it has begun to act; None: never."""
    if seconds is not None:
        while not fault.fired:  # noqa: ASYNC110 - it happens in the proxy's thread
            await asyncio.sleep(_LOOKED_AT)
        await asyncio.sleep(seconds)
        over()


@contextmanager
def _disturbed(proxy: TCPProxy, fault: Fault, *, cut: bool) -> Iterator[Callable[[], None]]:
    """Have the fault act until `over` is called, or to the end of the block."""
    lasting = proxy.disturbed(fault, must_fire=False)
    lasting.__enter__()
    is_over = False

    def over() -> None:
        nonlocal is_over
        if not is_over:
            is_over = True
            lasting.__exit__(None, None, None)

    try:
        if cut:
            with suppress(VacuousFaultError):  # the store keeps none, so each call makes a new one
                proxy.cut()
        yield over
    finally:
        over()


def _load(run_id: str) -> dict[str, Any]:
    return {"do": "load_or_create", "run": run_id, "inputs": {"run": run_id}}


def _save(run_id: str, node: str) -> dict[str, Any]:
    return {"do": "save", "run": run_id, "outputs": {node: _output(run_id, node)}}


def _output(run_id: str, node: str) -> str:
    return f"{node} of {run_id}"
