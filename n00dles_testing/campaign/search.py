"""Searching a family: draw scenarios until there are enough, count what stands behind each clause, and shrink faults.

Hypothesis draws and shrinks. The search goes on after a fault, so that one broken clause does not hide another; each
clause that was broken is then searched for once more with the same seed, and shrunk. What is drawn again before its
first fault is not lived again, so this costs little more than the shrinking.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from ..strategies import PipelineSpec
from .family import Family, Fault, Judgement, Trial
from .stage import Stage

__all__ = ["Found", "Search", "Tally"]

_SHRINK_SCENARIOS = 600
"""How many scenarios are tried to make one simpler: so what comes of it does not depend on how fast a machine is."""


@dataclass(frozen=True, slots=True)
class Found:
    """A scenario that breaks a clause. `number` says how many scenarios had been tried when it was first met."""

    trial: Trial
    fault: Fault
    judgement: Judgement
    number: int
    shrunk: bool = False


@dataclass(slots=True)
class Tally:
    """What has been tried of a family: scenarios by clause, and the first fault of each clause."""

    scenarios: int = 0
    pipelines: int = 0
    behind: Counter[str] = field(default_factory=Counter)
    found: dict[str, Found] = field(default_factory=dict)
    faulty: Counter[str] = field(default_factory=Counter)
    vacuous: Counter[str] = field(default_factory=Counter)
    hows: Counter[str] = field(default_factory=Counter)


class _EnoughError(BaseException):
    """Ends a search in the middle of a hypothesis run."""


class _BrokenError(AssertionError):
    """Tells hypothesis that the clause it searches for is broken."""


class Search:
    """One search of one family. `until` returns whether to stop; it is asked after each scenario."""

    def __init__(
        self,
        family: Family,
        stage: Stage,
        *,
        seed: int,
        only: frozenset[str] | None = None,
        until: Callable[[], bool] = lambda: False,
        on_trial: Callable[[Trial, Judgement], None] = lambda trial, judgement: None,
    ) -> None:
        self.tally = Tally()
        self.family = family
        self._stage = stage
        self._seed = seed
        self._only = only
        self.until = until
        self._on_trial = on_trial
        self._groups = 0
        self._seen: set[Trial] = set()
        self._specs: set[PipelineSpec] = set()
        self._first_group: dict[str, int] = {}

    def run(self, examples: int) -> None:
        """Try at least `examples` scenarios, unless it is told to stop before."""

        def each(trials: Sequence[Trial]) -> None:
            self._groups += 1
            fresh = self._fresh(trials)
            if not fresh:
                return
            for trial, judgement in self.family.judged(fresh, self._stage):
                self._take(trial, judgement)
                if self.tally.scenarios >= examples or self.until():
                    raise _EnoughError

        with suppress(_EnoughError):
            # More than are needed: some families draw nothing for some pipelines, and what is drawn again is left out.
            _hypothesis(self.family, each, self._seed, 8 * examples, (Phase.generate,))

    def _fresh(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return the trials that were not tried before: hypothesis likes to vary what it has drawn."""
        if not trials or (self.family.is_scouting and trials[0].spec in self._specs):
            return []
        return [trial for trial in dict.fromkeys(trials) if trial not in self._seen]

    def try_all(self, trials: Sequence[Trial]) -> None:
        """Try these scenarios of one pipeline."""
        for trial, judgement in self.family.judged(trials, self._stage):
            self._take(trial, judgement)

    def _take(self, trial: Trial, judgement: Judgement) -> None:
        if trial in self._seen:
            return
        tally = self.tally
        self._seen.add(trial)
        self._specs.add(trial.spec)
        tally.pipelines = len(self._specs)
        if judgement.vacuous:
            tally.vacuous[judgement.vacuous] += 1
        else:
            tally.scenarios += 1
            # What has broken a clause could have: of that there is no better proof.
            behind = {clause for clause, count in judgement.occasions.items() if count > 0}
            tally.behind.update(behind | {fault[0] for fault in judgement.faults})
        for fault in {fault[0]: fault for fault in reversed(judgement.faults)}.values():
            clause = fault[0]
            if self._only is not None and clause not in self._only:
                continue
            tally.faulty[clause] += 1
            if clause not in tally.found:
                tally.found[clause] = Found(trial, fault, judgement, tally.scenarios)
                self._first_group[clause] = self._groups
        self._on_trial(trial, judgement)

    def shrink(
        self, clause: str, *, seconds: float | None = None, scenarios: int = _SHRINK_SCENARIOS, enough: int = 0
    ) -> Found:
        """Return the simplest scenario that breaks `clause`; the one that was found if it cannot be made simpler.

        At most so many `scenarios` are tried for that, and, if that is said, for about so many `seconds`. A pipeline of
        `enough` nodes, or fewer, is simple enough.
        """
        begun = time.monotonic()

        def effort(share: float, until: float) -> _Effort:
            return _Effort(int(scenarios * share), None if seconds is None else begun + seconds * until)

        best = self._simplest(self.tally.found[clause], clause, effort(0.4, until=0.4), enough)
        if len(best.trial.spec.nodes()) > enough:
            other = self._by_hypothesis(clause, effort(0.4, until=0.8))
            if other is not None:
                other = self._simplest(other, clause, effort(0.2, until=1), enough)
                best = min(best, other, key=lambda found: found.trial.size)
        return best

    def _by_hypothesis(self, clause: str, effort: _Effort) -> Found | None:
        """Search once more with the same seed, and have hypothesis shrink what it meets."""
        best: Found | None = None
        first = self._first_group[clause]
        groups = 0

        def each(trials: Sequence[Trial]) -> None:
            nonlocal best, groups
            groups += 1
            if groups < first:
                return
            for trial, judgement in self.family.judged(trials, self._stage):
                effort.take()
                fault = next((fault for fault in judgement.faults if fault[0] == clause), None)
                if fault is not None:
                    if best is None or trial.size <= best.trial.size:
                        best = Found(trial, fault, judgement, self.tally.found[clause].number, shrunk=True)
                    raise _BrokenError(clause)

        # That it is broken is known; hypothesis says so at the end, or that it could not repeat it.
        with suppress(_EnoughError, Exception):
            _hypothesis(self.family, each, self._seed, first + 50, (Phase.generate, Phase.shrink))
        return best

    def _simplest(self, best: Found, clause: str, effort: _Effort, enough: int) -> Found:
        """Take the simpler scenario as long as there is one that breaks the clause too."""
        with suppress(_EnoughError):
            while len(best.trial.spec.nodes()) > enough:
                plainer = self._plainer(best, clause, effort)
                if plainer is None:
                    break
                best = plainer
        return best

    def _plainer(self, best: Found, clause: str, effort: _Effort) -> Found | None:
        """Return the first scenario that a person would rather read, and that breaks `clause` too."""
        for trials in self.family.plainer(best.trial):
            for tried, judgement in self.family.judged(trials, self._stage):
                effort.take()
                fault = next((fault for fault in judgement.faults if fault[0] == clause), None)
                if fault is not None and (tried in trials or tried.size < best.trial.size):
                    return Found(tried, fault, judgement, best.number, shrunk=True)
        return None


@dataclass(slots=True)
class _Effort:
    """How much more may be tried."""

    left: int
    ends: float | None

    def take(self) -> None:
        """Count one scenario. Raises `_EnoughError` if there has been enough of them, or no time is left."""
        self.left -= 1
        if self.left < 0 or (self.ends is not None and time.monotonic() > self.ends):
            raise _EnoughError


def _hypothesis(family: Family, each: Callable[[Any], None], number: int, most: int, phases: tuple[Phase, ...]) -> None:
    @seed(number)
    @settings(
        max_examples=max(1, most),
        database=None,
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(family.groups())
    def trials_of(trials: Sequence[Trial]) -> None:
        each(trials)

    trials_of()
