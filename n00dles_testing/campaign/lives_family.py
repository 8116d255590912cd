"""The main family: a generated pipeline, disturbed once in each of up to four lives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from ..crash.points import How, Plan, Point
from ..strategies import FanOutSpec, NodeSpec, PipelineSpec
from ..strategies.spec import StepSpec, step_name
from .family import Judgement, Trial
from .judgement import Subject
from .plans import kills_of, plans_of
from .simpler import simpler
from .stage import Stage
from .subjects import specs

__all__ = ["LivesFamily", "plan_of"]


class LivesFamily:
    """Kills, cancellations, timeouts, interrupts and store faults, on a store in memory or in a file.

    So many `plans` share a pipeline and its undisturbed run: the more there are, the faster, and the fewer pipelines.
    """

    clauses = frozenset(f"E{number:02}" for number in (*range(1, 8), *range(10, 16), 17, 18))

    def __init__(self, *, plans: int, share: float, on_disk: bool = False, is_scouting: bool = False) -> None:
        self.name = "lives on disk" if on_disk else "lives"
        self.share = share
        self.on_disk = on_disk
        self.is_scouting = is_scouting
        self._plans = plans

    def groups(self) -> st.SearchStrategy[Sequence[Trial]]:
        """Draw a pipeline, and up to so many plans for it."""
        return _groups(self.name, self._plans)

    def judged(self, trials: Sequence[Trial], stage: Stage) -> Iterator[tuple[Trial, Judgement]]:
        """Play the pipeline undisturbed, and then as each plan says."""
        subject = Subject(trials[0].spec, stage)
        yield Trial(self.name, subject.spec), subject.undisturbed_judged()
        for trial in trials:
            if trial.rest:
                yield trial, subject.judged(stage.play(subject.spec, plan_of(trial), on_disk=self.on_disk))

    def is_sound(self, trial: Trial) -> bool:
        """Whether each of its lives is disturbed at a moment that there can be."""
        subjects = {"", *(node.name for node in trial.spec.nodes()), *_groups_of(trial.spec.steps)}
        if len(trial.rest) > _MOST_POINTS:
            return False
        return all(point.subject in subjects and point.occurrence <= _MOST_TIMES for point in plan_of(trial))

    def plainer(self, trial: Trial) -> Iterator[Sequence[Trial]]:
        """Yield trials of simpler pipelines, and single kills, in the order in which a run passes them."""
        names = {node.name for node in trial.spec.nodes()}
        fewer: list[PipelineSpec] = []
        for less in simpler(trial.spec):
            gone = names - {node.name for node in less.nodes()}
            rest = tuple(str(point) for point in plan_of(trial) if point.subject not in gone)
            if rest or not trial.rest:
                yield [replace(trial, spec=less, rest=rest)]
            if gone:
                fewer.append(less)
        if len(trial.rest) > 1 or any(point.how is not How.KILL for point in plan_of(trial)):
            yield _killed(trial, trial.spec)
        # Where its plan leads nowhere any more, another one may: sooner in a pipeline that has not lost much.
        for less in reversed(fewer) if trial.rest else ():
            yield _killed(trial, less)

    def told(self, trial: Trial) -> Mapping[str, Any]:
        """Return where its lives are disturbed."""
        return {"plan": ", then ".join(point.label for point in plan_of(trial)) or "undisturbed"}


def _killed(trial: Trial, spec: PipelineSpec) -> Sequence[Trial]:
    return [replace(trial, spec=spec, rest=(str(point),)) for point in kills_of(spec)]


_MOST_POINTS = 8
_MOST_TIMES = 100


def _groups_of(steps: Iterable[StepSpec]) -> Iterator[str]:
    for step in steps:
        yield step_name(step)
        if not isinstance(step, NodeSpec):
            yield from _groups_of(step.members if isinstance(step, FanOutSpec) else step.steps)


def plan_of(trial: Trial) -> Plan:
    """Return the plan of a trial of this family."""
    return tuple(map(Point.parse, trial.rest))


@st.composite
def _groups(draw: st.DrawFn, name: str, plans: int) -> Sequence[Trial]:
    spec = draw(specs())
    return [Trial(name, spec, tuple(map(str, plan))) for plan in draw(plans_of(spec, most=plans))]
