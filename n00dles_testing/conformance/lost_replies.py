"""C05 of a store with a server: a request, or a reply, is lost on the way; the call that has raised is made again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..faults import Fault, LoseReply, LoseRequest
from .deeds import DEEDS, expect_no_error, expect_whole_and_going_on, load_step
from .disturbed_server import ThroughProxy, expect_proxy, through_a_proxy
from .player import Step
from .records import Record
from .scenario import Scenario
from .served import ServedLocations
from .subject import StoreSubject

__all__ = ["made_again_over_a_proxy"]

_MOST = 4
"""Of the requests that one call makes."""
_KINDS: dict[str, type[LoseRequest | LoseReply]] = {"request": LoseRequest, "reply": LoseReply}
_AGAIN = "whether the call raised and was made again, or the store did that: it is done, and done once"
_GOES_ON = {"yy": {"text": "after the fault"}}
_NOT_LATER = "the run was saved on, and that was acknowledged: nothing of the lost attempt may come later"
_OTHERS = "it was acknowledged, and the lost call was about another run"
_SETTLED = 0.05


async def made_again_over_a_proxy(subject: StoreSubject, served: ServedLocations, titles: Sequence[str]) -> None:
    """Lose each request, and each reply, of these deeds; note how often. Raises `MisuseError` if there is no proxy."""
    expect_proxy(served, subject.clause)
    lost = dict.fromkeys(_KINDS, 0)
    for title in titles:
        for what in _KINDS:
            for number in range(1, _MOST + 1):
                if not await _lost(subject, title, what, number):
                    break
                lost[what] += 1
    subject.notes.append(
        f"{lost['request']} requests and {lost['reply']} replies were lost between the store and its server"
    )


async def _lost(subject: StoreSubject, title: str, what: str, number: int) -> bool:
    """Whether it happened: a call makes only so many requests."""
    fault = _KINDS[what](nth=number)
    async with subject.scenario(f"{title}, of which {what} {number} is lost") as s, through_a_proxy(s) as used:
        await _made_again(s, used, title, fault)
    return fault.fired > 0


async def _made_again(s: Scenario, used: ThroughProxy, title: str, fault: Fault) -> None:
    deed = await DEEDS[title](s)
    for step in deed.before:
        await used.must(step)
    await asyncio.sleep(_SETTLED)  # the last reply is not taken for a part of what follows
    with used.proxy.disturbed(fault, must_fire=False):
        first = await used.call(deed.call)
    s.tell(f"{fault!r} {'has happened' if fault.fired else 'has not happened: the call makes fewer requests'}")
    said = first.get("raised", "acknowledged")
    if "raised" in first:
        again = await used.call(deed.call)
        expect_no_error(again, f"{deed.call['do']}, made again (the first: {said}),", because=_AGAIN)
    loaded = await used.call(load_step(deed))
    expect_no_error(loaded, "load_or_create after that", because=_AGAIN)
    s.expect(Record.from_dict(loaded["record"])).equals(deed.found[-1], because=_AGAIN)
    [(other, known)] = deed.others.items()
    for run_id in (deed.run_id, other):
        save: Step = {"do": "save", "run": run_id, "outputs": _GOES_ON}
        expect_no_error(await used.call(save), f"save({run_id!r}) after that", because=_AGAIN)
    deed.others[other] = known.after(_GOES_ON)
    now = deed.found[-1].after(_GOES_ON)
    await expect_whole_and_going_on(s, deed, [now], because=_NOT_LATER, others_because=_OTHERS)
