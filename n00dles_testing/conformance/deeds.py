"""What the clauses about kills and faults do to a store: one call, what is done before it, and what may be found after.

A deed is done in another process (`disturbed.play`). Beside the run that it is about there is another one, which has
nothing to do with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .disturbed import Step, play, told
from .expect import BrokenClause, MisuseError, VacuousCheck
from .records import Record, difference, show
from .scenario import Handle, Scenario
from .subject import StoreSubject
from .traced import trace_steps

__all__ = [
    "DEEDS",
    "Deed",
    "Prepare",
    "expect_done",
    "expect_no_error",
    "expect_whole_and_going_on",
    "load_step",
    "nothing_tried",
    "play_arguments",
    "play_elsewhere",
    "sizes_inside",
    "undisturbed",
    "undisturbed_deeds",
]

_ATTEMPTS = 2
"""How often a call is tried undisturbed before it is left out."""
_TOPIC = {"topic": "cats"}
CREATED = Record.new(_TOPIC)
"""What is found when a run is looked for that is not there: it is created."""


@dataclass(slots=True)
class Deed:
    """`call` on the run `run_id`, after `before`; `found` are the records that may be found when it is disturbed.

    The first of `found` is the old state, the last is the new one; one that is not there is created by looking for it.
    `others` are runs that must stay as they are.
    """

    title: str
    run_id: str
    before: list[Step]
    call: Step
    found: tuple[Record, ...]
    others: dict[str, Record] = field(default_factory=dict)


async def _first_creation(s: Scenario) -> Deed:
    """Here the store is opened within the call, and makes whatever it needs in a fresh location."""
    run_id = s.subject.fresh_run_id()
    return Deed("the first creation", run_id, [], _create(run_id), (CREATED,))


async def _creation(s: Scenario) -> Deed:
    before, others = _another(s)
    run_id = s.subject.fresh_run_id()
    return Deed("a creation", run_id, before, _create(run_id), (CREATED,), others)


async def _load(s: Scenario) -> Deed:
    """Here the store is opened within the call, by a process that has not made the run."""
    handle, other = await s.create(_TOPIC), await s.create({"topic": "dogs"})
    await s.save(other, {"barker": {"text": "dogs bark"}})
    await s.save(handle, {"first": {"text": "cats purr"}})
    await s.close()
    known = s.acknowledged[handle.run_id]
    others = {other.run_id: s.acknowledged[other.run_id]}
    return Deed("a load", handle.run_id, [], _create(handle.run_id), (known,), others)


async def _first_save(s: Scenario) -> Deed:
    before, others = _another(s)
    run_id = s.subject.fresh_run_id()
    outputs = s.subject.draw.plain_outputs("a", 2)
    return Deed(
        "a first save",
        run_id,
        [*before, _create(run_id)],
        _save(run_id, outputs),
        (CREATED, CREATED.after(outputs)),
        others,
    )


async def _later_save(s: Scenario) -> Deed:
    deed = await _first_save(s)
    outputs = s.subject.draw.plain_outputs("b", 2)
    old = deed.found[-1]
    return Deed(
        "a later save",
        deed.run_id,
        [*deed.before, deed.call],
        _save(deed.run_id, outputs),
        (old, old.after(outputs)),
        deed.others,
    )


async def _large_save(s: Scenario) -> Deed:
    """Larger than any buffer, so that it is written in more than one go."""
    deed = await _first_save(s)
    outputs: dict[str, Any] = {"large": {"text": "purr, " * 30_000 + "purr", "token": s.subject.draw.token()}}
    old = deed.found[-1]
    return Deed(
        "a large save",
        deed.run_id,
        [*deed.before, deed.call],
        _save(deed.run_id, outputs),
        (old, old.after(outputs)),
        deed.others,
    )


async def _delete(s: Scenario) -> Deed:
    deed = await _first_save(s)
    call = {"do": "delete", "run": deed.run_id}
    return Deed("a delete", deed.run_id, [*deed.before, deed.call], call, (deed.found[-1], CREATED), deed.others)


Prepare = Callable[[Scenario], Awaitable[Deed]]
"""Prepares the location of a scenario, and returns the deed."""

DEEDS: dict[str, Prepare] = {
    "the first creation on a location": _first_creation,
    "the creation of a run": _creation,
    "the load of a known run": _load,
    "a first save": _first_save,
    "a later save": _later_save,
    "a large save": _large_save,
    "a delete": _delete,
}
"""By what they are called in a story."""


def load_step(deed: Deed) -> Step:
    """Return the step that looks for the run of a deed."""
    return _create(deed.run_id)


def play_arguments(deed: Deed, disturbance: dict[str, Any], after: Sequence[Step] = ()) -> dict[str, Any]:
    """Return what `play` is called with."""
    return {"before": deed.before, "call": deed.call, "after": list(after), "disturbance": disturbance}


async def undisturbed(
    subject: StoreSubject, title: str, prepare: Prepare, *, after_a_kill: bool
) -> dict[str, Any] | None:
    """Do a deed without a disturbance and return what `play` says, or None if even then it comes out wrong, twice.

    With `after_a_kill`, also if what was acknowledged is lost by a kill before the call. Other clauses are about that;
    here it is left `untried`, and a PASS is one only if one of the others has found it (see `grade.settled`).
    """
    for _ in range(_ATTEMPTS):
        if not after_a_kill or await _survives_a_kill_before(subject, title, prepare):
            async with subject.probe(f"{title}, undisturbed") as s:
                deed = await prepare(s)
                async with s.elsewhere() as other:
                    came = await other.perform(play, **play_arguments(deed, {"by": "count"}))
                expect_done(deed, came["came"])
                await expect_whole_and_going_on(s, deed, deed.found[-1:], because="undisturbed", others_because="too")
                return came
    subject.untried.append(title)
    why = "it comes out wrong undisturbed, or after a kill before it (see C01, C02, and S01–S12)"
    subject.notes.append(f"not tried: {title}: {why}")
    return None


async def undisturbed_deeds(
    subject: StoreSubject, titles: Iterable[str], *, after_a_kill: bool
) -> dict[str, dict[str, Any]]:
    """Return what `undisturbed` says of each, without those that come out wrong."""
    found = {title: await undisturbed(subject, title, DEEDS[title], after_a_kill=after_a_kill) for title in titles}
    return {title: came for title, came in found.items() if came is not None}


def nothing_tried(subject: StoreSubject, counted: int, what: str, *, are_traced: bool = False) -> Exception:
    """Return why a check has shown nothing: nothing could be tried (NOT RUN), or it did not happen (VACUOUS).

    With `are_traced` the check traces system calls where it can; if that could be done, there is something to try.
    """
    if counted:
        return VacuousCheck(f"{what}, so nothing was shown")
    if subject.untried:
        return MisuseError(f"{what}, since the store's calls come out wrong without that")
    untold = "they would have to be traced from outside the process, which this check does not do"
    if are_traced:
        untold = "and system calls could not be traced here (see the notes)"
    return MisuseError(
        f"{what}: Python does not tell of the calls that the store makes to the outside. C code makes them, called by "
        f"C code; {untold}"
    )


def expect_done(deed: Deed, came: dict[str, Any]) -> None:
    """Raise `BrokenClause` if what came of an undisturbed call is not what it should be."""
    if "raised" in came:
        raise BrokenClause(f"raised {came['raised']}")
    if "record" in came and difference(deed.found[-1], Record.from_dict(came["record"])):
        raise BrokenClause("it gave another record")


async def _survives_a_kill_before(subject: StoreSubject, title: str, prepare: Prepare) -> bool:
    async with subject.probe(f"{title}, killed before the call") as s:
        deed = await prepare(s)
        async with s.elsewhere() as victim:
            await victim.perform_and_die("killed", play, **play_arguments(deed, {"by": "kill", "number": 0}))
        await expect_whole_and_going_on(s, deed, deed.found[:1], because="not called", others_because="not called")
        return True
    return False


def sizes_inside(written: list[list[int]], parts: Sequence[float]) -> list[int]:
    """Return sizes of a file at which its write is cut: parts of the way that the largest of the writes goes."""
    if not written:
        return []
    start, end = max(written, key=lambda one: one[1] - one[0])
    return sorted({start + max(1, int((end - start) * part)) for part in parts})


async def play_elsewhere(
    s: Scenario, deed: Deed, disturbance: dict[str, Any], where: str, after: Sequence[Step], *, traced: bool = False
) -> dict[str, Any]:
    """Have `play` done in another process, or `trace_steps`, and tell its story; return what it returns."""
    async with s.elsewhere(tracing=traced) as other:
        for step in deed.before:
            s.tell(f"in another process: {_shown(step)} → acknowledged")
        s.tell(f"there: {_shown(deed.call)}, {where}")
        does = trace_steps if traced else play
        came = await other.perform(does, "these calls", **play_arguments(deed, disturbance, after))
    for step, outcome in zip(after, came["after"], strict=True):
        s.tell(f"there: {_shown(step)} → {told(outcome)}")
    return came


def _shown(step: Step) -> str:
    outputs = f" with {show(step['outputs'])}" if "outputs" in step else ""
    return f"{step['do']}({step['run']!r}){outputs}"


def expect_no_error(outcome: dict[str, Any], what: str, *, because: str) -> None:
    """Raise `BrokenClause` if a step of `play` has raised."""
    if "not_called" in outcome:
        raise BrokenClause(f"{what} was {outcome['not_called']}", (("allowed", "no error"), ("why", because)))
    if "raised" in outcome:
        details = (("allowed", "no error"), ("came", outcome["raised"]), ("why", because))
        raise BrokenClause(f"{what} raised {outcome['raised']}", details)


async def expect_whole_and_going_on(
    s: Scenario, deed: Deed, found: Sequence[Record], *, because: str, others_because: str
) -> None:
    """Open the store here: the run is as one of `found`, all others are as they were, and saves go on, for good.

    The inputs passed are those of the run: what a store does with others is for S01.
    """
    for run_id, record in deed.others.items():
        s.acknowledged[run_id] = record
    for run_id in deed.others:
        await s.expect_acknowledged(run_id, because=others_because)
    handle = await s.look_for(deed.run_id, _TOPIC)
    s.expect(handle.record).is_one_of(found, because=because)
    await _goes_on(s, handle)


async def _goes_on(s: Scenario, handle: Handle) -> None:
    await s.save(handle, {"zz": {"text": "after the disturbance"}})
    await s.reopen()
    for run_id in s.acknowledged:
        await s.expect_acknowledged(run_id, because="the store was whole again, and its saves were acknowledged")


def _another(s: Scenario) -> tuple[list[Step], dict[str, Record]]:
    run_id = s.subject.fresh_run_id()
    inputs, outputs = {"topic": "dogs"}, {"barker": {"text": "dogs bark"}}
    steps: list[Step] = [{"do": "load_or_create", "run": run_id, "inputs": inputs}, _save(run_id, outputs)]
    return steps, {run_id: Record.new(inputs).after(outputs)}


def _create(run_id: str) -> Step:
    return {"do": "load_or_create", "run": run_id, "inputs": _TOPIC}


def _save(run_id: str, outputs: dict[str, Any]) -> Step:
    return {"do": "save", "run": run_id, "outputs": outputs}
