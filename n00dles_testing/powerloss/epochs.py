"""When the power may fail, and what may then be lost: the pending operations at each crash position, in parts.

The positions are those before each sync returns, and the end. That is enough: what may be on the disk earlier between
two syncs may be there later as well, because an operation that is lost is as one that was not made yet; and later more
has been acknowledged, so more is asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from n00dles_testing.powerloss.contents import BLOCK, Content
from n00dles_testing.powerloss.forcing import Forcing, before, flushed_by, is_metadata
from n00dles_testing.powerloss.models import Model
from n00dles_testing.powerloss.operations import (
    NEVER,
    MakeFolder,
    Marked,
    Operation,
    Rename,
    Symlink,
    Sync,
    SyncAll,
    Truncate,
    Write,
)
from n00dles_testing.powerloss.steps import Change, Step
from n00dles_testing.powerloss.tree import Draft, Tree

__all__ = ["SECTOR", "Choice", "Epoch", "Part", "Range", "epochs", "marks", "piece", "units"]

SECTOR = 512
"""Bytes that a disk writes whole, whatever happens."""

Range = tuple[int, int]
"""Bytes of a file, from and to."""


@dataclass(frozen=True, slots=True)
class Part:
    """A pending operation, and the bits that stand for it in a choice.

    `first` is its lowest bit. A write has one for each of its `ranges`, and a `size_bit` above them if the model lets
    the file grow without them; another operation has just one.
    """

    step: Step
    first: int
    ranges: tuple[Range, ...] = ()
    size_bit: int = 0

    @property
    def data(self) -> int:
        """The bits without that of the size."""
        return ((1 << max(len(self.ranges), 1)) - 1) << self.first

    @property
    def mask(self) -> int:
        """All its bits."""
        return self.data | self.size_bit


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of the pending bits have reached the disk; and of one write, the `torn`, only these ranges."""

    kept: int
    torn: int | None = None
    ranges: tuple[Range, ...] = ()


