"""What a killed process leaves while the machine stays up: all that it had done, up to or within some system call."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from n00dles_testing.powerloss.contents import BLOCK
from n00dles_testing.powerloss.epochs import marks
from n00dles_testing.powerloss.operations import Write
from n00dles_testing.powerloss.parts import Range, piece, units
from n00dles_testing.powerloss.state import State
from n00dles_testing.powerloss.steps import Change, Step
from n00dles_testing.powerloss.tree import Draft, Tree
from n00dles_testing.powerloss.words import lost

__all__ = ["kills"]

_Point = tuple[int, Range | None]
"""So many operations were done, and of the next one these bytes were written."""


def kills(base: Tree, steps: Sequence[Step], budget: int, rng: random.Random) -> Iterator[State]:
    """Give the state before each operation and at the end, and with each long write cut where a page ends.

    A kill is seen between two system calls, or within a write of more than one page. If there are more than the budget,
    as many come first as the budget, some from everywhere, and calls before cuts; and then as many again.
    """
    changes = [step for step in steps if isinstance(step.operation, Change)]
    points: list[_Point] = [(number, None) for number in range(len(changes) + 1)]
    cuts: list[_Point] = [(number, part) for number, step in enumerate(changes) for part in _cuts(step)]
    if len(points) + len(cuts) > budget:
        rng.shuffle(points)
        rng.shuffle(cuts)
    points += cuts
    for some in (points[:budget], points[budget : 2 * budget]):
        yield from _states(base, steps, changes, sorted(some, key=lambda point: (point[0], point[1] or (0, 0))))


def _cuts(step: Step) -> Iterator[Range]:
    operation = step.operation
    if isinstance(operation, Write) and len(operation.data) > BLOCK:
        for start, _ in units(operation)[1:]:
            yield operation.offset, start


def _states(base: Tree, steps: Sequence[Step], changes: Sequence[Step], points: Sequence[_Point]) -> Iterator[State]:
    operations = [step.operation for step in steps]
    end = max((operation.entered for operation in operations), default=0) + 1
    acknowledgements, invocations = (marks(operations, word, end) for word in ("ACK", "INV"))
    draft, done = Draft(base), 0
    for change in changes:
        draft.expect(change.operation)
    for number, part in points:
        while done < number:
            draft.apply(changes[done].operation)
            done += 1
        step = changes[number] if number < len(changes) else None
        latest = min(step.operation.exited, end) if step else end
        acknowledged = tuple(token for at, token in acknowledgements if at < latest)
        invoked = tuple(token for at, token in invocations if at < latest)
        if step and part:
            write = step.operation
            assert isinstance(write, Write)
            rest = lost(step, [(part[1], write.offset + len(write.data))])
            tree = draft.tree().after([piece(write, part)])
            yield State(tree, acknowledged, invoked, (rest,), write.entered + 1)
        else:
            yield State(draft.tree(), acknowledged, invoked, (), step.operation.entered if step else end)
