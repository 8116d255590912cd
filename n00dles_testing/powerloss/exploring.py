"""Judge a store on what a disk may hold after a power loss, and tell each kind of fault by its smallest cause."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from n00dles_testing.powerloss.faults_found import Fault, FaultKind
from n00dles_testing.powerloss.models import Model
from n00dles_testing.powerloss.recording import Recording
from n00dles_testing.powerloss.shrinking import shrink
from n00dles_testing.powerloss.state import Lost, State
from n00dles_testing.powerloss.states import Candidate, candidates
from n00dles_testing.powerloss.telling import Moment, tell

__all__ = ["Judge", "PowerLossFinding", "PowerLossReport", "explore_power_loss"]

_COUNTED = 600
"""So many states that are not judged are counted at most."""

Judge = Callable[[str, State], Fault | None]
"""Opens the store on the files in the folder, which are those of the state, and says what is wrong. May change them."""


@dataclass(frozen=True, slots=True)
class PowerLossFinding:
    """One kind of fault, with the state that shows it with the fewest lost operations that could be found.

    `words` are one sentence, such as "the rename of `a.tmp` to `a` reached the disk, the data of `a` did not". `when`
    says when the power failed. `count` is how many of the states tried have this kind of fault. `timeline` is all that
    happened up to the crash, and what became of it.
    """

    fault: Fault
    state: State
    words: str
    when: str
    count: int
    timeline: tuple[Moment, ...]

    @property
    def lost(self) -> tuple[Lost, ...]:
        """What was lost in that state."""
        return self.state.lost


@dataclass(frozen=True, slots=True)
class PowerLossReport:
    """What became of one recording under one model.

    `tried` counts different states that were judged. `at_least` is None if the enumeration came to its end, else how
    many different states there are at least: "sampled `tried` of at least `at_least`".
    """

    model: Model
    tried: int
    at_least: int | None = None
    findings: tuple[PowerLossFinding, ...] = ()
    seconds: float = 0.0

    def __str__(self) -> str:
        tried = f"{self.tried} states" if self.at_least is None else f"sampled {self.tried} of at least {self.at_least}"
        found = ", ".join(f"{finding.fault.kind} ({finding.count})" for finding in self.findings) or "clean"
        return f"{self.model.name}: {tried}: {found}"


@dataclass(slots=True)
class _Kind:
    """The states in which one kind of fault was found, and the one of them in which least is lost."""

    candidate: Candidate
    fault: Fault
    count: int = 0

    def add(self, candidate: Candidate, fault: Fault) -> None:
        self.count += 1
        if len(candidate.state.lost) < len(self.candidate.state.lost):
            self.candidate, self.fault = candidate, fault


def explore_power_loss(
    recording: Recording,
    model: Model,
    judge: Judge,
    *,
    budget: int = 600,
    seconds: float = 20.0,
    seed: int = 0,
    folder: str,
    on_state: Callable[[int], None] | None = None,
) -> PowerLossReport:
    """Judge up to `budget` states, for up to `seconds`, and return one finding for each kind of fault.

    Each state is written to `folder` itself, which must be empty or not there, and is taken away after each. A finding
    is shrunk by putting back, one after the other, what was lost, while the same kind of fault stays, for up to
    `seconds` more; that is not counted in `tried`. `on_state` is told how many states have been judged, for progress.
    Raises `ValueError` if the folder holds something.
    """
    if os.path.isdir(folder) and os.listdir(folder):
        raise ValueError(f"{folder} holds something, and states would be written over it; give a folder of its own")
    began = time.monotonic()

    def judged(state: State) -> Fault | None:
        shutil.rmtree(folder, ignore_errors=True)
        state.tree.write_to(folder)
        return judge(folder, state)

    kinds: dict[FaultKind, _Kind] = {}
    tried, coming = 0, candidates(recording, model, budget, seed)
    try:
        while tried < budget and time.monotonic() - began < seconds and (candidate := next(coming, None)):
            if fault := judged(candidate.state):
                kinds.setdefault(fault.kind, _Kind(candidate, fault)).add(candidate, fault)
            tried += 1
            if on_state:
                on_state(tried)
        # Counting takes time as well, and whoever waits for a state hears nothing meanwhile; there may be far more.
        more = sum(1 for _ in islice(coming, min(budget, _COUNTED)))
        found = tuple(
            _finding(kinds[kind], recording, model, judged, seconds / len(kinds)) for kind in FaultKind if kind in kinds
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return PowerLossReport(model, tried, tried + more if more else None, found, time.monotonic() - began)


def _finding(
    kind: _Kind, recording: Recording, model: Model, judged: Callable[[State], Fault | None], seconds: float
) -> PowerLossFinding:
    state, fault = shrink(kind.candidate, kind.fault, judged, seconds=seconds)
    words, when, timeline = tell(recording, model, state)
    return PowerLossFinding(fault, state, words, when, kind.count, timeline)
