"""A few calls of a store, traced at the level of system calls; one of them disturbed, if that is asked for.

`trace_steps` is the procedure, for a process that traces (`Scenario.elsewhere(tracing=True)`; see `tracer`). It sees
what C libraries do as well. A disturbance is a plain dict. What it counts are the calls on files of the location, in
the step that it is about, which may change something or sync, and those that open a file:

- `{"by": "count"}`: nothing is disturbed; it is counted what could be.
- `{"by": "kill", "number": n}`: SIGKILL before the n-th call.
- `{"by": "fail", "number": n, "fault": "ENOSPC", "lasting": False}`: the n-th call does nothing and fails.
- `{"by": "short", "number": n}`: of the n-th write only the first half is written.

With `kinds` only calls of these kinds count, see `kind_of`. What is `lasting` meets every later one of the step, too.
"""

from __future__ import annotations

import asyncio
import errno
import json
import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..tracing import Fail, Injection, Kill, Marks, Short, Trace, TracedCall, trace, why_not
from .child import still_alive
from .disturbed import told
from .expect import BrokenClause, VacuousCheck
from .player import Player, Step
from .processes import describe_exit
from .scenario import describe
from .subject import StoreSubject
from .tracer import GetTarget

__all__ = ["KINDS", "Steps", "kind_of", "token_of", "trace_steps", "tracing_here", "why_no_tracing"]

_SIGKILL = -9
_MOST_SECONDS = 600.0
"""Long enough for any machine under load: who hangs in one call is ended by whoever waits for a sign of life."""
_WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2", "sendfile", "splice", "copy_file_range")
_SYNCS = ("fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync")
_SIZES = ("truncate", "ftruncate", "fallocate")
_OPENS = ("open", "openat", "openat2", "creat")
_CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

KINDS = ("look", "open", "write", "size", "sync", "name")
"""A call opens a file only to read it, or to change it; it writes, changes a size, syncs, or changes a name."""


def kind_of(call: TracedCall) -> str:
    """Return the kind of a call, one of `KINDS`."""
    if call.name in _OPENS:
        return "open" if call.name == "creat" or call.flags & _CHANGING else "look"
    if call.name in _WRITES:
        return "write"
    if call.name in _SYNCS:
        return "sync"
    return "size" if call.name in _SIZES else "name"


def token_of(number: int) -> str:
    """Return what a step is called in marks: its number as a person counts, from 1."""
    return str(number + 1)


async def why_no_tracing(subject: StoreSubject) -> str | None:
    """Return why calls of this store cannot be traced here, in a sentence; None if they can."""

    async def find_out() -> str | None:
        if subject.served is not None:
            return f"its runs lie with a {subject.served.service.name} server, and not in files of its own"
        if not subject.target.takes_location:
            return "the factory takes no location, so nobody knows where the store keeps its files"
        async with subject.probe("can its calls be traced?") as s, s.elsewhere(tracing=True) as other:
            why: str | None = (await other.perform(tracing_here))["why_not"]
            return why
        return "the process that traces did not come up"

    return await subject.once("tracing", find_out)


def tracing_here(target: GetTarget, location: str) -> dict[str, Any]:
    """Say why nothing can be traced, if that is so."""
    return {"why_not": why_not()}


