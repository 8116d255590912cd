"""C04: a fault at any write, sync or open is raised as an error; the record before stays, and the store goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..deeds import (
    DEEDS,
    Deed,
    expect_no_error,
    expect_whole_and_going_on,
    load_step,
    nothing_tried,
    play_elsewhere,
    sizes_inside,
    undisturbed_deeds,
)
from ..disturbed import Step
from ..durability import require_durable
from ..moments import Calls, calls_of_deeds, faults
from ..records import Record
from ..registry import clause
from ..scenario import Scenario
from ..spread import MOST, Points
from ..subject import StoreSubject
from ..tally import Tally

TITLES = ("the creation of a run", "the load of a known run", "a later save", "a large save", "a delete")
_PARTS = {"the creation of a run": (0.5,), "a later save": (0.01, 0.5), "a large save": (0.01, 0.5, 0.99)}
"""After which part of what a call writes to a file no file may grow any more."""

_ACKNOWLEDGED = "the call was acknowledged, whatever failed on the way"
_RAISED = "the call raised, so nobody knows whether it is done: the old state or the new one, whole"
_GOES_ON = "the fault is over, and the store must not need a restart"
_OTHERS = "it was acknowledged before, and the fault met a call about another run"


@clause("C04", level=2, title="a fault at a write, sync or open is raised; the record stays, the store goes on")
async def faults_are_raised(subject: StoreSubject) -> None:
    """A full disk, a failing one, too many open files: an error, never a loss, and no end of the store.

    In another process a call of the store meets a fault: the n-th system call that it makes on a file of the location,
    an open, a write, a sync, a change of a size, a rename, a removal, does nothing and fails, or a write is short, for
    each n. By turns it is a full disk (ENOSPC), a failing one (EIO), or no free descriptor (EMFILE), once or from then
    on to the end of the call; `n00dles-testing faults` tries each of them. It does not matter who makes the system
    call, so a C library meets the fault where it would on such a disk. What Python tells of beside files (a statement
    of SQLite's, a call of a database's library), and all of it where nothing can be traced, raises what it would raise
    then. Besides, the kernel refuses for real: no file may grow beyond a size within what the call writes, so that a
    write is short and the next one fails (EFBIG); or no further file may be opened (EMFILE).

    If the store acknowledges the call nevertheless, the new state is there: not every fault matters. If it raises, the
    run is as before, or as after the call, whole. All other runs are as they were. Then the fault is over, and the same
    store object loads the run, saves it and loads it again, and all is there in another process.

    Errors of a network are for W06. Closing a file that was read, cleaning up, and a rollback are not made to fail.

    Seen in: langchain-ai/langgraph #5675 (one fault, and every later save fails too), openai/openai-agents-python #4690
    (an append fails, and the output is lost).
    """
    await require_durable(subject)
    done = _Done()
    known = await undisturbed_deeds(subject, TITLES, after_a_kill=False)
    calls = await calls_of_deeds(subject, known)
    turns: dict[str, Iterator[int]] | None = None if subject.most else {}
    moments = {title: faults(calls[title], turns) for title in known}
    points = Points(subject, {title: len(found) for title, found in moments.items()}, subject.most or MOST)
    for title, came in known.items():
        before, found = done.all, len(subject.findings)
        for number in points.of(title):
            moment = moments[title][number - 1]
            is_met = await _meets(subject, title, moment.where, moment.disturbance, traced=moment.traced)
            done.traced += is_met and moment.traced
            done.told += is_met and not moment.traced
        real = list(_real(came["sizes"], _PARTS.get(title, ())))
        for where, disturbance in real:
            done.real += await _meets(subject, title, where, disturbance)
        tried, found = done.all - before, len(subject.findings) - found
        subject.on_tally(Tally("C04", title, calls[title].count, len(moments[title]) + len(real), tried, found))
    if not done.all and not subject.findings:
        raise nothing_tried(subject, sum(map(len, moments.values())), "no call of the store met a fault")
    subject.notes.append(_said(done, calls))


@dataclass(slots=True)
class _Done:
    """How many calls met a fault: in a system call, in a call that Python tells of, and one of the kernel's own."""

    traced: int = 0
    told: int = 0
    real: int = 0

    @property
    def all(self) -> int:
        return self.traced + self.told + self.real


def _said(done: _Done, calls: dict[str, Calls]) -> str:
    said = []
    if any(each.traced for each in calls.values()):
        said.append(f"in {done.traced} of its system calls")
    if done.told or not said:
        said.append(f"in {done.told} of the calls that Python tells of")
    return f"the store met a fault put {' and '.join(said)}, and {done.real} of the kernel"


def _real(written: list[list[int]], parts: tuple[float, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    for size in sizes_inside(written, parts):
        yield f"no file growing beyond {size} bytes", {"by": "size", "size": size}
    yield "no further file to be opened", {"by": "files"}


async def _meets(
    subject: StoreSubject, title: str, where: str, disturbance: dict[str, Any], *, traced: bool = False
) -> bool:
    """Whether the call met the fault."""
    is_met = False
    async with subject.scenario(f"{title}, {where}") as s:
        deed = await DEEDS[title](s)
        after: list[Step] = [load_step(deed), {**_SAVE, "run": deed.run_id}, load_step(deed)]
        came = await play_elsewhere(s, deed, disturbance, where, after, traced=traced)
        # Of a limit it is only known that it was there; that it was met, an error shows.
        is_met = bool(came["met"]) and (disturbance["by"] in ("fail", "short") or "raised" in came["came"])
        await _judge(s, deed, came)
    return is_met


_SAVE: Step = {"do": "save", "outputs": {"yy": {"text": "after the fault"}}}


async def _judge(s: Scenario, deed: Deed, came: dict[str, Any]) -> None:
    raised = came["came"].get("raised")
    allowed, because = (deed.found[-1:], _ACKNOWLEDGED) if raised is None else (deed.found, _RAISED)
    if "record" in came["came"]:
        s.expect(Record.from_dict(came["came"]["record"])).equals(deed.found[-1], because=_ACKNOWLEDGED)
    loaded, saved, loaded_again = came["after"]
    told = f"(the call with the fault: {raised or 'acknowledged'})"
    expect_no_error(loaded, f"load_or_create after the fault {told}", because=_GOES_ON)
    found = Record.from_dict(loaded["record"])
    s.expect(found).is_one_of(allowed, because=because)
    expect_no_error(saved, f"save after the fault {told}", because=_GOES_ON)
    expect_no_error(loaded_again, f"load_or_create after the fault and a save {told}", because=_GOES_ON)
    now = found.after(_SAVE["outputs"])
    s.expect(Record.from_dict(loaded_again["record"])).equals(now, because=_GOES_ON)
    await expect_whole_and_going_on(
        s, deed, [now], because="it was acknowledged after the fault", others_because=_OTHERS
    )
