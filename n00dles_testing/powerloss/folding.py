"""A time line of a size that can be shown and kept: what does not matter is folded, and says how much it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from n00dles_testing.powerloss.telling import Moment

__all__ = ["MOST", "folded"]

MOST = 90
"""So many moments are shown at most."""
_AROUND = 2
"""So many are kept on both sides of what matters."""
_AT_THE_END = 6
_SHORTEST = 4
"""A shorter stretch is not worth folding."""
_DONE = frozenset({"synced", "sync", "mark"})
_THERE = _DONE | {"kept"}
_WORST_FIRST = ("lost", "partly", "failed sync", "unfinished sync", "kept", "synced")


def folded(moments: Sequence[Moment], most: int = MOST) -> tuple[Moment, ...]:
    """Return at most `most` moments (at least 30) that stand for all of them, in their order; each has its `times`.

    Writes in a row of one call into one file with the same fate are one. If that is not enough, stretches are left out,
    of which one moment says how many operations they are: at first those of which all is synced, then those of which
    nothing is lost, and in the end the middle.
    """
    shown = list(_in_a_row(moments))
    for quiet in (_DONE, _THERE):
        if len(shown) > most:
            loud = [number for number, moment in enumerate(shown) if moment.fate not in quiet]
            near = {at for number in loud for at in range(number - _AROUND, number + _AROUND + 1)}
            shown = _without(shown, near | {0, 1} | set(range(len(shown) - _AT_THE_END, len(shown))))
    if len(shown) > most:
        head = most // 3
        shown = _without(shown, {*range(head), *range(len(shown) - (most - head - 1), len(shown))})
    return tuple(shown)


def _in_a_row(moments: Iterable[Moment]) -> Iterable[Moment]:
    waiting: Moment | None = None
    for moment in moments:
        if waiting is not None and moment.what == "write" and _key(moment) == _key(waiting):
            times, size = waiting.times + moment.times, waiting.size + moment.size
            words = f"{times} writes to `{moment.path}` ({size} bytes)"
            waiting = replace(waiting, words=words, size=size, times=times)
            continue
        if waiting is not None:
            yield waiting
        waiting = moment
    if waiting is not None:
        yield waiting


def _key(moment: Moment) -> tuple[str, str, str, str | None]:
    return moment.what, moment.fate, moment.path, moment.during


def _without(moments: Sequence[Moment], kept: set[int]) -> list[Moment]:
    """Return the moments of these numbers, and one for each stretch between them."""
    shown: list[Moment] = []
    stretch: list[Moment] = []
    for number, moment in enumerate(moments):
        if number not in kept:
            stretch.append(moment)
            continue
        shown += _stretch(stretch)
        stretch = []
        shown.append(moment)
    return shown + _stretch(stretch)


def _stretch(moments: list[Moment]) -> list[Moment]:
    if len(moments) < _SHORTEST:
        return moments
    fates: Counter[str] = Counter()
    for moment in moments:
        fates[moment.fate] += moment.times
    calls, _ = fates.pop("mark", 0), fates.pop("sync", 0)
    fate = next((each for each in _WORST_FIRST if fates[each]), "synced")
    count = sum(moment.times for moment in moments) - calls
    told = ", ".join(f"{fates[each]} {each}" for each in _WORST_FIRST if fates[each])
    words = f"and {count} more operations" + (", all of them synced" if set(fates) <= {"synced"} else f" ({told})")
    return [Moment(moments[0].position, words, fate, what="more", times=count)]
