"""One measured figure, and the limit that it is meant to keep."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Figure", "alternated", "ratio"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A ratio or a rate. `at_most` or `at_least` is its target; `detail` says what it was made of."""

    name: str
    value: float
    unit: str
    detail: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def reached(self) -> bool:
        """Whether the target is kept."""
        if self.at_most is not None and self.value > self.at_most:
            return False
        return self.at_least is None or self.value >= self.at_least

    @property
    def target(self) -> str:
        """The target in words; '' for a figure that is only told."""
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        return f"≥ {self.at_least:g}" if self.at_least is not None else ""


def alternated(rounds: int, *measures: Callable[[], float]) -> list[list[float]]:
    """Take each measure in turn, `rounds` times, so that a drift of the machine meets all of them alike."""
    results: list[list[float]] = [[] for _ in measures]
    for _ in range(rounds):
        for measure, found in zip(measures, results, strict=True):
            found.append(measure())
    return results


def ratio(ours: Sequence[float], raw: Sequence[float]) -> float:
    """Return the median of the ratios, pair by pair."""
    return statistics.median(a / b for a, b in zip(ours, raw, strict=True))
