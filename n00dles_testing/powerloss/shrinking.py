"""From a state that shows a fault to one that shows the same kind with the fewest lost operations."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from n00dles_testing.powerloss.epochs import Epoch
from n00dles_testing.powerloss.faults_found import Fault
from n00dles_testing.powerloss.parts import Choice
from n00dles_testing.powerloss.state import State
from n00dles_testing.powerloss.states import Candidate, state_of

__all__ = ["CALLS", "shrink"]

EARLIER = 12
"""So many earlier crashes are tried."""

CALLS = 60
"""A judge is asked at most so often for one finding."""

_OF_A_HANG = 20
"""So many of these calls stand for one that hangs: it takes its time, and hardly ever another cause is found by it."""


def shrink(
    candidate: Candidate, fault: Fault, judged: Callable[[State], Fault | None], *, seconds: float = 20.0
) -> tuple[State, Fault]:
    """Put back what was lost, as long as a fault of the same kind is found: operations, then units of writes.

    The crash comes as early as it can. What is lost in the result is needed for the fault, each by itself, if `CALLS`
    and `seconds` sufficed: a state in which the store hangs takes its time. Returns the state and the fault found in
    it. A state without a choice, as after a kill, is as small as it can be.
    """
    if candidate.epoch is None or candidate.choice is None:
        return candidate.state, fault
    search = _Search(candidate.epoch, candidate.choice, candidate.state, fault, judged, time.monotonic() + seconds)
    search.come_earlier()
    search.put_back([part.mask for part in candidate.epoch.parts])
    search.put_back([1 << (part.first + at) for part in candidate.epoch.parts for at in range(len(part.ranges))])
    search.come_earlier()
    return search.state, search.fault


@dataclass(slots=True)
class _Search:
    epoch: Epoch
    choice: Choice
    state: State
    fault: Fault
    judged: Callable[[State], Fault | None]
    deadline: float
    calls: int = CALLS
    known: set[tuple[bytes, int]] = field(default_factory=set)

    def come_earlier(self) -> None:
        """Let the power fail earlier: what comes after that, and what is acknowledged after that, is none of it."""
        begun = [part.step.operation.entered for part in self.epoch.parts]
        places = sorted({self.epoch.settled, *(at + 1 for at in begun), *(at + 1 for at, _ in self.acknowledgements)})
        places = [place for place in places if self.epoch.settled <= place < self.state.position]
        for place in places[:EARLIER] if len(places) <= EARLIER else places[:: len(places) // EARLIER + 1]:
            kept = self.choice.kept
            for part in self.epoch.parts:
                if part.step.operation.entered >= place:
                    kept &= ~part.mask
            torn = self.choice.torn
            if torn is not None and self.epoch.parts[torn].step.operation.entered >= place:
                torn = None
            if self._try(Choice(kept, torn, self.choice.ranges if torn is not None else ()), place):
                return

    def put_back(self, pieces: Sequence[int]) -> None:
        """Put back many pieces at once, then fewer, then each by itself until none can be put back any more."""
        size = len(pieces)
        while size:
            missing = [bits for bits in pieces if bits & ~self.choice.kept and self._is_before(bits)]
            size = min(size, len(missing))
            # Later operations first: they are less often the cause.
            progress = [self._raise(missing[max(0, at - size) : at]) for at in range(len(missing), 0, -size or -1)]
            if size != 1 or not any(progress):
                size //= 2

    @property
    def acknowledgements(self) -> Sequence[tuple[int, str]]:
        """Those before the crash."""
        return [(at, token) for at, token in self.epoch.acknowledgements if at < self.state.position]

    def _is_before(self, bits: int) -> bool:
        part = next(part for part in self.epoch.parts if part.mask & bits)
        return part.step.operation.entered < self.state.position

    def _raise(self, pieces: Sequence[int]) -> bool:
        bits = 0
        for piece in pieces:
            bits |= piece
        kept = self.epoch.raised(self.choice.kept, bits)
        return self._try(Choice(kept, self.choice.torn, self.choice.ranges), self.state.position)

    def _try(self, choice: Choice, until: int) -> bool:
        """Go on from a choice if it shows the same fault, and loses no more."""
        choice = self.epoch.legal(choice)
        if (
            self.calls <= 0
            or time.monotonic() > self.deadline
            or (choice == self.choice and until >= self.state.position)
        ):
            return False
        state = state_of(self.epoch, choice, until=until)
        key = (state.tree.digest(), len(state.acknowledged))
        if len(state.lost) > len(self.state.lost) or key in self.known:
            return False
        self.known.add(key)
        found = self.judged(state)
        self.calls -= _OF_A_HANG if found and found.hung else 1
        alike = next((each for each in found.all() if each.kind is self.fault.kind), None) if found else None
        if alike is None:
            return False
        self.choice, self.state, self.fault = choice, state, alike
        return True
