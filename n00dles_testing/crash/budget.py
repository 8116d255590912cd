"""How much an exploration may try: so many scenarios, or as many as there is time for."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

__all__ = ["Budget", "spread"]

T = TypeVar("T")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Budget:
    """`scenarios` at most, or for `seconds`; None is no limit. `given` is what was asked for in all."""

    scenarios: int | None = None
    seconds: float | None = None
    given: str = field(default="", compare=False)

    @classmethod
    def read(cls, given: int | str | None) -> Budget:
        """Read 200 or "200" (scenarios), or "30s", "1.5m", "1h" (time). Raises `ValueError` for anything else."""
        if given is None:
            return cls()
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([smh]?)", str(given).strip())
        number = float(match[1]) if match and not isinstance(given, bool) else 0.0
        if match and match[2] and number > 0:
            return cls(seconds=number * _SECONDS[match[2]], given=str(given).strip())
        if number >= 1 and number.is_integer():
            return cls(scenarios=int(number), given=str(given).strip())
        raise ValueError(f"budget={given!r} is no budget; write 200 for so many scenarios, or '30s', '5m' for a time.")

    def share(self, spent_scenarios: int, started: float, generations: int) -> Budget:
        """Return what the next of `generations` may have: what is left, in equal parts. `started` is monotonic."""
        if self.scenarios is not None:
            return replace(self, scenarios=-(-max(0, self.scenarios - spent_scenarios) // generations))
        if self.seconds is not None:
            return replace(self, seconds=max(0.0, self.seconds - (time.monotonic() - started)) / generations)
        return self

    def spend(self, items: Sequence[T]) -> Iterator[T]:
        """Give `items` one by one while there is time, spread evenly over all of them; the first in any case."""
        if self.seconds is None:
            yield from items
            return
        ends = time.monotonic() + self.seconds
        for place, item in enumerate(spread(items)):
            if place and time.monotonic() >= ends:
                return
            yield item


def spread(items: Sequence[T]) -> list[T]:
    """Return `items` in such an order that the first few, however many, lie evenly among all of them."""
    width = max(1, (len(items) - 1).bit_length())
    places = sorted(range(len(items)), key=lambda place: f"{place:0{width}b}"[::-1])
    return [items[place] for place in places]
