"""Words that the traced program puts between its calls."""

from __future__ import annotations

import contextlib
import itertools
import os

__all__ = ["Marks"]

_FIRST = 1 << 30
"""No process has so many descriptors: their limit is lower even where it is called infinite."""

_NUMBERS = itertools.count(_FIRST + 0x4D524B)


class Marks:
    """Made before `trace`, which then takes down each word that the traced program puts.

        marks = Marks()

        def save() -> None:
            marks.put("INV 1")
            store.save(...)
            marks.put("ACK 1")

        trace(save, folder, marks=marks)

    A mark is a write to a descriptor that cannot exist: the tracer sees it in its order among the calls of all threads,
    and nothing can come of it. So it needs nothing open, and does nothing where nobody traces.
    """

    def __init__(self) -> None:
        self.descriptor = next(_NUMBERS)

    def put(self, text: str) -> None:
        """Put a word, of a few hundred bytes at most, after all calls that have returned."""
        with contextlib.suppress(OSError):
            os.write(self.descriptor, text.encode())