def trace_steps(
    target: GetTarget,
    location: str,
    *,
    before: Sequence[Step],
    call: Step,
    after: Sequence[Step],
    disturbance: dict[str, Any],
) -> dict[str, Any]:
    """Do `before`, then `call` with the disturbance, then `after`, in a fork, traced; return what came of each.

    `came` and `after` are as `disturbed.play` has them; `came` is `{"killed": True}`, and `after` empty, if it was
    killed. `met` says which calls were disturbed, as "pwrite64 of runs.db". `calls` are those that count in `call`,
    each with `name`, `kind` and `path` (below the location); with `kinds`, only those. `obstacles` are as in `Trace`.
    Of a store that leaves processes behind when it is closed, such as a server, no calls are told, and an obstacle says
    which: they are ended with it, so what is then found is not what the store alone would leave.

    Raises `BrokenClause` if a step of `before` raises, or the process ends otherwise; `VacuousCheck` if somebody else
    has killed it.
    """
    steps = Steps(target, location, [*before, call, *after])
    disturber = _Disturber(location, disturbance, steps, len(before))
    # A kill loses nothing that was written, so nothing has to wait for the disk.
    traced = trace(steps.run, location, on_call=disturber, syncs=False, time_limit=_MOST_SECONDS)
    if traced.timed_out:
        raise VacuousCheck(f"the process had not ended after {_MOST_SECONDS:g} s, and was killed")
    outcomes = steps.outcomes()
    is_killed = traced.status == _SIGKILL and _has_killed(traced)
    if not is_killed:
        steps.expect_all(outcomes, traced.status)
    for step, outcome in zip(before, outcomes, strict=False):
        if "raised" in outcome:
            raise BrokenClause(f"{step['do']} raised {outcome['raised']}")
    came = {"killed": True} if is_killed else outcomes[len(before)]
    return {
        "told": f"killed by SIGKILL before {disturber.met[0]}" if is_killed else told(came),
        "came": came,
        "after": [] if is_killed else outcomes[len(before) + 1 :],
        "met": disturber.met,
        "calls": [] if traced.left_behind and disturbance["by"] == "count" else disturber.calls,
        "obstacles": [*map(str, traced.obstacles), *(f"{name} outlives the store" for name in traced.left_behind)],
    }


def _has_killed(traced: Trace) -> bool:
    """Whether the process itself was killed at one of its calls, and not only one that it has started."""
    calls = (event for event in traced.events if isinstance(event, TracedCall))
    return any(call.injected == "SIGKILL" and call.process == traced.process for call in calls)


class Steps:
    """Steps to be done in a traced fork, with `Player`. Of each it is told what came of it, also if the fork is killed.

    `at` is the number of the step that is being done, from 0; None between two steps. `marks` get "INV 3" when the
    third one begins (see `token_of`), and "ACK 3" when it has returned without an error. A step that is `together` is
    begun at once with the one before it.
    """

    def __init__(self, target: GetTarget, location: str, steps: Sequence[Step], marks: Marks | None = None) -> None:
        self.steps = list(steps)
        self._target = target
        self._location = location
        self._marks = marks
        self._told = tempfile.TemporaryFile()  # noqa: SIM115 - shared with the fork, as is the memory
        self._shared = mmap.mmap(-1, 8)
        self._ended_by: str | None = None

    @property
    def at(self) -> int | None:
        """The step that is being done now."""
        number = int.from_bytes(self._shared[:8], "little")
        return number - 1 if number else None

    def run(self) -> None:
        """Do the steps; in the fork."""
        asyncio.run(self._play())

    async def _play(self) -> None:
        player = Player(self._target(), self._location)
        for numbers in _begun_at_once(self.steps):
            for number in numbers:
                self._mark(f"INV {token_of(number)}")
            self._shared[:8] = (numbers[0] + 1).to_bytes(8, "little")
            outcomes = await asyncio.gather(*(self._outcome(player, number) for number in numbers))
            self._shared[:8] = bytes(8)
            for outcome in outcomes:
                self._tell(outcome)
        with self._telling_its_end("close"):
            await player.close()

    async def _outcome(self, player: Player, number: int) -> dict[str, Any]:
        with self._telling_its_end(self.steps[number]["do"]):
            outcome = await player.outcome(self.steps[number])
        if "raised" not in outcome:
            self._mark(f"ACK {token_of(number)}")
        return outcome

    def _mark(self, text: str) -> None:
        if self._marks is not None:
            self._marks.put(text)

    def _tell(self, message: dict[str, Any]) -> None:
        os.write(self._told.fileno(), json.dumps(message).encode() + b"\n")

    @contextmanager
    def _telling_its_end(self, call: str) -> Iterator[None]:
        """Tell what ends the fork: nobody catches a `BaseException`, or an error of close."""
        try:
            yield
        except BaseException as error:
            no_exception = (
                "" if isinstance(error, Exception) else " (which is no Exception: `except Exception` lets it by)"
            )
            self._tell({"ended_by": f"{call} raised {describe(error)}{no_exception}"})
            raise

    def outcomes(self) -> list[dict[str, Any]]:
        """Return what came of each step that has ended; outside the fork, once."""
        with self._told as file:
            file.seek(0)
            messages = [json.loads(line) for line in file]
        self._ended_by = next((each["ended_by"] for each in messages if "ended_by" in each), None)
        return [each for each in messages if "ended_by" not in each]

    def expect_all(self, outcomes: Sequence[dict[str, Any]], status: int) -> None:
        """Raise `BrokenClause` if the fork has not ended well, by itself, with all steps done and the store closed.

        To be asked after `outcomes`. `VacuousCheck` if it was killed by SIGKILL: that may be a system that is short of
        memory.
        """
        is_through = len(outcomes) == len(self.steps)
        if status == 0 and is_through:
            return
        end = f"the process {describe_exit(status)} during {'close' if is_through else self.steps[len(outcomes)]['do']}"
        if status == _SIGKILL:
            raise VacuousCheck(f"{end}, and not by this check: something else has killed it, so nothing was shown")
        if self._ended_by is not None:
            raise BrokenClause(f"{self._ended_by}, and the process {describe_exit(status)}")
        raise BrokenClause(end)


