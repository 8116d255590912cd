"""C06: a kill while the store recovers from a kill is survived, too."""

from __future__ import annotations

from typing import Any

from ..deeds import DEEDS, Deed, expect_whole_and_going_on, load_step, nothing_tried, play_arguments, undisturbed
from ..disturbed import play
from ..durability import require_durable
from ..registry import clause
from ..scenario import Scenario
from ..spread import spread
from ..subject import StoreSubject

_FIRST_KILLS = {"the first creation on a location": 2, "a later save": 3, "a delete": 2}
"""How many states to recover from, by the call that was killed."""
_MOST_RECOVERIES = {"the first creation on a location": 2, "a later save": 8, "a delete": 2}
"""At how many of its calls a recovery is killed: the one that has the most to do. All others at two."""

_WHOLE = "killed inside a call, and again while it was opened after that: the old state or the new one, whole"
_OTHERS = "it was acknowledged before the kills"


@clause("C06", level=2, title="a kill during the recovery from a kill is survived as well, to depth 2")
async def killed_in_recovery(subject: StoreSubject) -> None:
    """Opening a store after a crash is itself a moment to crash: machines that fail, fail again.

    A process is killed inside a creation, a save or a delete, as in C03. The next process opens what that left, loads
    the run, and is killed before one of the calls to the outside that it makes in doing so; the third one does the same
    and is killed at another one (depth 2). Then the store is opened here, and the run is as it was before the first
    call, or as after it, whole; all others are as they were; it is saved on. States that are broken already by the
    first kill are for C03, and not gone on with.

    Each kill proves itself, as in C03. Tried with those first kills whose recovery has the most to do.

    Seen in: NousResearch/hermes-agent #80921 (asks for it: a double resume after a SIGKILL).
    """
    await require_durable(subject)
    tried = states = 0
    for title, most in _FIRST_KILLS.items():
        came = await undisturbed(subject, title, DEEDS[title], after_a_kill=True)
        if came is None:
            continue
        found = [
            (calls_to_open, number)
            for number in [each + 1 for each in spread(len(came["counted"]["kill"]) - 1, most + 2)]
            if (calls_to_open := await _calls_to_recover(subject, title, number))
        ]
        # Of those with as much to do, the first kills first.
        found.sort(key=lambda one: -one[0])
        states += len(found[:most])
        for place, (calls, number) in enumerate(found[:most]):
            for first in spread(calls, 2 if place else _MOST_RECOVERIES[title]):
                tried += await _recovers(subject, title, number, first, 1 + calls - first)
    if not tried and not subject.findings:
        raise nothing_tried(subject, states, "no process was killed while the store was opened after a kill")
    subject.notes.append(f"killed two or three times in a row {tried} times, from {states} states after a kill")


async def _calls_to_recover(subject: StoreSubject, title: str, number: int) -> int:
    """Return how many calls to the outside it takes to open what a kill has left, 0 if that is broken already."""
    async with subject.probe(f"{title}, killed before its call {number}") as s:
        deed = await _killed_once(s, title, number)
        async with s.elsewhere() as other:
            came = await other.perform(play, **_opening(deed, {"by": "count"}))
        await expect_whole_and_going_on(s, deed, deed.found, because=_WHOLE, others_because=_OTHERS)
        return len(came["counted"]["kill"])
    return 0


async def _recovers(subject: StoreSubject, title: str, number: int, first: int, second: int) -> bool:
    """Whether the recovery was killed."""
    is_killed = False
    async with subject.scenario(f"{title}, killed before its call {number}; opened, and killed at call {first}") as s:
        deed = await _killed_once(s, title, number)
        for again in (first, second):
            async with s.elsewhere() as victim:
                text = f"load_or_create({deed.run_id!r}), to be killed before call {again}"
                disturbance = {"by": "kill", "number": again}
                died, _ = await victim.perform_and_die(text, play, **_opening(deed, disturbance))
                is_killed = is_killed or died
        await expect_whole_and_going_on(s, deed, deed.found, because=_WHOLE, others_because=_OTHERS)
    return is_killed


async def _killed_once(s: Scenario, title: str, number: int) -> Deed:
    deed = await DEEDS[title](s)
    async with s.elsewhere() as victim:
        text = f"{deed.call['do']}({deed.run_id!r}), to be killed before call {number}"
        await victim.perform_and_die(text, play, **play_arguments(deed, {"by": "kill", "number": number}))
    return deed


def _opening(deed: Deed, disturbance: dict[str, Any]) -> dict[str, Any]:
    return {"before": [], "call": load_step(deed), "after": [], "disturbance": disturbance}