class Epoch:
    """One crash position. `start` is what is surely on the disk; on it follows the `tail`, forced or pending.

    `parts` are the pending operations, in their order. `acknowledgements` and `invocations` are the marks so far, with
    their places. `settled` is the earliest position at which all that is forced had begun.
    """

    def __init__(
        self,
        *,
        position: int,
        start: Tree,
        tail: Sequence[Step],
        parts: Iterable[Part],
        operations: Sequence[Operation],
        forced: set[int],
        model: Model,
        orphans: set[int],
    ) -> None:
        self.position = position
        self.start = start
        self.parts = tuple(parts)
        self.acknowledgements = marks(operations, "ACK", position)
        self.invocations = marks(operations, "INV", position)
        self.settled = max((operations[index].entered for index in forced), default=-1) + 1
        self.all = sum(part.mask for part in self.parts)
        self.metadata = [part for part in self.parts if is_metadata(part.step.operation)]
        self._numbers = {part.step.index: number for number, part in enumerate(self.parts)}
        self.orders = model.orders_metadata
        self._tail = tail
        self._needs = self._order() if model.orders_metadata else []
        self._brings = self._flushes(orphans) if model.flushes_before_replacing else []

    def _order(self) -> list[tuple[int, int]]:
        """Return the bit of each operation in the journal, and those of all that came surely before it."""
        done = sorted(self.metadata, key=lambda part: part.step.operation.exited)
        order, needs, taken = [], 0, 0
        for part in self.metadata:
            while taken < len(done) and before(done[taken].step.operation, part.step.operation):
                needs |= done[taken].mask
                taken += 1
            order.append((part.mask, needs))
        return order

    def _flushes(self, orphans: set[int]) -> list[tuple[int, int]]:
        """Return the bit of each rename that takes data along, and those of the data."""
        pending = [part.step for part in self.parts if part.step.index not in orphans]
        flushes = []
        for part in self.metadata:
            numbers = [self._numbers[step.index] for step in flushed_by(part.step, pending)]
            if numbers:
                flushes.append((part.mask, sum(self.parts[number].mask for number in numbers)))
        return flushes

    def close(self, kept: int) -> int:
        """Return the legal set of bits next to this one: names without those before them go, flushed data comes."""
        for bit, needs in self._needs:
            if kept & bit and needs & ~kept:
                kept &= ~bit
        for bit, brings in self._brings:
            if kept & bit:
                kept |= brings
        for part in self.parts:
            if part.size_bit and kept & (1 << (part.first + len(part.ranges) - 1)):
                kept |= part.size_bit
        return kept

    def legal(self, choice: Choice) -> Choice:
        """Return the legal choice next to this one. A torn write that must be whole is whole."""
        kept = self.close(choice.kept)
        if choice.torn is None or kept & self.parts[choice.torn].data:
            return Choice(kept)
        return replace(choice, kept=kept)

    def raised(self, kept: int, bits: int) -> int:
        """Return the bits with some more, and with all that these need."""
        kept |= bits
        for bit, needs in reversed(self._needs):
            if kept & bit:
                kept |= needs
        return self.close(kept)

    def earliest(self, choice: Choice, until: int) -> int:
        """Return the first position at which the power may have failed, if what was acknowledged until then had been.

        What had not even begun by then is not lost.
        """
        kept = [self.settled - 1, *(at for at, _ in self.acknowledgements if at < until)]
        for number, part in enumerate(self.parts):
            if choice.kept & part.mask or choice.torn == number:
                kept.append(part.step.operation.entered)
        return max(kept) + 1

    def kept_ranges(self, number: int, choice: Choice) -> list[Range]:
        """Return which bytes of a pending write are on the disk, as few ranges as possible."""
        part = self.parts[number]
        if choice.torn == number:
            return _joined(choice.ranges)
        return _joined(r for at, r in enumerate(part.ranges) if choice.kept >> (part.first + at) & 1)

    def tree(self, choice: Choice) -> Tree:
        """Return what the disk holds if these bits have reached it."""
        draft = Draft(self.start)
        sizes: dict[int, int] = {}
        for step in self._tail:
            number = self._numbers.get(step.index)
            operations = [step.operation] if number is None else self._what_is_kept(number, choice, sizes)
            for operation in operations:
                draft.apply(operation)
                _grow(sizes, operation, self.start)
        return draft.tree()

    def _what_is_kept(self, number: int, choice: Choice, sizes: dict[int, int]) -> list[Operation]:
        part, operation = self.parts[number], self.parts[number].step.operation
        if not isinstance(operation, Write):
            return [operation] if choice.kept & part.mask else []
        if choice.kept & part.data == part.data:
            return [operation]
        kept: list[Operation] = [piece(operation, r) for r in self.kept_ranges(number, choice)]
        end = operation.offset + len(operation.data)
        if choice.kept & part.size_bit and _size(sizes, operation.inode, self.start) < end:
            # Before the data: nothing that is kept ends beyond it.
            kept.insert(0, Truncate(operation.entered, operation.exited, operation.inode, 0, end))
        return kept


def piece(write: Write, part: Range) -> Write:
    """Return the part of a write that goes to these bytes of its file."""
    start, end = part
    return replace(write, offset=start, data=write.data[start - write.offset : end - write.offset])


