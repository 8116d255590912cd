"""Values drawn from one seed: the same seed gives the same run ids, names and outputs in every process."""

from __future__ import annotations

import random
from typing import Any

__all__ = ["Draw"]

_WORDS = ("ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "yew")


class Draw:
    """A seeded source of plain JSON values."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def token(self) -> str:
        """Return eight hex digits."""
        return f"{self._random.getrandbits(32):08x}"

    def names(self, count: int) -> list[str]:
        """Return distinct node names, not in the order of the alphabet (unless there is only one)."""
        names = [f"{self._random.choice(_WORDS)}{number}" for number in range(count)]
        while count > 1 and names == sorted(names):
            self._random.shuffle(names)
        return names

    def value(self, depth: int = 3) -> Any:
        """Return any JSON value, nested up to `depth` levels."""
        leaves = (
            lambda: None,
            lambda: self._random.choice((True, False)),
            lambda: self._random.randint(-(2**31), 2**31),
            lambda: round(self._random.uniform(-1e6, 1e6), 3),
            self.text,
        )
        nests = (
            lambda: [self.value(depth - 1) for _ in range(self._random.randint(0, 3))],
            lambda: {self.token(): self.value(depth - 1) for _ in range(self._random.randint(0, 3))},
        )
        return self._random.choice(leaves if depth <= 0 else (*leaves, *nests))()

    def text(self) -> str:
        """Return a few words; now and then none."""
        return " ".join(self._random.choice(_WORDS) for _ in range(self._random.randint(0, 6)))

    def plain_outputs(self, start: str, count: int) -> dict[str, Any]:
        """Return nodes named in the order of the alphabet, each with an output that is not empty.

        For clauses that are not about values and order: a fault in those is told once, by S02.
        """
        return {f"{start}{number:02}": {"text": f"{self.text()} {self.token()}".lstrip()} for number in range(count)}

    def outputs(self, count: int) -> dict[str, Any]:
        """Return `count` nodes with an output each, in an order that is not the alphabet's."""
        return {name: self.value() for name in self.names(count)}