def _below(root: str, path: str) -> str:
    """Return a path relative to the location. `relpath` takes as long as all else that is done at a call."""
    return path[len(root) + 1 :] if path.startswith(f"{root}/") else os.path.relpath(path, root)


def _begun_at_once(steps: Sequence[Step]) -> list[list[int]]:
    """Return the numbers of the steps, those that are begun at once in one list."""
    rows: list[list[int]] = []
    for number, step in enumerate(steps):
        if step.get("together") and rows:
            rows[-1].append(number)
        else:
            rows.append([number])
    return rows


class _Disturber:
    """Is asked at every call, and knows what could be disturbed, and what was."""

    def __init__(self, location: str, plan: dict[str, Any], steps: Steps, step: int) -> None:
        self.calls: list[dict[str, str]] = []
        self.met: list[str] = []
        self._root = os.path.realpath(location)
        self._plan = plan
        self._kinds = ("write",) if plan["by"] == "short" else plan.get("kinds", KINDS)
        self._steps = steps
        self._step = step
        self._last: int | None = None

    def __call__(self, call: TracedCall, _: int) -> Injection | None:
        # Once in a step: a call of the store that makes system calls for ever must run into its limit.
        if self._steps.at != self._last:
            self._last = self._steps.at
            still_alive()
        kind = kind_of(call)
        if self._steps.at != self._step or kind not in self._kinds:
            return None
        if self._plan["by"] == "short" and len(call.data) <= 1:
            return None  # there is no half of it
        path = "" if call.file is None else _below(self._root, call.file.path)
        self.calls.append({"name": call.name, "kind": kind, "path": path})
        if self._plan["by"] == "count" or not self._is_meant(len(self.calls)):
            return None
        self.met.append(f"{call.name} of {path}")
        match self._plan["by"]:
            case "kill":
                return Kill()
            case "fail":
                return Fail(getattr(errno, self._plan["fault"]))
            case _:
                return Short(max(1, len(call.data) // 2))

    def _is_meant(self, number: int) -> bool:
        wanted: int = self._plan["number"]
        return number == wanted or (bool(self._plan.get("lasting")) and number > wanted)
