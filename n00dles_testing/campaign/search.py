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

_SHRINK_SECONDS = 20.0


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
            tally.behind.update({clause: 1 for clause, count in judgement.occasions.items() if count > 0})
        for fault in {fault[0]: fault for fault in reversed(judgement.faults)}.values():
            clause = fault[0]
            if self._only is not None and clause not in self._only:
                continue
            tally.faulty[clause] += 1
            if clause not in tally.found:
                tally.found[clause] = Found(trial, fault, judgement, tally.scenarios)
                self._first_group[clause] = self._groups
        self._on_trial(trial, judgement)

    def shrink(self, clause: str, *, seconds: float = _SHRINK_SECONDS) -> Found:
        """Return the simplest scenario that breaks `clause`; the one that was found if it cannot be made simpler."""
        best = self.tally.found[clause]
        first = self._first_group[clause]
        groups = 0
        ends = time.monotonic() + seconds
        shrunk_by = time.monotonic() + seconds * 0.7

        def each(trials: Sequence[Trial]) -> None:
            nonlocal best, groups
            groups += 1
            if groups < first:
                return
            if time.monotonic() > shrunk_by:
                raise _EnoughError
            for trial, judgement in self.family.judged(trials, self._stage):
                fault = next((fault for fault in judgement.faults if fault[0] == clause), None)
                if fault is not None:
                    if not best.shrunk or trial.size <= best.trial.size:
                        best = Found(trial, fault, judgement, best.number, shrunk=True)
                    raise _BrokenError(clause)

        # That it is broken is known; hypothesis says so at the end, or that it could not repeat it.
        with suppress(_EnoughError, Exception):
            _hypothesis(self.family, each, self._seed, first + 50, (Phase.generate, Phase.shrink))
        plainer: Found | None = best
        while plainer is not None and time.monotonic() < ends:
            best, plainer = plainer, self._plainer(plainer, clause)
        return best

    def _plainer(self, best: Found, clause: str) -> Found | None:
        """Return the first scenario that a person would rather read, and that breaks `clause` too."""
        for trial in self.family.plainer(best.trial):
            for tried, judgement in self.family.judged([trial], self._stage):
                fault = next((fault for fault in judgement.faults if fault[0] == clause), None)
                if tried == trial and fault is not None:
                    return Found(trial, fault, judgement, best.number, shrunk=True)
        return None


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
