"""One measured figure, and the limit that it is meant to keep."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.markup import escape

__all__ = ["Figure", "alternated", "ratio"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A ratio or a rate. `at_most` or `at_least` is its target; `detail` says what it was made of.

    `value` is None if it could not be measured; `detail` then says why.
    """

    name: str
    value: float | None
    unit: str
    detail: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def reached(self) -> bool:
        """Whether the target is kept, or there is none."""
        if self.value is None:
            return not self.target
        if self.at_most is not None and self.value > self.at_most:
            return False
        return self.at_least is None or self.value >= self.at_least

    @property
    def target(self) -> str:
        """The target in words; '' for a figure that is only told."""
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        return f"≥ {self.at_least:g}" if self.at_least is not None else ""

    @property
    def line(self) -> str:
        """One line for a terminal, as rich reads it."""
        value = f"{'–':>8}" if self.value is None else f"{self.value:8.2f}"
        mark = "[green]reached[/]" if self.reached else "[red]missed[/] "
        mark = mark if self.target else " " * len("reached")
        return f"{escape(self.name):38} {value} {self.unit:22} {self.target:>8}  {mark}  [dim]{escape(self.detail)}[/]"


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