def units(write: Write, granularity: int = BLOCK) -> tuple[Range, ...]:
    """Cut a write where its file has a multiple of the granularity (bytes)."""
    start, end = write.offset, write.offset + len(write.data)
    cuts = [start, *range((start // granularity + 1) * granularity, end, granularity), end]
    return tuple(itertools.pairwise(cuts))


def marks(operations: Iterable[Operation], word: str, position: int) -> tuple[tuple[int, str], ...]:
    """Return the tokens of the marks of one word ("ACK", "INV") before a position, and where each of them stands."""
    found = (operation for operation in operations if isinstance(operation, Marked) and operation.entered < position)
    return tuple((mark.entered, mark.text[len(word) + 1 :]) for mark in found if mark.text.split(" ")[0] == word)


def epochs(base: Tree, steps: Sequence[Step], model: Model) -> Iterator[Epoch]:
    """Give the crash positions under a model that does not keep the page cache, in their order."""
    forcing = Forcing(steps, model)
    floor = _Floor(base, steps)
    syncs = sorted(
        (s.operation for s in steps if isinstance(s.operation, Sync | SyncAll) and s.operation.exited != NEVER),
        key=lambda sync: sync.exited,
    )
    operations = [step.operation for step in steps]
    news = [o.entered for o in operations if isinstance(o, Change) or (isinstance(o, Marked) and o.text[:3] == "ACK")]
    end = max((max(o.entered, o.exited if o.exited != NEVER else 0) for o in operations), default=0) + 1
    last: int | None = None
    for sync in [*syncs, None]:
        position = sync.exited if sync else end
        failed = isinstance(sync, Sync) and sync.failed
        # Where nothing was made or acknowledged since the last position, that has all the states of this one.
        if not failed and (last is None or any(last <= entered < position for entered in news)):
            last = position
            tail = floor.raise_to(position, forcing.forced)
            yield Epoch(
                position=position,
                start=floor.tree(),
                tail=tail,
                parts=_parts(tail, forcing.forced, model),
                operations=operations,
                forced=forcing.forced,
                model=model,
                orphans=forcing.orphans,
            )
        if sync:
            forcing.complete(sync)


class _Floor:
    """What is surely on the disk, whatever happens to the operations above it."""

    def __init__(self, base: Tree, steps: Sequence[Step]) -> None:
        self._draft = Draft(base)
        self._coming = [step for step in steps if isinstance(step.operation, Change)]
        self._waiting: list[Step] = []
        for step in self._coming:
            if isinstance(step.operation, MakeFolder | Symlink):
                self._draft.expect(step.operation)

    def tree(self) -> Tree:
        return self._draft.tree()

    def raise_to(self, position: int, forced: set[int]) -> list[Step]:
        """Take in what is forced and depends on nothing pending; return the others that entered before the position."""
        entered = [step for step in self._coming if step.operation.entered < position]
        self._coming = self._coming[len(entered) :]
        waiting: list[Step] = []
        touched: set[object] = set()
        for step in [*self._waiting, *entered]:
            keys = _touches(step.operation)
            if step.index in forced and not keys & touched:
                self._draft.apply(step.operation)
            else:
                touched |= keys
                waiting.append(step)
        self._waiting = waiting
        return list(waiting)


def _touches(operation: Operation) -> set[object]:
    """What an operation changes: the bytes of an inode, or names. What touches nothing in common can change places."""
    if isinstance(operation, Write | Truncate):
        return {operation.inode}
    if isinstance(operation, Rename):
        return {(operation.folder, operation.name), (operation.to_folder, operation.to_name)}
    return set() if isinstance(operation, Sync | SyncAll | Marked) else {(operation.folder, operation.name)}


def _parts(tail: Sequence[Step], forced: set[int], model: Model) -> Iterator[Part]:
    bit = 0
    for step in tail:
        if step.index in forced:
            continue
        ranges = units(step.operation) if isinstance(step.operation, Write) else ()
        sized = model.sizes_before_data and step.grows
        part = Part(step, bit, ranges, 1 << (bit + len(ranges)) if sized else 0)
        bit = part.mask.bit_length()
        yield part


def _joined(ranges: Iterable[Range]) -> list[Range]:
    joined: list[Range] = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _size(sizes: dict[int, int], inode: int, start: Tree) -> int:
    if inode not in sizes:
        content = start.node(inode)
        sizes[inode] = content.size if isinstance(content, Content) else 0
    return sizes[inode]


def _grow(sizes: dict[int, int], operation: Operation, start: Tree) -> None:
    if isinstance(operation, Write):
        sizes[operation.inode] = max(_size(sizes, operation.inode, start), operation.offset + len(operation.data))
    elif isinstance(operation, Truncate):
        sizes[operation.inode] = operation.size
