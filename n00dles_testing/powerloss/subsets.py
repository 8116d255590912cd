"""Which of the many choices at a crash position are tried, and in which order.

All of them would be two to the number of pending units. Stores break when one thing is on the disk without another one
that was made before it, so prefixes, prefixes without one earlier operation, and torn writes come first; the pairs of
end and omission are those of ALICE (Pillai et al., OSDI 2014).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from n00dles_testing.powerloss.epochs import SECTOR, Choice, Epoch, Part, Range, units
from n00dles_testing.powerloss.operations import Write

__all__ = ["choices", "draw"]

MANY = 40
"""More pending operations than this, as in a store that never syncs, are sampled."""

FEW = 8
"""With up to this many bits, all choices are tried."""


def choices(epochs: Sequence[Epoch], rng: random.Random) -> Iterator[tuple[Epoch, Choice]]:
    """Give all choices but those at random; the epochs in turns, so that a small budget gets to them all."""
    yield from _in_turns([(epoch, _ends(epoch)) for epoch in epochs])
    yield from _in_turns([(epoch, rule) for epoch in epochs for rule in _prefixes(epoch, rng)])
    yield from _in_turns([(epoch, rule) for epoch in epochs for rule in _units(epoch)])


def draw(epoch: Epoch, rng: random.Random) -> Choice:
    """Return a choice at random: names up to some point or any, and data from hardly any to almost all."""
    density = rng.choice((0.1, 0.5, 0.9))
    ordered = rng.random() < 0.5  # noqa: PLR2004 - one half
    names = rng.randrange(len(epoch.metadata) + 1)
    kept = 0
    for bit in range(epoch.all.bit_length()):
        kept |= (rng.random() < density) << bit
    for number, part in enumerate(epoch.metadata):
        if ordered or epoch.orders:
            kept = kept | part.mask if number < names else kept & ~part.mask
    return Choice(kept)


def _in_turns(queues: Sequence[tuple[Epoch, Iterator[Choice]]]) -> Iterator[tuple[Epoch, Choice]]:
    for row in zip_longest(*(queue for _, queue in queues)):
        for (epoch, _), choice in zip(queues, row, strict=True):
            if choice is not None:
                yield epoch, choice


def _ends(epoch: Epoch) -> Iterator[Choice]:
    """Nothing and everything; all names and no data, all data and no names."""
    names = sum(part.mask for part in epoch.metadata)
    yield from map(Choice, (0, epoch.all, names, epoch.all & ~names))


def _prefixes(epoch: Epoch, rng: random.Random) -> Iterator[Iterator[Choice]]:
    """The operations up to each, without an earlier one of them, and with the last one of them torn."""
    order = list(range(len(epoch.parts)))
    if len(order) > MANY:
        rng.shuffle(order)
        pairs = [(end, rng.randrange(end)) for end in rng.choices(range(1, len(order)), k=4 * len(order))]
    else:
        pairs = [(end, omitted) for end in order for omitted in range(end)]
    yield iter([Choice(_up_to(epoch, end)) for end in order])
    yield (choice for pair in pairs for choice in _omissions(epoch, *pair))
    yield (choice for end in order for choice in _torn(epoch, end))


def _units(epoch: Epoch) -> Iterator[Iterator[Choice]]:
    """Everything but one unit, one unit alone, and the last write of each prefix torn within a unit; all, if few."""
    if epoch.all.bit_length() <= FEW:
        yield map(Choice, range(epoch.all + 1))
    if len(epoch.parts) <= MANY:
        yield _single(epoch)
        yield (choice for end in range(len(epoch.parts)) for choice in _torn(epoch, end, SECTOR))


def _up_to(epoch: Epoch, end: int) -> int:
    """All bits up to and with a part."""
    return (1 << epoch.parts[end].mask.bit_length()) - 1


def _omissions(epoch: Epoch, end: int, omitted: int) -> Iterator[Choice]:
    part, prefix = epoch.parts[omitted], _up_to(epoch, end)
    yield Choice(prefix & ~part.mask)
    if part.size_bit:
        yield Choice(prefix & ~part.data)
    if omitted == end - 1:
        names = sum(part.mask for part in epoch.metadata)
        yield Choice(prefix & names)


def _torn(epoch: Epoch, end: int, granularity: int | None = None) -> Iterator[Choice]:
    """Keep the first unit, the last one, all but the last, or the first and last; also with zeros for the others."""
    part, operation = epoch.parts[end], epoch.parts[end].step.operation
    if not isinstance(operation, Write):
        return
    others = _up_to(epoch, end) & ~part.mask
    if part.size_bit and granularity is None:
        yield Choice(others | part.size_bit)
    ranges = units(operation, granularity) if granularity else part.ranges
    if len(ranges) > 1:
        for kept in dict.fromkeys((ranges[:1], ranges[-1:], ranges[:-1], (ranges[0], ranges[-1]))):
            for size in (0, part.size_bit) if part.size_bit else (0,):
                yield _keeping(others | size, end, part, kept)


def _keeping(others: int, number: int, part: Part, kept: tuple[Range, ...]) -> Choice:
    if all(found in part.ranges for found in kept):
        return Choice(others | sum(1 << (part.first + part.ranges.index(found)) for found in kept))
    return Choice(others, number, kept)


def _single(epoch: Epoch) -> Iterator[Choice]:
    names = sum(part.mask for part in epoch.metadata)
    for part in epoch.parts:
        for at in range(max(len(part.ranges), 1)):
            bit = 1 << (part.first + at)
            yield Choice(epoch.all & ~bit)
            yield Choice(epoch.all & ~bit & ~part.size_bit)
            yield Choice(bit)
            yield Choice(bit | names)
