"""A few calls of a store in a process of its own, one of them disturbed: killed inside, or met by a fault.

`play` is the procedure (see `Elsewhere.perform`). A disturbance is a plain dict, as the steps are (see `player`):

- `{"by": "count"}`: nothing is disturbed; it is counted what could be.
- `{"by": "kill", "number": n}`: SIGKILL before the n-th call to the outside; 0: before the store is called at all.
- `{"by": "torn", "size": n}`: the kernel kills at the first write beyond n bytes of a file, a part of it done.
- `{"by": "fail", "number": n, "fault": "ENOSPC", "lasting": False}`: the n-th call that can fail does, at once.
- `{"by": "lose", "number": n, "fault": "EIO"}`: the n-th call that can lose its reply does its work, and raises.
- `{"by": "size", "size": n}`, `{"by": "files"}`: no file may grow beyond n bytes, no further one be opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ..faults import (
    IOCall,
    Kind,
    Seam,
    When,
    can_fail,
    can_lose_its_reply,
    dying_at_size,
    error_of,
    faults_of,
    in_transaction,
    limited_files,
    limited_size,
    undo,
)
from .child import die, still_alive
from .player import Player, Step
from .records import Record
from .target import StoreTarget

__all__ = ["Step", "play", "told"]


async def play(
    target: StoreTarget,
    location: str | None,
    *,
    before: Sequence[Step],
    call: Step,
    after: Sequence[Step],
    disturbance: dict[str, Any],
) -> dict[str, Any]:
    """Do `before`, then `call` with the disturbance, then `after`; return what came of each.

    `came` is the outcome of `call`, and `after` those of the steps behind it: `{"record": …}`, `{"raised": …}` (also
    `not_called`, the reason, if a save had no load before it), or nothing for an acknowledgement. `met` names the calls
    that were disturbed; `counted` is what could be, and `sizes` are sizes of files between which `call` has written.
    `told` is for the story.
    """
    player, disturber = Player(target, location), _Disturber(disturbance)
    for step in before:
        await player.do(step)
        still_alive()
    sizes = _sizes(location)
    with disturber.at_work():
        came = await player.outcome(call)
    still_alive()
    written = _between(sizes, _sizes(location))
    outcomes = []
    for step in after:
        outcomes.append(await player.outcome(step))
        still_alive()
    await player.close()
    return {
        "told": told(came),
        "came": came,
        "after": outcomes,
        "met": disturber.met,
        "counted": disturber.counted,
        "sizes": written,
    }


def told(outcome: dict[str, Any]) -> str:
    """Say what came of a step."""
    if "not_called" in outcome:
        return str(outcome["not_called"])
    if "raised" in outcome:
        return f"raised {outcome['raised']}"
    return str(Record.from_dict(outcome["record"])) if "record" in outcome else "acknowledged"


class _Disturber:
    """Makes the disturbance happen, and knows whether it has."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.met: list[str] = []
        self.counted: dict[str, list[str]] = {"kill": [], "fail": [], "lose": []}
        self._plan = plan
        self._was_in_transaction: dict[int, bool] = {}
        # Installed before the store is opened, so that it hears the threads that the store starts.
        self._seam = Seam(self._heard, lasting=bool(plan.get("lasting")))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        if self._plan["by"] == "kill" and self._plan["number"] == 0:
            die({"at": "before the call"})
        with self._limit(), self._seam.listening():
            yield

    @contextmanager
    def _limit(self) -> Iterator[None]:
        match self._plan["by"]:
            case "torn":
                limit = dying_at_size(self._plan["size"])
            case "size":
                limit = limited_size(self._plan["size"])
            case "files":
                limit = limited_files(0)
            case _:
                yield
                return
        with limit as is_limited:
            if is_limited:
                self.met.append(self._plan["by"])
            yield

    def _heard(self, number: int, call: IOCall, when: When) -> None:
        if when == "before":
            self._count("kill", call)
            self._was_in_transaction[number] = in_transaction(call)
            if can_fail(call):
                self._count("fail", call)
        elif can_lose_its_reply(call, self._was_in_transaction[number]):
            self._count("lose", call)

    def _count(self, what: str, call: IOCall) -> None:
        """Count a moment at which `what` can be done to a call; do it, if it is the one."""
        self.counted[what].append(call.name)
        if self._plan["by"] != what:
            return
        number = len(self.counted[what])
        # SQLite's own errors roll back, so nothing more is done to it that would keep the store from that.
        is_later = bool(self._plan.get("lasting")) and call.kind is not Kind.DATABASE and number > self._plan["number"]
        if number != self._plan["number"] and not is_later:
            return
        if what == "kill":
            die({"at": f"before {call.name}", "number": f"(call {number})"})
        self.met.append(call.name)
        if what == "fail":
            undo(call)
        faults = faults_of(call.kind)
        raise error_of(call, self._plan["fault"] if self._plan["fault"] in faults else faults[0])


def _sizes(location: str | None) -> dict[str, tuple[int, int]]:
    """Return size and inode of each file."""
    found = {}
    for folder, _, files in os.walk(location) if location is not None else ():
        for name in files:
            path = os.path.join(folder, name)
            with suppress(FileNotFoundError):  # the store may remove its files at any time, in a thread of its own
                status = os.stat(path)
                found[path] = (status.st_size, status.st_ino)
    return found


def _between(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> list[tuple[int, int]]:
    """Return, for each file that has grown or is new, from which size to which it was written."""
    written = []
    for path, (size, inode) in after.items():
        start = before[path][0] if path in before and before[path][1] == inode else 0
        if start < size:
            written.append((start, size))
    return written
