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
    sizes_inside,
    undisturbed_deeds,
)
from ..disturbed import Step
from ..durability import require_durable
from ..expect import VacuousCheck
from ..moments import Calls, calls_of_deeds, faults
from ..records import Record
from ..registry import clause
from ..scenario import Scenario
from ..spread import MOST, Points
from ..subject import StoreSubject
from ..tally import Tally
from ..trace_fixes import GO_ON, IN_ONE_STEP, RAISE, fixed_by
from ..traced_again import agrees_with_a_fresh_process, done_when_made_again, played

TITLES = ("the creation of a run", "the load of a known run", "a later save", "a large save", "a delete")
_SAVES = ("a later save", "a large save")
"""After these memory and file are compared. A check does so after the first: the second takes as long, and is alike."""
_PARTS = {"the creation of a run": (0.5,), "a later save": (0.01, 0.5), "a large save": (0.01, 0.5, 0.99)}
"""After which part of what a call writes to a file no file may grow any more."""

_ACKNOWLEDGED = "the call was acknowledged, whatever failed on the way"
_RAISED = "the call raised, so nobody knows whether it is done: the old state or the new one, whole"
_GOES_ON = "the fault is over, and the store must not need a restart"
_GOES_ON_REOPENED = "the fault is over, and the store was closed and opened again"
_SYNCS = ("fsync", "fdatasync", "msync", "syncfs", "sync")
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
    store object loads the run, saves it and loads it again, and all is there in another process. After a sync that
    failed nobody knows what the disk holds (see P03), so a store may refuse everything then, until it is closed and
    opened again; its process goes on.

    A store may keep runs in memory, too. After a save that raised it is old or new for everybody: what the store object
    that met the fault loads, a fresh process loads as well (in a small save; `faults` tries large ones, too). A save or
    delete that raised is made again on the same object, from the same context; it may be refused, but if it is
    acknowledged, a fresh process finds it done.

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
    without: list[str] = []
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
        without += [title] if moments[title] and not (tried or found) else []
        subject.on_tally(Tally("C04", title, calls[title].count, len(moments[title]) + len(real), tried, found))
    if not done.all and not subject.findings:
        counted = sum(map(len, moments.values()))
        raise nothing_tried(subject, counted, "no call of the store met a fault", are_traced=True)
    subject.notes.append(_said(done, calls))
    if without:
        raise VacuousCheck(f"no fault was met in {', '.join(without)}, so nothing was shown of that")


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
        said.append(f"{done.traced} of its system calls")
    if done.told or not said:
        said.append(f"{done.told} of the calls that Python tells of")
    return f"{' and '.join(said)} were made to fail, and the kernel itself refused {done.real} more"


def _real(written: list[list[int]], parts: tuple[float, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    for size in sizes_inside(written, parts):
        yield f"no file growing beyond {size} bytes", {"by": "size", "size": size}
    yield "no further file to be opened", {"by": "files"}


async def _meets(
    subject: StoreSubject, title: str, where: str, disturbance: dict[str, Any], *, traced: bool = False
) -> bool:
    """Whether the call met the fault."""
    found = len(subject.findings)
    is_met, is_judged = await _tried(subject, title, where, disturbance, traced=traced)
    if not is_judged:
        is_met, _ = await _tried(subject, title, where, disturbance, traced=traced, is_reopened=True)
    # One fault of the store is told once: what was broken already is not looked at from another side.
    saves = _SAVES if subject.most else _SAVES[:1]
    if is_met and len(subject.findings) == found and title in saves:
        await agrees_with_a_fresh_process(subject, title, where, disturbance, traced=traced)
    if is_met and len(subject.findings) == found and title in (*saves, "a delete"):
        await done_when_made_again(subject, title, where, disturbance, traced=traced)
    return is_met


async def _tried(
    subject: StoreSubject,
    title: str,
    where: str,
    disturbance: dict[str, Any],
    *,
    traced: bool,
    is_reopened: bool = False,
) -> tuple[bool, bool]:
    """Whether the call met the fault, and whether it was judged.

    It is not where the store refuses to go on after a failed sync, if it `is_reopened` not.
    """
    is_met, is_judged = False, True
    async with subject.scenario(f"{title}, {where}{', and opened again' if is_reopened else ''}") as s:
        deed = await DEEDS[title](s)
        opened_again: list[Step] = [{"do": "close", "run": deed.run_id}] if is_reopened else []
        after = [*opened_again, load_step(deed), {**_SAVE, "run": deed.run_id}, load_step(deed)]
        came = await played(s, deed, disturbance, where, after, traced=traced)
        # Of a limit it is only known that it was there; that it was met, an error shows.
        is_met = bool(came["met"]) and (disturbance["by"] in ("fail", "short") or "raised" in came["came"])
        is_judged = is_reopened or not (_is_of_a_sync(where) and any("raised" in each for each in came["after"]))
        if is_judged:
            await _judge(s, deed, came, _GOES_ON_REOPENED if is_reopened else _GOES_ON)
    return is_met, is_judged


def _is_of_a_sync(where: str) -> bool:
    """Whether a fault is one of a sync: `system call 5, fsync of runs.db, failing: …`, or `call 2, os.fsync, …`."""
    _, _, call = where.partition(", ")
    return call.removeprefix("os.").startswith(tuple(f"{name}{end}" for name in _SYNCS for end in (" ", ",")))


_SAVE: Step = {"do": "save", "outputs": {"yy": {"text": "after the fault"}}}


async def _judge(s: Scenario, deed: Deed, came: dict[str, Any], goes_on: str) -> None:
    raised = came["came"].get("raised")
    loaded, saved, loaded_again = came["after"][-3:]
    told = f"(the call with the fault: {raised or 'acknowledged'})"
    if raised is None:
        allowed, because, unloaded, fix = deed.found[-1:], _ACKNOWLEDGED, _ACKNOWLEDGED, RAISE
    else:
        allowed, because, unloaded, fix = deed.found, _RAISED, goes_on, IN_ONE_STEP
    with fixed_by(fix):
        if "record" in came["came"]:
            s.expect(Record.from_dict(came["came"]["record"])).equals(deed.found[-1], because=_ACKNOWLEDGED)
        expect_no_error(loaded, f"load_or_create after the fault {told}", because=unloaded)
        found = Record.from_dict(loaded["record"])
        s.expect(found).is_one_of(allowed, because=because)
    now = found.after(_SAVE["outputs"])
    with fixed_by(GO_ON):
        expect_no_error(saved, f"save after the fault {told}", because=goes_on)
        expect_no_error(loaded_again, f"load_or_create after the fault and a save {told}", because=goes_on)
        s.expect(Record.from_dict(loaded_again["record"])).equals(now, because=goes_on)
        await expect_whole_and_going_on(
            s, deed, [now], because="it was acknowledged after the fault", others_because=_OTHERS
        )
