"""The moments at which a deed is disturbed: at each system call, where these can be traced, else where Python tells.

The kernel sees every call on a file, also those that a C library makes within one call from Python. Python tells of
what leads elsewhere: to a server, or into a library that keeps its data in shared memory. So the second is asked only
for what the first cannot see.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from ..faults import FAULTS
from .buffered import without_runs
from .deeds import DEEDS, Prepare, expect_done, play_arguments
from .subject import StoreSubject
from .traced import trace_steps, why_no_tracing

__all__ = ["Calls", "Moment", "calls_of", "calls_of_deeds", "faults", "kills"]

_CHANGING = ("open", "write", "size", "name")
_OPENING = ("look", "open")
_OF_A_DISK = ("write", "size", "sync", "name")
_OF_FILES = ("os.", "file.", "mmap.", "open")
_OF_SQLITE = "sqlite3"

_BY_TURNS = (("ENOSPC", False), ("EIO", False), ("ENOSPC", True), ("EIO", False), ("ENOSPC", False), ("EIO", True))
"""The faults that Python's calls meet, and whether they last."""

_WAYS: dict[str, tuple[tuple[str, bool], ...]] = {
    "look": (("EMFILE", True), ("EMFILE", False)),
    "open": (("EMFILE", True), ("EMFILE", False)),
    "write": (("ENOSPC", False), ("short", False), ("ENOSPC", True), ("EIO", False), ("EIO", True)),
    "size": (("ENOSPC", False), ("EIO", True), ("EIO", False)),
    "sync": (("EIO", False), ("ENOSPC", False), ("EIO", True)),
    "name": (("EIO", False), ("ENOSPC", True), ("ENOSPC", False), ("EIO", True)),
}
"""The faults that a system call of each kind meets, and whether they last, the likeliest first."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a deed: in words, and as `trace_steps` takes it, or `play` if it is not `traced`."""

    where: str
    disturbance: dict[str, Any]
    traced: bool


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one deed: the system calls on files of the location, and those to the outside that Python tells of.

    `traced` is None if nothing could be traced. `obstacles` say what was done to these files without a call.
    """

    traced: Sequence[dict[str, str]] | None
    told: dict[str, list[str]]
    obstacles: Sequence[str] = ()

    @property
    def count(self) -> int | None:
        """How many system calls were traced."""
        return None if self.traced is None else len(self.traced)

    @property
    def are_all_traced(self) -> bool:
        """Whether nothing that Python tells of could be missing among the system calls."""
        if not self.traced or any(map(_hides_something, self.obstacles)):
            return False
        return all(_is_of_files(name) or name.startswith(_OF_SQLITE) for name in self.told["kill"])


async def calls_of_deeds(subject: StoreSubject, known: dict[str, dict[str, Any]]) -> dict[str, Calls]:
    """Return the calls of each deed in `known`, which `undisturbed_deeds` has returned."""
    why = await why_no_tracing(subject)
    if why is not None:
        subject.notes.append(f"at the calls that Python tells of, and not at each system call: {why}")
    return {title: await calls_of(subject, title, DEEDS[title], came["counted"]) for title, came in known.items()}


async def calls_of(subject: StoreSubject, title: str, prepare: Prepare, told: dict[str, list[str]]) -> Calls:
    """Return the calls of one deed; `told` is what `play` has counted in it."""
    if await why_no_tracing(subject) is not None:
        return Calls(None, told)
    async with subject.probe(f"{title}, traced") as s:
        deed = await prepare(s)
        async with s.elsewhere(tracing=True) as tracer:
            came = await tracer.perform(trace_steps, **play_arguments(deed, {"by": "count"}))
        expect_done(deed, came["came"])
        return Calls(came["calls"], told, came["obstacles"])
    subject.notes.append(f"{title} comes out wrong when it is traced: there it is the calls that Python tells of")
    return Calls(None, told)


def kills(calls: Calls, source: random.Random | None = None) -> list[Moment]:
    """Return where a kill leaves another state than one before it; the state before the deed is not among them.

    A kill does nothing to what the kernel has in its cache, so two that no change lies between are alike. Of a run of
    writes into a buffer a few are among them, which `source` draws.
    """
    found = []
    traced = calls.traced or ()
    changing = [number for number, call in enumerate(traced, 1) if call["kind"] in _CHANGING]
    for number in [*changing[1:], *([len(traced)] if changing and changing[-1] < len(traced) else [])]:
        where = f"before system call {number}, {_shown(traced[number - 1])}"
        found.append(Moment(where, {"by": "kill", "number": number}, traced=True))
    told = [] if calls.are_all_traced else calls.told["kill"]
    for number in without_runs(told, source):
        if number == 1:
            continue
        where = f"before call {number}, {told[number - 1]}"
        found.append(Moment(where, {"by": "kill", "number": number}, traced=False))
    return found


def faults(calls: Calls, turns: dict[str, Iterator[int]] | None = None) -> list[Moment]:
    """Return each fault that a call can meet; with `turns`, which counts the calls of each kind, one for each call."""
    found = []
    for number, call in enumerate(calls.traced or (), 1):
        ways = _WAYS[call["kind"]]
        if turns is not None:
            turn = next(turns.setdefault(call["kind"], count()))
            ways = (ways[turn % len(ways)],)
        found += [_fault(calls.traced or (), number, fault, lasting) for fault, lasting in ways]
    told = calls.told["fail"]
    for number in without_runs(told):
        name = told[number - 1]
        if calls.are_all_traced and _is_of_files(name):
            continue
        fault, lasting = _BY_TURNS[(number - 1) % len(_BY_TURNS)]
        where = f"call {number}, {name},{_and_all_after_it(lasting)} failing: {FAULTS[fault]}"
        found.append(Moment(where, {"by": "fail", "number": number, "fault": fault, "lasting": lasting}, traced=False))
    return found


def _fault(traced: Sequence[dict[str, str]], number: int, fault: str, lasting: bool) -> Moment:
    call = traced[number - 1]
    if fault == "short":
        place = _place(traced, number, ("write",))
        where = f"system call {number}, {_shown(call)}, writing only the first half"
        return Moment(where, {"by": "short", "number": place}, traced=True)
    kinds = _OPENING if call["kind"] in _OPENING else _OF_A_DISK
    where = f"system call {number}, {_shown(call)},{_and_all_after_it(lasting)} failing: {FAULTS[fault]}"
    number = _place(traced, number, kinds)
    plan = {"by": "fail", "number": number, "fault": fault, "lasting": lasting, "kinds": kinds}
    return Moment(where, plan, traced=True)


def _place(traced: Sequence[dict[str, str]], number: int, kinds: Iterable[str]) -> int:
    """Return the number of a call among those of some kinds."""
    return sum(call["kind"] in kinds for call in traced[:number])


def _and_all_after_it(lasting: bool) -> str:
    return " and all after it" if lasting else ""


def _shown(call: dict[str, str]) -> str:
    return f"{call['name']} of {call['path']}"


def _hides_something(obstacle: str) -> bool:
    """SQLite makes its `-shm` anew from the log, so what is done to it matters to nobody who comes later."""
    return "-shm: " not in obstacle


def _is_of_files(name: str) -> bool:
    return name.startswith(_OF_FILES)
