"""A save that failed is made again after another worker has saved: that it is in doubt is no leave to overwrite."""

from __future__ import annotations

from .buffered import is_buffered
from .deeds import DEEDS, load_step, play_elsewhere
from .disturbed import Step
from .records import Record
from .subject import StoreSubject

__all__ = ["retried_after_another_worker"]

_TITLE = "a later save"
_OTHER = "another"
_NODE = "by-another-worker"
_FAULTS = {"fail": "ENOSPC", "lose": "EIO"}
_PARTS = (1, 2, 3, 4)
"""The failing calls that are tried: the last one, and those at each quarter before it; writes into a buffer aside."""
_WHY = (
    "another worker has loaded the run and saved it in between, which was acknowledged; the first worker's context is "
    "older, whatever came of its own save"
)


async def retried_after_another_worker(subject: StoreSubject, counted: dict[str, list[str]]) -> None:
    """Let worker A's save fail, worker B load and save, and A save again: refused, or merged, and B's node stays.

    `counted` names the calls of the undisturbed later save that can fail, and that can lose their reply.
    """
    tried = 0
    for by in _FAULTS:
        names = counted[by]
        every = range(1, len(names) + 1)
        numbers = [number for number in every if not is_buffered(names[number - 1])] or every
        for place in sorted({-(-len(numbers) * part // len(_PARTS)) for part in _PARTS} - {0}):
            number = numbers[place - 1]
            tried += await _retried(subject, by, number, names[number - 1])
    if tried:
        subject.notes.append(f"made again {tried} times after another worker had saved")
    else:
        subject.notes.append("not tried: a save made again after another worker's: none that was made to fail raised")


async def _retried(subject: StoreSubject, by: str, number: int, name: str) -> bool:
    """Whether the first save has raised, and the other worker could load and save."""
    how = "raises, having done its work" if by == "lose" else "raises, having done nothing"
    title = f"{_TITLE}, in which {name} (number {number}) {how}; another worker saves; it is made again"
    async with subject.scenario(title) as s:
        deed = await DEEDS[_TITLE](s)
        other: Step = {"do": "save", "run": deed.run_id, "outputs": {_NODE: {"text": "paid for"}}, "worker": _OTHER}
        after: list[Step] = [{**load_step(deed), "worker": _OTHER}, other, deed.call]
        disturbance = {"by": by, "number": number, "fault": _FAULTS[by]}
        came = await play_elsewhere(s, deed, disturbance, f"in which {name} {how}", after)
        loaded, saved, again = came["after"]
        if "raised" not in came["came"] or "raised" in loaded or "raised" in saved:
            return False  # that every call works again after an error is asked elsewhere in this clause
        before = Record.from_dict(loaded["record"]).after(other["outputs"])
        s.acknowledged.update(deed.others)
        s.acknowledged[deed.run_id] = before
        found = (await s.load(deed.run_id)).record
        if "raised" in again:
            s.expect(found).equals(before, because=f"the retry was refused, so it changes nothing; {_WHY}")
        else:
            allowed = before.after(deed.call["outputs"])
            s.expect(found.by_name()).equals(allowed.by_name(), because=f"the retry was acknowledged; {_WHY}")
        return True
    return True
