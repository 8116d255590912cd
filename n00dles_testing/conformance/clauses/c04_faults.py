"""C04: a fault at any write, sync or open is raised as an error; the record before stays, and the store goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...faults import FAULTS
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
from ..records import Record
from ..registry import clause
from ..scenario import Scenario
from ..spread import Points
from ..subject import StoreSubject

_TITLES = ("the creation of a run", "the load of a known run", "a later save", "a large save", "a delete")
_PARTS = {"the creation of a run": (0.5,), "a later save": (0.01, 0.5), "a large save": (0.01, 0.5, 0.99)}
"""After which part of what a call writes to a file no file may grow any more."""
_WAYS = (("ENOSPC", False), ("EIO", False), ("ENOSPC", True), ("EIO", False), ("ENOSPC", False), ("EIO", True))
"""By turns: the fault, and whether it lasts."""

_ACKNOWLEDGED = "the call was acknowledged, whatever failed on the way"
_RAISED = "the call raised, so nobody knows whether it is done: the old state or the new one, whole"
_GOES_ON = "the fault is over, and the store must not need a restart"
_OTHERS = "it was acknowledged before, and the fault met a call about another run"


@clause("C04", level=2, title="a fault at a write, sync or open is raised; the record stays, the store goes on")
async def faults_are_raised(subject: StoreSubject) -> None:
    """A full disk, a failing one, too many open files: an error, never a loss, and no end of the store.

    In another process a call of the store meets a fault: the n-th call to the outside that it makes, an open, a write,
    a sync, a rename, a statement or a commit, raises what it would raise then (ENOSPC, EIO, EMFILE; from SQLite its own
    errors), for each n, some of them only once and some from then on to the end of the call. Besides, the kernel
    refuses for real: no file may grow beyond a size within what the call writes, so that a write is short and the next
    one fails (EFBIG), also those of C libraries; or no further file may be opened (EMFILE).

    If the store acknowledges the call nevertheless, the new state is there: not every fault matters. If it raises, the
    run is as before, or as after the call, whole. All other runs are as they were. Then the fault is over, and the same
    store object loads the run, saves it and loads it again, and all is there in another process.

    Errors of a network are for W06. Closing a file that was read, cleaning up, and a rollback are not made to fail.

    Seen in: langchain-ai/langgraph #5675 (one fault, and every later save fails too), openai/openai-agents-python #4690
    (an append fails, and the output is lost).
    """
    await require_durable(subject)
    injected = real = 0
    known = await undisturbed_deeds(subject, _TITLES, after_a_kill=False)
    counts = {title: len(came["counted"]["fail"]) for title, came in known.items()}
    points = Points(subject, counts)
    for title, came in known.items():
        for where, disturbance in _injected(came["counted"]["fail"], points.of(title)):
            injected += await _meets(subject, title, where, disturbance)
        for where, disturbance in _real(came["sizes"], _PARTS.get(title, ())):
            real += await _meets(subject, title, where, disturbance)
    if not injected + real and not subject.findings:
        raise nothing_tried(subject, sum(counts.values()), "no call of the store met a fault")
    subject.notes.append(f"{injected} calls of the store met a fault put in their way, and {real} one of the kernel")


def _injected(names: list[str], numbers: Iterable[int]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number in numbers:
        fault, lasting = _WAYS[(number - 1) % len(_WAYS)]
        how = " and all after it" if lasting else ""
        where = f"call {number}, {names[number - 1]},{how} failing: {FAULTS[fault]}"
        yield where, {"by": "fail", "number": number, "fault": fault, "lasting": lasting}


def _real(written: list[list[int]], parts: tuple[float, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    for size in sizes_inside(written, parts):
        yield f"no file growing beyond {size} bytes", {"by": "size", "size": size}
    yield "no further file to be opened", {"by": "files"}


async def _meets(subject: StoreSubject, title: str, where: str, disturbance: dict[str, Any]) -> bool:
    """Whether the call met the fault."""
    is_met = False
    async with subject.scenario(f"{title}, {where}") as s:
        deed = await DEEDS[title](s)
        after: list[Step] = [load_step(deed), {**_SAVE, "run": deed.run_id}, load_step(deed)]
        came = await play_elsewhere(s, deed, disturbance, where, after)
        # Of a limit it is only known that it was there; that it was met, an error shows.
        is_met = bool(came["met"]) and (disturbance["by"] == "fail" or "raised" in came["came"])
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
