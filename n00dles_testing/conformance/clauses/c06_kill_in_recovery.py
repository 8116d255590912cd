"""C06: a kill while the store recovers from a kill is survived, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..buffered import source_of, without_runs
from ..deeds import DEEDS, Deed, expect_whole_and_going_on, load_step, nothing_tried, play_arguments, undisturbed_deeds
from ..disturbed import play
from ..durability import require_durable
from ..registry import clause
from ..scenario import Scenario
from ..spread import Points
from ..subject import StoreSubject

_TITLES = ("the first creation on a location", "a later save", "a delete")
_MOST_STATES = 80
"""How many states after a first kill are looked at."""
_MOST_RECOVERIES = 100
"""How many recoveries from them are killed."""

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

    Each kill proves itself, as in C03; a PASS says how many came to depth 2. States whose recovery makes the same calls
    are taken for alike: of these one is killed at every call, and each other one at one. Of many writes into a buffer,
    one after the other, a few are tried: they are alike on disk. (Of more than 80 states, or of more than 100
    recoveries, a sample is taken as in C03.)

    Seen in: NousResearch/hermes-agent #80921 (asks for it: a double resume after a SIGKILL).
    """
    await require_durable(subject)
    deaths = _Deaths()
    states = await _states(subject, deaths)
    numbers = {state: without_runs(calls, source_of(subject)) for state, (calls, _) in states.items()}
    counts = {state: len(numbers[state]) if is_first else 1 for state, (_, is_first) in states.items()}
    points = Points(subject, counts, _MOST_RECOVERIES)
    for place, ((title, number), (calls, is_first)) in enumerate(states.items()):
        for first in points.of((title, number)):
            at = numbers[title, number][first - 1] if is_first else 1 + (place + subject.seed) % len(calls)
            await _recovers(subject, title, number, (at, 1 + len(calls) - at), deaths)
    if not deaths.once and not subject.findings:
        counted = len(states) + deaths.missed
        raise nothing_tried(subject, counted, "no process was killed while the store was opened after a kill")
    subject.notes.append(
        f"killed in recovery {deaths.once} times, {deaths.twice} of them a second time (depth 2), from {len(states)} "
        "states after a kill"
    )
    if not deaths.twice:
        subject.notes.append("no recovery was killed twice: after the first kill in it the next one had less to do")


@dataclass(slots=True)
class _Deaths:
    """How many recoveries were killed `once` at least, and how many of these `twice`; how many first kills `missed`."""

    once: int = 0
    twice: int = 0
    missed: int = 0


async def _states(subject: StoreSubject, deaths: _Deaths) -> dict[tuple[str, int], tuple[list[str], bool]]:
    """Return, by the call and the number at which it was killed first, what calls the recovery from that makes.

    With it, whether it is the first state that is recovered from by these calls.
    """
    known = await undisturbed_deeds(subject, _TITLES, after_a_kill=True)
    source = source_of(subject)
    numbers = {title: without_runs(came["counted"]["kill"], source) for title, came in known.items()}
    points = Points(subject, {title: max(0, len(each) - 1) for title, each in numbers.items()}, _MOST_STATES)
    found: dict[tuple[str, int], tuple[list[str], bool]] = {}
    seen = set()
    for title in known:
        for point in points.of(title):
            number = numbers[title][point]  # the first call is left out: before it nothing has been done
            if calls := await _calls_to_recover(subject, title, number, deaths):
                found[title, number] = (calls, (title, *calls) not in seen)
                seen.add((title, *calls))
    return found


async def _calls_to_recover(subject: StoreSubject, title: str, number: int, deaths: _Deaths) -> list[str]:
    """Return what calls to the outside it takes to open what a kill has left; none if that is broken already."""
    async with subject.probe(f"{title}, killed before its call {number}") as s:
        deed, died = await _killed_once(s, title, number)
        if not died:
            deaths.missed += 1
            return []
        async with s.elsewhere() as other:
            came = await other.perform(play, **_opening(deed, {"by": "count"}))
        await expect_whole_and_going_on(s, deed, deed.found, because=_WHOLE, others_because=_OTHERS)
        return list(came["counted"]["kill"])
    return []


async def _recovers(subject: StoreSubject, title: str, number: int, kills: tuple[int, int], deaths: _Deaths) -> None:
    async with subject.scenario(
        f"{title}, killed before its call {number}; opened, and killed at call {kills[0]}"
    ) as s:
        deed, died = await _killed_once(s, title, number)
        if not died:
            deaths.missed += 1
            s.tell("it came through: this time it made fewer calls")
            await expect_whole_and_going_on(
                s, deed, deed.found[-1:], because="the call was acknowledged", others_because=_OTHERS
            )
            return
        killed = 0
        for again in kills:
            async with s.elsewhere() as victim:
                text = f"load_or_create({deed.run_id!r}), to be killed before call {again}"
                disturbance = {"by": "kill", "number": again}
                died, _ = await victim.perform_and_die(text, play, **_opening(deed, disturbance))
                killed += died
        deaths.once += killed > 0
        deaths.twice += killed > 1
        await expect_whole_and_going_on(s, deed, deed.found, because=_WHOLE, others_because=_OTHERS)


async def _killed_once(s: Scenario, title: str, number: int) -> tuple[Deed, bool]:
    """Return the deed, and whether it was killed."""
    deed = await DEEDS[title](s)
    async with s.elsewhere() as victim:
        text = f"{deed.call['do']}({deed.run_id!r}), to be killed before call {number}"
        disturbance = {"by": "kill", "number": number}
        died, _ = await victim.perform_and_die(text, play, **play_arguments(deed, disturbance))
    return deed, died


def _opening(deed: Deed, disturbance: dict[str, Any]) -> dict[str, Any]:
    return {"before": [], "call": load_step(deed), "after": [], "disturbance": disturbance}
