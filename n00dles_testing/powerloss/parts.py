"""The pending operations at a crash position, in parts: what of each may be on the disk, or not, by itself."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from n00dles_testing.powerloss.contents import BLOCK
from n00dles_testing.powerloss.forcing import Unit
from n00dles_testing.powerloss.models import Model
from n00dles_testing.powerloss.operations import Write
from n00dles_testing.powerloss.steps import Step, pages

__all__ = ["SECTOR", "Choice", "Part", "Range", "cut", "joined", "parts", "piece", "units"]

SECTOR = 512
"""Bytes that a disk writes whole, whatever happens."""

Range = tuple[int, int]
"""Bytes of a file, from and to."""


@dataclass(frozen=True, slots=True)
class Part:
    """A pending operation, and the bits that stand for it in a choice.

    `first` is its lowest bit. A write has one for each of its `ranges`, and a `size_bit` above them if the model lets
    the file grow without them; another operation has just one. `settled` are those bytes of a write that are not
    pending, because a sync has forced a part of it.
    """

    step: Step
    first: int
    ranges: tuple[Range, ...] = ()
    size_bit: int = 0
    settled: tuple[Range, ...] = ()

    @property
    def data(self) -> int:
        """The bits without that of the size."""
        return ((1 << max(len(self.ranges), 1)) - 1) << self.first

    @property
    def mask(self) -> int:
        """All its bits."""
        return self.data | self.size_bit

    def on(self, pages: Container[int]) -> int:
        """Return the bits of what is pending on some pages of the file."""
        return sum(1 << (self.first + at) for at, (start, _) in enumerate(self.ranges) if start // BLOCK in pages)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of the pending bits have reached the disk; and of one write, the `torn`, only these ranges."""

    kept: int
    torn: int | None = None
    ranges: tuple[Range, ...] = ()


def parts(tail: Sequence[Step], forced: Collection[Unit], model: Model) -> Iterator[Part]:
    """Give a part for each of these steps that is not forced, or not all of it."""
    bit = 0
    for step in tail:
        is_pending = [(step.index, page) not in forced for page in pages(step.operation)]
        if not any(is_pending):
            continue
        ranges = units(step.operation) if isinstance(step.operation, Write) else ()
        pending = tuple(itertools.compress(ranges, is_pending))
        settled = tuple(itertools.compress(ranges, [not each for each in is_pending]))
        sized = model.sizes_before_data and step.grows and is_pending[-1]
        part = Part(step, bit, pending, 1 << (bit + len(pending)) if sized else 0, settled)
        bit = part.mask.bit_length()
        yield part


def piece(write: Write, part: Range) -> Write:
    """Return the part of a write that goes to these bytes of its file."""
    start, end = part
    return replace(write, offset=start, data=write.data[start - write.offset : end - write.offset])


def units(write: Write) -> tuple[Range, ...]:
    """Cut a write where its file has a multiple of the size of a page: a range for each of its `pages`."""
    return cut((write.offset, write.offset + len(write.data)), BLOCK)


def cut(whole: Range, granularity: int) -> tuple[Range, ...]:
    """Cut bytes of a file where that has a multiple of the granularity (bytes)."""
    start, end = whole
    cuts = [start, *range((start // granularity + 1) * granularity, end, granularity), end]
    return tuple(itertools.pairwise(cuts))


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Return the same bytes, in their order, as few ranges as possible."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and found[-1][1] >= start:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
