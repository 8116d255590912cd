"""C05: a call that has failed is made again: it succeeds, and changes nothing twice."""

from __future__ import annotations

from typing import Literal

from ..buffered import source_of, without_runs
from ..deeds import (
    DEEDS,
    expect_no_error,
    expect_whole_and_going_on,
    load_step,
    nothing_tried,
    play_elsewhere,
    undisturbed_deeds,
)
from ..disturbed import Step
from ..durability import require_durable
from ..lost_replies import made_again_over_a_proxy
from ..records import Record
from ..registry import clause
from ..retried_saves import retried_after_another_worker
from ..spread import Points
from ..subject import StoreSubject

_LATER = "a later save"
_TITLES = ("the creation of a run", "a first save", _LATER, "a delete")
_FAULTS = ("EIO", "ENOSPC")
_AGAIN = "the call raised, and was made again: it is done, and done once"
_NOT_LATER = "it was made again and the run saved on, both acknowledged: nothing of the failed attempt may come later"
_GOES_ON = {"yy": {"text": "after the fault"}}
_OTHERS = "it was acknowledged, and the failed call was about another run"


@clause("C05", level=2, title="a call that failed, or whose reply was lost, can be made again")
async def made_again(subject: StoreSubject) -> None:
    """Whoever gets an error from a save does not know whether it has landed. Saving again is right in both cases.

    In another process one call to the outside fails inside a call of the store: at first having done nothing (fail
    before commit), then having done its work (fail after commit, the reply is lost). Where the store raises, the caller
    does what a caller can do: it makes the same call again, on the same store, with the same context. That must
    succeed: a store may not take its own landed save for somebody else's. Then the run is exactly as after one call,
    each node once in the order; it is saved on, and is there in another process. Nor does the failed attempt land
    later, over that: another run is saved on the same store, and the first one is still as it was saved last. (That a
    failed save which nobody makes again lands half, with the save of another run, is not looked for.) The same holds
    for a creation, which gives the same run again, and for a delete.

    That a save is in doubt is no leave to overwrite: another worker may have loaded the run and saved it in between.
    Then the save that is made again is refused, or merged, and what the other worker saved stays.

    Only what can happen is done: SQLite undoes a statement that fails, so only its commits lose their reply, and a file
    that was not opened is not open. Of many writes into a buffer, one after the other, a few are tried: they are alike
    on disk. Where the suite knows the store's server, it is each request, and each reply, that is lost between the two.
    What else a network does is for W06.

    Seen in: ModernRelay/omnigraph #513, get-convex/convex-backend PR #559 (the commit landed, its reply was lost, and
    the caller cannot tell), openai/openai-agents-python #4690 (an append that failed cannot be made again, or is made
    twice).
    """
    await require_durable(subject)
    if subject.served is not None:
        await made_again_over_a_proxy(subject, subject.served, _TITLES)
        return
    tried: dict[Literal["lose", "fail"], int] = {"lose": 0, "fail": 0}
    known = await undisturbed_deeds(subject, _TITLES, after_a_kill=False)
    counted = 0
    for by in tried:
        source = source_of(subject)
        numbers = {title: without_runs(came["counted"][by], source) for title, came in known.items()}
        counted += sum(map(len, numbers.values()))
        points = Points(subject, {title: len(each) for title, each in numbers.items()})
        for title, came in known.items():
            for point in points.of(title):
                number = numbers[title][point - 1]
                tried[by] += await _again_after(subject, title, by, number, came["counted"][by][number - 1])
    if _LATER in known:
        await retried_after_another_worker(subject, known[_LATER]["counted"])
    if not sum(tried.values()) and not subject.findings:
        raise nothing_tried(subject, counted, "no call of the store was made to fail")
    subject.notes.append(f"failed {tried['fail']} times before, and {tried['lose']} times after its work was done")


async def _again_after(subject: StoreSubject, title: str, by: Literal["lose", "fail"], number: int, name: str) -> bool:
    """Whether the fault was met."""
    how = "raises, having done its work" if by == "lose" else "raises, having done nothing"
    is_met = False
    async with subject.scenario(f"{title}, in which {name} (number {number}) {how}") as s:
        deed = await DEEDS[title](s)
        disturbance = {"by": by, "number": number, "fault": _FAULTS[number % len(_FAULTS)]}
        [(other, known)] = deed.others.items()
        saves: list[Step] = [
            {"do": "save", "run": deed.run_id, "outputs": _GOES_ON},
            {"do": "save", "run": other, "outputs": _GOES_ON},
        ]
        after = [deed.call, load_step(deed), *saves]
        came = await play_elsewhere(s, deed, disturbance, f"in which {name} {how}", after)
        is_met = bool(came["met"])
        again, loaded, *saved = came["after"]
        first = came["came"].get("raised", "acknowledged")
        expect_no_error(again, f"{deed.call['do']}, made again (the first: {first}),", because=_AGAIN)
        expect_no_error(loaded, "load_or_create after that", because=_AGAIN)
        s.expect(Record.from_dict(loaded["record"])).equals(deed.found[-1], because=_AGAIN)
        for step, outcome in zip(saves, saved, strict=True):
            expect_no_error(outcome, f"save({step['run']!r}) after that", because=_AGAIN)
        deed.others[other] = known.after(_GOES_ON)
        now = deed.found[-1].after(_GOES_ON)
        await expect_whole_and_going_on(s, deed, [now], because=_NOT_LATER, others_because=_OTHERS)
    return is_met
