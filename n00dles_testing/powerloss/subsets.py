"""Which of the many choices at a crash position are tried, and in which order.

All of them would be two to the number of pending units. Stores break when one thing is on the disk without another one
that was made before it, so there are prefixes, prefixes without one earlier operation, and torn writes; the pairs of
end and omission are those of ALICE (Pillai et al., OSDI 2014).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from n00dles_testing.powerloss.epochs import Epoch
from n00dles_testing.powerloss.parts import SECTOR, Choice, Part, Range, cut

__all__ = ["choices", "draw", "ends"]

T = TypeVar("T")

MANY = 40
"""More pending operations than this, as in a store that never syncs, are sampled."""

FEW = 8
"""With up to this many bits, all choices are tried."""


def ends(epochs: Sequence[Epoch]) -> Iterator[tuple[Epoch, Choice]]:
    """Give the ends of each epoch: nothing and everything."""
    for epoch in epochs:
        yield epoch, Choice(0)
        yield epoch, Choice(epoch.all)


def choices(epochs: Sequence[Epoch], rng: random.Random) -> Iterator[tuple[Epoch, Choice]]:
    """Give all choices that follow a rule, each once or more often, in an order that is drawn.

    All epochs and all rules get as much of a small budget, wherever they are, and what they get is a sample of theirs:
    with another seed others are tried.
    """
    queues = [(epoch, rule) for epoch in epochs for rule in (*_prefixes(epoch, rng), *_units(epoch, rng))]
    while queues:
        rng.shuffle(queues)
        left = []
        for epoch, rule in queues:
            if (choice := next(rule, None)) is not None:
                yield epoch, choice
                left.append((epoch, rule))
        queues = left


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


def _prefixes(epoch: Epoch, rng: random.Random) -> Iterator[Iterator[Choice]]:
    """All names and no data, or all data and no names; prefixes, also without an earlier one, or with a torn end."""
    order = _drawn(range(len(epoch.parts)), rng)
    if len(order) > MANY:
        pairs = [(end, rng.randrange(end)) for end in rng.choices(range(1, len(order)), k=4 * len(order))]
    else:
        pairs = _drawn([(end, omitted) for end in order for omitted in range(end)], rng)
    yield iter(_drawn(_sides(epoch), rng))
    yield (Choice(_up_to(epoch, end)) for end in order)
    yield (choice for pair in pairs for choice in _drawn(_omissions(epoch, *pair), rng))
    yield (choice for end in order for choice in _drawn(_torn(epoch, end), rng))


def _units(epoch: Epoch, rng: random.Random) -> Iterator[Iterator[Choice]]:
    """Everything but one unit, one unit alone, and the last write of each prefix torn within a unit; all, if few."""
    if epoch.all.bit_length() <= FEW:
        yield map(Choice, _drawn(range(epoch.all + 1), rng))
    if len(epoch.parts) <= MANY:
        bits = [(part, part.first + at) for part in epoch.parts for at in range(max(len(part.ranges), 1))]
        yield (choice for part, at in _drawn(bits, rng) for choice in _drawn(_single(epoch, part, 1 << at), rng))
        order = _drawn(range(len(epoch.parts)), rng)
        yield (choice for end in order for choice in _drawn(_torn_pages(epoch, end), rng))


def _drawn(some: Iterable[T], rng: random.Random) -> list[T]:
    """Return the same in an order that is drawn."""
    found = list(some)
    rng.shuffle(found)
    return found


def _sides(epoch: Epoch) -> Iterator[Choice]:
    names = sum(part.mask for part in epoch.metadata)
    yield Choice(names)
    yield Choice(epoch.all & ~names)


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


def _torn(epoch: Epoch, end: int) -> Iterator[Choice]:
    """Keep some of the units of a write, also with zeros for the others."""
    part, others = epoch.parts[end], _up_to(epoch, end) & ~epoch.parts[end].mask
    if part.size_bit:
        yield Choice(others | part.size_bit)
    for kept in _some(part.ranges):
        for size in (0, part.size_bit) if part.size_bit else (0,):
            yield _keeping(others | size, end, part, kept)


def _torn_pages(epoch: Epoch, end: int) -> Iterator[Choice]:
    """Keep some sectors of a write.

    A file has grown once a whole page of it is on the disk, or before. So of a page that is torn none of what is beyond
    the old end is seen, unless the size is there.
    """
    part, others = epoch.parts[end], _up_to(epoch, end) & ~epoch.parts[end].mask
    sectors = tuple(sector for unit in part.ranges for sector in cut(unit, SECTOR))
    if part.step.grows:
        for kept in _some(sectors) if part.size_bit else ():
            yield _keeping(others | part.size_bit, end, part, kept)
        size = part.step.size
        sectors = tuple((start, min(until, size)) for start, until in sectors if start < size)
    for kept in _some(sectors):
        yield _keeping(others, end, part, kept)


def _some(ranges: tuple[Range, ...]) -> Iterable[tuple[Range, ...]]:
    """Return the first of several, the last one, all but the last, and the first and last."""
    if len(ranges) < 2:  # noqa: PLR2004 - of one there is no part
        return ()
    return dict.fromkeys((ranges[:1], ranges[-1:], ranges[:-1], (ranges[0], ranges[-1])))


def _keeping(others: int, number: int, part: Part, kept: tuple[Range, ...]) -> Choice:
    if all(found in part.ranges for found in kept):
        return Choice(others | sum(1 << (part.first + part.ranges.index(found)) for found in kept))
    return Choice(others, number, kept)


def _single(epoch: Epoch, part: Part, bit: int) -> Iterator[Choice]:
    names = sum(part.mask for part in epoch.metadata)
    yield Choice(epoch.all & ~bit)
    yield Choice(epoch.all & ~bit & ~part.size_bit)
    yield Choice(bit)
    yield Choice(bit | names)
