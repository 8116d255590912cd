"""Choices that depend on a seed alone: the same in every process, on every machine, in every Python."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["Dice"]

T = TypeVar("T")


class Dice:
    """A stream of numbers made from SHA-256; `random` does not promise the same numbers in every Python release."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._rolls = 0

    def below(self, limit: int) -> int:
        """Return a number from 0 to `limit` - 1."""
        self._rolls += 1
        digest = hashlib.sha256(self._seed + self._rolls.to_bytes(8, "big")).digest()
        return int.from_bytes(digest[:16], "big") % limit

    def between(self, low: int, high: int) -> int:
        """Return a number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def choice(self, options: Sequence[T]) -> T:
        """Return one of `options`."""
        return options[self.below(len(options))]
