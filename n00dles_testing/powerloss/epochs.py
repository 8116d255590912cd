"""When the power may fail, and what may then be lost: the pending operations at each crash position, in parts.

The positions are those before each sync returns, and the end. That is enough: what may be on the disk earlier between
two syncs may be there later as well, because an operation that is lost is as one that was not made yet; and later more
has been acknowledged, so more is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from n00dles_testing.powerloss.contents import BLOCK, Content
from n00dles_testing.powerloss.dependencies import Dependencies
from n00dles_testing.powerloss.forcing import Forcing, Unit, is_metadata
from n00dles_testing.powerloss.models import Model
from n00dles_testing.powerloss.operations import (
    NEVER,
    ChangeMode,
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
from n00dles_testing.powerloss.parts import Choice, Part, Range, joined, parts, piece
from n00dles_testing.powerloss.steps import Change, Step
from n00dles_testing.powerloss.tree import Draft, Tree

__all__ = ["Epoch", "epochs", "marks"]


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
        forced: set[Unit],
        model: Model,
        orphans: Mapping[Unit, int],
    ) -> None:
        self.position = position
        self.start = start
        self.parts = tuple(parts)
        self.acknowledgements = marks(operations, "ACK", position)
        self.invocations = marks(operations, "INV", position)
        self.settled = max((operations[index].entered for index, _ in forced), default=-1) + 1
        self.all = sum(part.mask for part in self.parts)
        self.metadata = [part for part in self.parts if is_metadata(part.step.operation)]
        self._numbers = {part.step.index: number for number, part in enumerate(self.parts)}
        self.orders = model.orders_metadata
        self._tail = tail
        self._dependencies = Dependencies(self.parts, model, forced, orphans)

    def legal(self, choice: Choice) -> Choice:
        """Return the legal choice next to this one. A torn write that must be whole is whole."""
        kept = self._dependencies.close(choice.kept)
        if choice.torn is None or kept & self.parts[choice.torn].data:
            return Choice(kept)
        part, refused = self.parts[choice.torn], self._dependencies.refused(choice.torn, kept)
        end = part.step.size if part.size_bit & refused else NEVER
        ranges = tuple(each for each in choice.ranges if not part.on({each[0] // BLOCK}) & refused and each[1] <= end)
        return replace(choice, kept=kept, ranges=ranges) if ranges else Choice(kept)

    def raised(self, kept: int, bits: int) -> int:
        """Return the bits with some more, and with all that these need."""
        return self._dependencies.raised(kept | bits)

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
            return joined([*choice.ranges, *part.settled])
        kept = [r for at, r in enumerate(part.ranges) if choice.kept >> (part.first + at) & 1]
        return joined([*kept, *part.settled])

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
        failed = sync is not None and sync.failed
        # Where nothing was made or acknowledged since the last position, that has all the states of this one.
        if not failed and (last is None or any(last <= entered < position for entered in news)):
            last = position
            tail = floor.raise_to(position, forcing)
            yield Epoch(
                position=position,
                start=floor.tree(),
                tail=tail,
                parts=parts(tail, forcing.forced, model),
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

    def raise_to(self, position: int, forcing: Forcing) -> list[Step]:
        """Take in what is forced and depends on nothing pending; return the others that entered before the position."""
        entered = [step for step in self._coming if step.operation.entered < position]
        self._coming = self._coming[len(entered) :]
        waiting: list[Step] = []
        touched: set[object] = set()
        for step in [*self._waiting, *entered]:
            keys = _touches(step.operation)
            if not keys & touched and forcing.has_forced(step):
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
    if isinstance(operation, ChangeMode):
        return {("permissions", operation.inode)}
    if isinstance(operation, Rename):
        return {(operation.folder, operation.name), (operation.to_folder, operation.to_name)}
    return set() if isinstance(operation, Sync | SyncAll | Marked) else {(operation.folder, operation.name)}


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
