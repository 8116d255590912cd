"""All the states that a disk may hold after a power loss at any moment of a recording, or a good sample of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from n00dles_testing.powerloss.epochs import Epoch, epochs
from n00dles_testing.powerloss.kills import kills
from n00dles_testing.powerloss.models import Model
from n00dles_testing.powerloss.operations import Write
from n00dles_testing.powerloss.parts import Choice
from n00dles_testing.powerloss.recording import Recording
from n00dles_testing.powerloss.state import Lost, State
from n00dles_testing.powerloss.steps import Step, steps
from n00dles_testing.powerloss.subsets import choices, draw, ends
from n00dles_testing.powerloss.tree import Tree
from n00dles_testing.powerloss.words import lost

__all__ = ["Candidate", "candidates", "state_of", "states"]

MISSES = 10
"""So many choices at random, for each pending unit, may lead to nothing new before no more are drawn."""


def states(recording: Recording, model: Model, budget: int = 600, seed: int = 0) -> Iterator[State]:
    """Give different states, at most `budget` of them; no two have the same files and the same last acknowledgement.

    Each of them is legal under the model. Which of the legal ones are tried, and in which order, follows from the
    recording, the model and the seed alone.
    """
    for candidate in islice(candidates(recording, model, budget, seed), budget):
        yield candidate.state


@dataclass(frozen=True, slots=True)
class Candidate:
    """A state, and how it came about: None for both where the process was killed and the machine stayed up.

    Without those that are `needed`, nothing can be said of all states: the least and the most that the disk may hold at
    each crash position, see `subsets`.
    """

    state: State
    epoch: Epoch | None = None
    choice: Choice | None = None
    needed: bool = False


def candidates(recording: Recording, model: Model, budget: int, seed: int, *, since: int = 0) -> Iterator[Candidate]:
    """Give what `states` gives, and more than the budget if there is more. Those that are needed come first.

    With `since`, the power fails at that place in the order of the operations, or later. Of a killed process as many
    states are needed as the budget has.
    """
    followed = steps(recording.base, recording.operations)
    rng = random.Random(seed)
    if model.keeps_cache:
        seen: set[tuple[bytes, int]] = set()
        for state in kills(recording.base, followed, budget, rng):
            key = (state.tree.digest(), len(state.acknowledged))
            if key not in seen and state.position >= since:
                seen.add(key)
                yield Candidate(state, needed=len(seen) <= budget)
        return
    search = _Search([epoch for epoch in epochs(recording.base, followed, model) if epoch.position >= since])
    for epoch, choice in ends(search.epochs):
        if candidate := search.try_one(epoch, choice, needed=True):
            yield candidate
    for epoch, choice in choices(search.epochs, rng):
        if candidate := search.try_one(epoch, choice):
            yield candidate
    yield from search.at_random(rng)


@dataclass(slots=True)
class _Search:
    """The crash positions, and what has been seen at them."""

    epochs: list[Epoch]
    _choices: set[tuple[int, Choice]] = field(default_factory=set)
    _states: set[tuple[bytes, int]] = field(default_factory=set)

    def try_one(self, epoch: Epoch, choice: Choice, *, needed: bool = False) -> Candidate | None:
        """Return the state of the legal choice next to this one, or None if that has been before."""
        choice = epoch.legal(choice)
        if (epoch.position, choice) in self._choices:
            return None
        self._choices.add((epoch.position, choice))
        tree = epoch.tree(choice)
        key = (tree.digest(), len(epoch.acknowledgements))
        if key in self._states:
            return None
        self._states.add(key)
        return Candidate(state_of(epoch, choice, tree), epoch, choice, needed)

    def at_random(self, rng: random.Random) -> Iterator[Candidate]:
        """Give states at random, the epochs in turns, each until too many choices in a row have led to nothing new."""
        misses = {epoch.position: 0 for epoch in self.epochs if epoch.all}
        while misses:
            for epoch in self.epochs:
                if epoch.position not in misses:
                    continue
                if candidate := self.try_one(epoch, draw(epoch, rng)):
                    misses[epoch.position] = 0
                    yield candidate
                else:
                    misses[epoch.position] += 1
                    if misses[epoch.position] > MISSES * epoch.all.bit_length():
                        del misses[epoch.position]


def state_of(epoch: Epoch, choice: Choice, tree: Tree | None = None, until: int | None = None) -> State:
    """Return the state of a choice, and say what is lost in it. The crash is not later than `until`, if given."""
    tree = epoch.tree(choice) if tree is None else tree
    position = epoch.earliest(choice, epoch.position if until is None else until)
    acknowledged = tuple(token for at, token in epoch.acknowledgements if at < position)
    invoked = tuple(token for at, token in epoch.invocations if at < position)
    return State(tree, acknowledged, invoked, tuple(_missing(epoch, choice, tree, position)), position)


def _missing(epoch: Epoch, choice: Choice, tree: Tree, position: int) -> Iterator[Lost]:
    paths: dict[int, str] | None = None
    for number, part in enumerate(epoch.parts):
        step, operation = part.step, part.step.operation
        if operation.entered >= position:
            return
        if not isinstance(operation, Write):
            if not choice.kept & part.mask:
                yield lost(step)
        elif choice.kept & part.data != part.data:
            if paths is None:
                paths = {inode: path for path, inode in tree.names()}
            gone = _gaps(step, epoch.kept_ranges(number, choice))
            zeros = bool(choice.kept & part.size_bit)
            yield lost(step, gone, path=paths.get(operation.inode, step.path), zeros=zeros)


def _gaps(step: Step, kept: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the bytes of a write that are not kept."""
    write = step.operation
    assert isinstance(write, Write)
    gaps, at = [], write.offset
    for start, end in [*kept, (write.offset + len(write.data),) * 2]:
        if start > at:
            gaps.append((at, start))
        at = end
    return gaps
