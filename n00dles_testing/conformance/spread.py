"""Trying some of many points, when all are too many."""

from __future__ import annotations

__all__ = ["spread"]


def spread(count: int, most: int) -> list[int]:
    """Return the numbers from 1 to `count`, or `most` of them, evenly spread, with the first and the last.

    Of one number alone it is the first; of none, nothing.
    """
    if count <= most:
        return list(range(1, count + 1))
    if most <= 1:
        return [1][:most]
    return sorted({1 + round(step * (count - 1) / (most - 1)) for step in range(most)})
