"""Which of many points are tried: all of them, as long as they are not too many."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from .subject import StoreSubject

__all__ = ["MOST", "Points", "share", "spread"]

MOST = 150
"""So many points one check tries; more are sampled. With N00DLES_PROFILE=deep there is no bound."""
_PART_OF_THE_TIME = 0.3


Title = TypeVar("Title", bound=Hashable)


class Points(Generic[Title]):
    """The points of one check, shared out among what it tries: `counts` says how many there are of each.

    Other seeds give other samples; the first point and the last one are always among them. A check that is late, on a
    slow disk or a busy machine, goes on with these two, rather than be ended at the limit.
    """

    def __init__(self, subject: StoreSubject, counts: Mapping[Title, int], most: int = MOST) -> None:
        """Share out `most` points."""
        self._source = random.Random(f"{subject.clause}:{subject.seed}")
        self._counts = counts
        self._shares = counts if os.environ.get("N00DLES_PROFILE") == "deep" else share(counts, most)
        self._late = time.monotonic() + subject.seconds * _PART_OF_THE_TIME

    def of(self, title: Title) -> Iterator[int]:
        """Yield the numbers that are tried of one, from 1."""
        count = self._counts[title]
        for number in spread(count, self._shares[title], self._source):
            if number in (1, count) or time.monotonic() < self._late:
                yield number


def share(counts: Mapping[Title, int], most: int) -> dict[Title, int]:
    """Give each its count, or, if all are more than `most`, the same to all that have more than that."""
    shares: dict[Title, int] = {}
    left = most
    for place, title in enumerate(sorted(counts, key=lambda each: counts[each])):
        shares[title] = min(counts[title], max(1, left // (len(counts) - place)))
        left -= shares[title]
    return shares


def spread(count: int, most: int, source: random.Random | None = None) -> list[int]:
    """Return the numbers from 1 to `count`, or `most` of them, evenly spread, with the first and the last.

    Of one number alone it is the first; of none, nothing. With a `source` each of the others is drawn from its part of
    the way.
    """
    if count <= most:
        return list(range(1, count + 1))
    if most <= 1:
        return [1][:most]
    if source is None:
        return sorted({1 + round(step * (count - 1) / (most - 1)) for step in range(most)})
    between = most - 2
    edges = [2 + part * (count - 2) // max(1, between) for part in range(between + 1)]
    return [1, *(source.randrange(edges[part], edges[part + 1]) for part in range(between)), count]
