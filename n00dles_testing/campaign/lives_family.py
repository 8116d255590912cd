"""The main family: a generated pipeline, disturbed once in each of up to four lives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from ..crash.points import How, Plan, Point
from .family import Judgement, Trial
from .judgement import Subject
from .plans import kills_of, plans_of
from .stage import Stage
from .subjects import specs

__all__ = ["LivesFamily", "plan_of"]

_PLANS = 6
"""How many plans share one undisturbed run."""


class LivesFamily:
    """Kills, cancellations, timeouts, interrupts and store faults, on a store in memory or in a file."""

    clauses = frozenset(f"E{number:02}" for number in (*range(1, 8), *range(10, 16), 17, 18))

    def __init__(self, *, on_disk: bool = False, share: float = 1.0) -> None:
        self.name = "lives on disk" if on_disk else "lives"
        self.share = share
        self.on_disk = on_disk

    def groups(self) -> st.SearchStrategy[Sequence[Trial]]:
        """Draw a pipeline, and up to so many plans for it."""
        return _groups(self.name)

    def judged(self, trials: Sequence[Trial], stage: Stage) -> Iterator[tuple[Trial, Judgement]]:
        """Play the pipeline undisturbed, and then as each plan says."""
        subject = Subject(trials[0].spec, stage)
        yield Trial(self.name, subject.spec), subject.judged(subject.undisturbed)
        for trial in trials:
            if trial.rest:
                yield trial, subject.judged(stage.play(subject.spec, plan_of(trial), on_disk=self.on_disk))

    def plainer(self, trial: Trial) -> Iterator[Trial]:
        """Yield single kills, in the order in which a run passes them, if there is more to the plan of `trial`."""
        if len(trial.rest) > 1 or any(point.how is not How.KILL for point in plan_of(trial)):
            for point in kills_of(trial.spec):
                yield replace(trial, rest=(str(point),))

    def told(self, trial: Trial) -> Mapping[str, Any]:
        """Return where its lives are disturbed."""
        return {"plan": ", then ".join(point.label for point in plan_of(trial)) or "undisturbed"}


def plan_of(trial: Trial) -> Plan:
    """Return the plan of a trial of this family."""
    return tuple(map(Point.parse, trial.rest))


@st.composite
def _groups(draw: st.DrawFn, name: str) -> Sequence[Trial]:
    spec = draw(specs())
    return [Trial(name, spec, tuple(map(str, plan))) for plan in draw(plans_of(spec, most=_PLANS))]
