"""Which pending operations a disk cannot have without others, under a model."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from n00dles_testing.powerloss.forcing import Unit, before, flushed_by, is_metadata
from n00dles_testing.powerloss.models import Model
from n00dles_testing.powerloss.operations import Truncate, Write
from n00dles_testing.powerloss.parts import Part
from n00dles_testing.powerloss.steps import pages

__all__ = ["Dependencies"]

_Bits = tuple[int, int]
"""Bits, and those that they need, or bring."""


class Dependencies:
    """What pending operations need of each other at one crash position: a set of bits is legal or not, and why.

    Names and sizes need those before them in the journal. Data in new blocks needs the changes of its file's size
    before it. A rename over a file brings the data of its source, and what is written into the page of an orphan brings
    that. A write over the end of a file brings its size.
    """

    def __init__(
        self, parts: Sequence[Part], model: Model, forced: Collection[Unit], orphans: Mapping[Unit, int]
    ) -> None:
        self._parts = parts
        self._metadata = [part for part in parts if is_metadata(part.step.operation)]
        self._names: list[_Bits] = []
        self._blocks: dict[int, list[_Bits]] = {}
        self._brought: list[_Bits] = []
        if model.orders_metadata:
            self._names = self._order()
            self._blocks = self._new_blocks()
        if model.flushes_before_replacing:
            self._brought += self._flushes({*forced, *orphans})
        if model.orders_metadata and orphans:
            self._brought += self._written_again(orphans)

    def close(self, kept: int) -> int:
        """Return the legal set of bits next to this one: what misses something goes, and what is brought comes."""
        for bit, needs in self._names:
            if kept & bit and needs & ~kept:
                kept &= ~bit
        for bit, brings in self._brought:
            if kept & bit:
                kept |= brings
        for bits, needs in itertools.chain.from_iterable(self._blocks.values()):
            if needs & ~kept:
                kept &= ~bits
        for part in self._parts:
            if part.size_bit and kept & (1 << (part.first + len(part.ranges) - 1)):
                kept |= part.size_bit
        return kept

    def refused(self, number: int, kept: int) -> int:
        """Return the bits of a part that need something which is not kept."""
        refused = 0
        for bits, needs in self._blocks.get(number, ()):
            refused |= bits if needs & ~kept else 0
        return refused

    def raised(self, kept: int) -> int:
        """Return the bits with all that they need."""
        for data, needs in itertools.chain.from_iterable(self._blocks.values()):
            if kept & data:
                kept |= needs
        for bit, needs in reversed(self._names):
            if kept & bit:
                kept |= needs
        return self.close(kept)

    def _order(self) -> list[_Bits]:
        """Return the bit of each operation in the journal, and those of all that came surely before it."""
        done = sorted(self._metadata, key=lambda part: part.step.operation.exited)
        order, needs, taken = [], 0, 0
        for part in self._metadata:
            while taken < len(done) and before(done[taken].step.operation, part.step.operation):
                needs |= done[taken].mask
                taken += 1
            order.append((part.mask, needs))
        return order

    def _flushes(self, tried: Collection[Unit]) -> list[_Bits]:
        """Return the bit of each rename that takes data along, and those of the data."""
        pending = [part.step for part in self._parts]
        numbers_of = {step.index: number for number, step in enumerate(pending)}
        flushes = []
        for part in self._metadata:
            numbers: dict[int, set[int]] = {}
            for index, page in flushed_by(part.step, pending, tried):
                numbers.setdefault(numbers_of[index], set()).add(page)
            if numbers:
                flushes.append((part.mask, sum(self._parts[at].on(found) for at, found in numbers.items())))
        return flushes

    def _written_again(self, orphans: Mapping[Unit, int]) -> list[_Bits]:
        """Return the bits of what is written into the page of an orphan, and those of the orphan."""
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        again = []
        for part in self._parts:
            write = part.step.operation
            if not isinstance(write, Write):
                continue
            for page in pages(write):
                earlier = found.setdefault((write.inode, page), [])
                if (part.step.index, page) in orphans:
                    earlier.append((orphans[part.step.index, page], part.on({page})))
                elif bits := sum(orphan for failed, orphan in earlier if failed < write.entered):
                    again.append((part.on({page}), bits))
        return again

    def _new_blocks(self) -> dict[int, list[_Bits]]:
        """Return by the numbers of writes: bits of theirs, and the change of their file's size that these need.

        What is written into a new block is not seen before the journal has the block, and there it comes after what was
        cut off, or grew, before the write. Of several changes the last one is enough: it needs those before it.
        """
        found: dict[int, list[_Bits]] = {}
        resized: dict[int, list[Part]] = {}
        for number, part in enumerate(self._parts):
            operation = part.step.operation
            if isinstance(operation, Truncate):
                resized.setdefault(operation.inode, []).append(part)
            elif isinstance(operation, Write) and operation.inode in resized:
                earlier = [each for each in resized[operation.inode] if before(each.step.operation, operation)]
                found[number] = list(_after_changes(part, earlier))
        return found


def _after_changes(part: Part, changes: Sequence[Part]) -> Iterator[_Bits]:
    pages, size = dict(part.step.blocks), part.size_bit
    for at in reversed(range(len(changes))):
        change = changes[at].step
        new = {page for page, first in pages.items() if first > change.index}
        yield part.on(new) | size, changes[at].mask
        if at and before(changes[at - 1].step.operation, change.operation):
            size = 0
            pages = {page: first for page, first in pages.items() if page not in new}
            if not pages:
                return
