"""Judge a store on what a disk may hold after a power loss, and tell each kind of fault by its smallest cause."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice

from n00dles_testing.powerloss.advice import cause
from n00dles_testing.powerloss.faults_found import Fault, FaultKind
from n00dles_testing.powerloss.models import Model
from n00dles_testing.powerloss.placing import clear, place
from n00dles_testing.powerloss.recording import Recording
from n00dles_testing.powerloss.shrinking import shrink
from n00dles_testing.powerloss.state import Lost, State
from n00dles_testing.powerloss.states import Candidate, candidates
from n00dles_testing.powerloss.telling import Moment, tell

__all__ = ["HANGS", "Judge", "PowerLossFinding", "PowerLossReport", "explore_power_loss"]

_COUNTED = 600
_SECONDS_OF_COUNTING = 1.0
"""So many states that are not judged are counted at most, for so long: whoever waits for a state hears nothing then."""

_FOR_JUDGING = 0.75
"""Once a fault is found, no more states are judged after this part of the time: it must be made smaller as well."""

HANGS = 3
"""After so many states in which the store hangs no other one is tried: each takes all the time that a call may take."""

Judge = Callable[[str, State], Fault | None]
"""Opens the store on the files in the folder, which are those of the state, and says what is wrong. May change them."""


@dataclass(frozen=True, slots=True)
class PowerLossFinding:
    """One kind of fault, with the state that shows it with the fewest lost operations that could be found.

    `words` are one sentence, such as "the rename of `a.tmp` to `a` reached the disk, the data of `a` did not". `when`
    says when the power failed, `fix` what the store has to do. `count` is how many of the states tried have this kind
    of fault. `timeline` is all that happened up to the crash, and what became of it. `cause` are the kinds of lost
    operations, such as "rename in save"; `further` are findings of the same kind of fault with another cause.
    """

    fault: Fault
    state: State
    words: str
    when: str
    count: int
    timeline: tuple[Moment, ...]
    fix: str = ""
    cause: frozenset[str] = frozenset()
    further: tuple[PowerLossFinding, ...] = ()

    @property
    def lost(self) -> tuple[Lost, ...]:
        """What was lost in that state."""
        return self.state.lost


@dataclass(frozen=True, slots=True)
class PowerLossReport:
    """What became of one recording under one model.

    `tried` counts different states that were judged. `at_least` is None if the enumeration came to its end, else how
    many different states there are at least: "sampled `tried` of at least `at_least`". Time was too short if there are
    `missed` ones: so many, at least, without which nothing can be said of the others (see `Candidate`).

    In `hung` states the store did not come back; after `HANGS` of them no others were tried.
    """

    model: Model
    tried: int
    at_least: int | None = None
    findings: tuple[PowerLossFinding, ...] = ()
    seconds: float = 0.0
    missed: int = 0
    hung: int = 0

    def __str__(self) -> str:
        tried = f"{self.tried} states" if self.at_least is None else f"sampled {self.tried} of at least {self.at_least}"
        found = ", ".join(f"{finding.fault.kind} ({finding.count})" for finding in self.findings) or "clean"
        return f"{self.model.name}: {tried}: {found}"


@dataclass(slots=True)
class _Alike:
    """The states with one kind of fault and operations of the same kinds lost, and the one in which least is lost."""

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
    since: int = 0,
    folder: str,
    calls: Mapping[str, str] | None = None,
    causes: int = 1,
    on_state: Callable[[int], None] | None = None,
) -> PowerLossReport:
    """Judge up to `budget` states, and all that are needed, for up to `seconds`; return a finding for each kind.

    Each state is written to `folder` itself, which must be empty or not there, and is taken away after each. A finding
    is shrunk by putting back, one after the other, what was lost, while the same kind of fault stays, within the same
    `seconds`; that is not counted in `tried`. With `since` the power fails at that place in the order of the
    operations, or later. Of one kind of fault so many `causes` are told; `calls` name the kind of each token's call:
    what is lost in one kind of call is another cause than what is lost in another. `on_state` is told how many states
    have been judged, for progress. Raises `ValueError` if the folder holds something.
    """
    if os.path.isdir(folder) and os.listdir(folder):
        raise ValueError(f"{folder} holds something, and states would be written over it; give a folder of its own")
    began = time.monotonic()

    def judged(state: State) -> Fault | None:
        place(state.tree, folder)
        return judge(folder, state)

    calls = calls or {}
    kinds: dict[FaultKind, dict[frozenset[str], _Alike]] = {}
    hung, tried, coming = 0, 0, candidates(recording, model, budget, seed, since=since)
    try:
        while time.monotonic() - began < seconds * (_FOR_JUDGING if kinds else 1) and (candidate := next(coming, None)):
            if hung >= HANGS or (tried >= budget and not candidate.needed):
                coming = chain([candidate], coming)
                break
            if found := judged(candidate.state):
                hung += any(fault.hung for fault in found.all())
                for fault in found.all():
                    alike = kinds.setdefault(fault.kind, {})
                    lost = fault.cause or cause(candidate.state.lost, calls)
                    alike.setdefault(lost, _Alike(candidate, fault)).add(candidate, fault)
            tried += 1
            if on_state:
                on_state(tried)
        more, missed = _left(coming)
        findings = []
        for number, kind in enumerate(kind for kind in FaultKind if kind in kinds):
            left = max(0.0, began + seconds - time.monotonic()) / (len(kinds) - number)
            is_of_hangs = hung >= HANGS and all(alike.fault.hung for alike in kinds[kind].values())
            until = 0.0 if is_of_hangs else time.monotonic() + left
            search = _Causes(recording, model, judged, calls, until)
            findings.append(search.told(kinds[kind], causes))
    finally:
        clear(folder)
    at_least = tried + more if more else None
    return PowerLossReport(model, tried, at_least, tuple(findings), time.monotonic() - began, missed, hung)


def _left(coming: Iterator[Candidate]) -> tuple[int, int]:
    """Count the states that are left, and those of them that are needed, as far as it goes quickly."""
    ends = time.monotonic() + _SECONDS_OF_COUNTING
    more = missed = 0
    for candidate in islice(coming, _COUNTED):
        more += 1
        missed += candidate.needed
        if time.monotonic() > ends:
            break
    return more, missed


@dataclass(slots=True)
class _Causes:
    """Looks for the causes of one kind of fault: one after the other, each in states that no other one explains."""

    recording: Recording
    model: Model
    judged: Callable[[State], Fault | None]
    calls: Mapping[str, str]
    deadline: float

    def told(self, kind: Mapping[frozenset[str], _Alike], most: int) -> PowerLossFinding:
        """Return the finding with the fewest lost operations, with at most `most` - 1 others."""
        found: list[PowerLossFinding] = []
        left = most
        for lost, alike in sorted(kind.items(), key=lambda item: len(item[1].candidate.state.lost)):
            if any(each.cause <= lost for each in found):
                continue
            if not left or (found and time.monotonic() > self.deadline):
                break
            shown = self._shrunk(alike, 1 if left == 1 else 2)
            left -= 1
            if not any(each.cause <= shown.cause for each in found):
                found.append(shown)
        counts = [0] * len(found)
        for lost, alike in kind.items():
            counts[next((at for at, each in enumerate(found) if each.cause <= lost), 0)] += alike.count
        further = tuple(replace(each, count=count) for each, count in zip(found[1:], counts[1:], strict=True))
        return replace(found[0], count=sum(counts), further=further)

    def _shrunk(self, alike: _Alike, parts: int) -> PowerLossFinding:
        ends = time.monotonic() + max(0.0, self.deadline - time.monotonic()) / parts
        seconds = (ends - time.monotonic()) / (1 if alike.fault.smaller is None else 2)
        state, fault = shrink(alike.candidate, alike.fault, self.judged, seconds=seconds)
        if fault.smaller is not None:
            fault = fault.smaller(ends - time.monotonic())
        told = tell(self.recording, self.model, state, fault.kind)
        lost = fault.cause or cause(state.lost, self.calls)
        return PowerLossFinding(
            fault, state, told.words, told.when, alike.count, told.timeline, fault.fix or told.fix, lost
        )
