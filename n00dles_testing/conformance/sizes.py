"""Whether an error names a size and a limit, in whatever words."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["names_size_and_limit"]

_AMOUNT = re.compile(r"(?<![\w.])(\d[\d,_]*(?:\.\d+)?)\s*([kmg]i?b?\b|)", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3}
_AT_LEAST, _AT_MOST = 0.9, 2.0
"""How far the size that a store names may be from that of the output: it may count escapes, or the rest of the run."""
_SMALLEST_LIMIT = 1000


def names_size_and_limit(text: str, size: int) -> bool:
    """Return whether `text` has an amount of about `size` bytes, and a smaller one that can be a limit."""
    amounts = set(_amounts(text))
    sizes = [amount for amount in amounts if size * _AT_LEAST <= amount <= size * _AT_MOST]
    return any(_SMALLEST_LIMIT <= amount < max(sizes, default=0) for amount in amounts)


def _amounts(text: str) -> Iterator[float]:
    """Return each amount in bytes: KB counts in thousands, KiB in 1024."""
    for number, unit in _AMOUNT.findall(text):
        base = 1024 if unit[1:2].lower() == "i" else 1000
        yield float(number.replace(",", "").replace("_", "")) * base ** _POWERS[unit[:1].lower()]
