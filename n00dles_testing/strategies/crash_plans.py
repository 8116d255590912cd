"""Crash plans: where each life of a run dies, drawn so that every death can really happen.

    @given(st.data())
    def test_a_run_survives(data):
        spec = data.draw(pipelines(failures=False))
        plan = data.draw(crash_plans(spec))        # as in (during:b, run-started, after-save:c)

A life can only die at a point that it passes, and which those are depends on where the lives before it have died: a
node whose output is stored is not called again. What depends on which member of a fan-out is faster is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from hypothesis import strategies as st

from ..crash.points import Kind, Point
from .oracle import Prediction, predict
from .spec import BranchSpec, FanOutSpec, NestedSpec, NodeSpec, PipelineSpec, StepSpec, step_name

__all__ = ["Moment", "crash_plans", "moments", "moments_after"]

MOST_LIVES = 4

Place: TypeAlias = tuple[int | str, ...]
"""Where in a pipeline: positions in chains are numbers, names of members of fan-outs are texts."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A point that a life passes. `is_stored` says that the output of its node is stored by then."""

    point: Point
    place: Place
    is_stored: bool = False

    def is_before(self, other: Moment) -> bool:
        """Whether this is passed before `other` in every run; members of one fan-out go side by side."""
        if not self.place:
            return bool(other.place)
        for mine, its in zip(self.place, other.place, strict=False):
            if mine != its:
                return isinstance(mine, int) and isinstance(its, int) and mine < its
        return False


def crash_plans(pipeline: PipelineSpec, *, max_lives: int = MOST_LIVES) -> st.SearchStrategy[tuple[Point, ...]]:
    """Draw where up to `max_lives` lives of a run of `pipeline` are killed, one point a life, at least one.

    The life after the last of them is to be left alone. Shrinks to fewer lives, and to earlier points. Raises
    `ValueError` for fewer lives than one.
    """
    if max_lives < 1:
        raise ValueError(f"max_lives={max_lives} leaves no life to be killed; 1 is the least.")
    return _plans(tuple(moments(predict(pipeline), pipeline)), max_lives)


@st.composite
def _plans(draw: st.DrawFn, passed: tuple[Moment, ...], max_lives: int) -> tuple[Point, ...]:
    plan: list[Point] = []
    for _ in range(max_lives):
        died = draw(st.sampled_from(draw(st.sampled_from(_by_place(passed)))))
        plan.append(died.point)
        passed = moments_after(passed, died)
        if not draw(_CONTINUES):
            break
    return tuple(plan)


def _by_place(passed: tuple[Moment, ...]) -> list[list[Moment]]:
    """Return the moments of each place together, first attempts first: so an earlier place is as good, and simpler."""
    places: dict[Place, list[Moment]] = {}
    for each in sorted(passed, key=lambda moment: moment.point.occurrence):
        places.setdefault(each.place, []).append(each)
    return [places[place] for place in dict.fromkeys(each.place for each in passed)]


_CONTINUES = st.booleans()


def moments(prediction: Prediction, pipeline: PipelineSpec) -> list[Moment]:
    """Return the moments that an undisturbed first life certainly passes, in an order that it may have."""
    found = [Moment(Point(Kind.RUN_STARTED), ())]
    found += _of_chain(pipeline.steps, (), prediction)
    if prediction.finishes:
        found.append(Moment(Point(Kind.RUN_FINISHED), (len(pipeline.steps),)))
    return found


def moments_after(passed: tuple[Moment, ...], died: Moment) -> tuple[Moment, ...]:
    """Return what the next life passes, if a life that would have passed `passed` has died at `died`.

    Groups and branches have no records, so they are passed again; so are nodes that cannot have been stored. A count
    of attempts begins anew with each life, so only the first of a life is certain.
    """
    left = []
    for each in passed:
        kind = each.point.kind
        is_same = each.place == died.place and not died.is_stored
        is_ahead = died.is_before(each) or is_same
        if kind in _ALWAYS or (is_ahead and each.point.occurrence == 1 and kind not in _OPENING):
            left.append(each)
    if any(each.point.kind is Kind.BEFORE for each in left):
        # A life that has something to do begins with a save that says so.
        left[1:1] = [Moment(Point(kind), ()) for kind in _OPENING]
    return tuple(left)


_ALWAYS = (Kind.RUN_STARTED, Kind.ROUTED, Kind.JOINED, Kind.RUN_FINISHED)
_OPENING = (Kind.BEFORE_OPENING_SAVE, Kind.AFTER_OPENING_SAVE)


def _of_chain(steps: tuple[StepSpec, ...], place: Place, told: Prediction) -> Iterator[Moment]:
    for index, step in enumerate(steps):
        yield from _of_step(step, (*place, index), told)


def _of_step(step: StepSpec, place: Place, told: Prediction) -> Iterator[Moment]:
    if isinstance(step, NodeSpec):
        yield from _of_node(step, place, told)
    elif isinstance(step, NestedSpec):
        yield from _of_chain(step.steps, place, told)
    elif isinstance(step, FanOutSpec):
        for member in step.members:
            yield from _of_step(member, (*place, step_name(member)), told)
        if step_name(step) in told.joined:
            yield Moment(Point(Kind.JOINED, step_name(step)), (*place, "", 1))
    elif isinstance(step, BranchSpec) and step_name(step) in told.routes:
        yield Moment(Point(Kind.ROUTED, step_name(step)), (*place, 0))
        taken = next(each for each in step.steps if step_name(each) == told.routes[step_name(step)])
        yield from _of_step(taken, (*place, 1), told)


def _of_node(node: NodeSpec, place: Place, told: Prediction) -> Iterator[Moment]:
    if node.name not in told.calls or node.name in told.uncertain:
        return
    calls = told.calls[node.name]
    for attempt in range(1, calls + 1):
        yield Moment(Point(Kind.BEFORE, node.name, attempt), place)
        # A model is caught with its reply in hand, and a failing one has none.
        if not node.is_model or (attempt == calls and node.name in told.answers):
            yield Moment(Point(Kind.DURING, node.name, attempt), place)
    if node.name in told.answers:
        yield Moment(Point(Kind.AFTER, node.name), place)
        yield Moment(Point(Kind.BEFORE_SAVE, node.name), place)
        yield Moment(Point(Kind.AFTER_SAVE, node.name), place, is_stored=True)
