"""Which disturbances a campaign draws: one a life, up to four lives, of every kind that makes sense at its moment.

A life can only be disturbed at a moment that it passes. Which those are is certain for the first life; for later ones
it is what a correct executor passes after a kill. A disturbance that then does not happen ends the plan before it: the
life was left alone, and is judged as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from hypothesis import strategies as st

from ..crash.points import How, Kind, Plan, Point
from ..strategies import BranchSpec, FanOutSpec, NodeSpec, PipelineSpec, predict
from ..strategies.crash_plans import MOST_LIVES, Moment, moments, moments_after
from ..strategies.spec import StepSpec, nodes_of

__all__ = ["POISON_LIVES", "kills_of", "plans_of"]

POISON_LIVES = 6
"""How often a node may kill its process in a plan that has it do so: more often than any executor should let it."""

_STOPS = (How.CANCEL, How.TIMEOUT, How.INTERRUPT)
_FAULTS = (How.REFUSED, How.REPLY_LOST, How.REFUSED_ONCE, How.REPLY_LOST_ONCE, How.SLOW)
# The first is the simplest: a kill, if that will do.
_HOWS = st.sampled_from((*(How.KILL,) * 11, *_STOPS, *_FAULTS))
_MOST_AWAITS = 12


def kills_of(spec: PipelineSpec) -> list[Point]:
    """Return the points at which a first life of `spec` can be killed, in order."""
    return [moment.point for moment in _moments(spec)]


@st.composite
def plans_of(draw: st.DrawFn, spec: PipelineSpec, *, most: int) -> tuple[Plan, ...]:
    """Draw up to `most` plans for runs of `spec`. Shrinks to one plan, of one kill, early in the run."""
    return tuple(draw(_plan(spec)) for _ in range(draw(st.sampled_from((1, *(most,) * 5)))))


@lru_cache(maxsize=64)
def _moments(spec: PipelineSpec) -> tuple[Moment, ...]:
    return tuple(moments(predict(spec), spec))


@st.composite
def _plan(draw: st.DrawFn, spec: PipelineSpec) -> Plan:
    passed = _moments(spec)
    kind = draw(_KINDS)
    if kind == "poison":
        inside = [
            moment.point for moment in passed if moment.point.kind is Kind.DURING and moment.point.occurrence == 1
        ]
        if inside:
            return (draw(st.sampled_from(inside)),) * POISON_LIVES
    if kind == "telling":
        telling = _telling(passed, spec)
        if telling:
            return (draw(st.sampled_from(telling)).point,)
    if kind == "stopped save":
        saves = [moment.point for moment in passed if moment.point.kind is Kind.BEFORE_SAVE]
        if saves:
            return (draw(st.sampled_from(saves)).disturbed(draw(_CUT_SHORT)),)
    if kind == "await":
        at = Point(Kind.AWAIT, occurrence=draw(st.integers(1, _MOST_AWAITS)), how=draw(_CUT_SHORT))
        return (at,)
    if kind == "create":
        return (Point(draw(_CREATIONS)), *_lives(draw, passed, MOST_LIVES - 1 if draw(st.booleans()) else 0))
    return _lives(draw, passed, MOST_LIVES)


def _lives(draw: st.DrawFn, passed: tuple[Moment, ...], most: int) -> Plan:
    plan: list[Point] = []
    for _ in range(most):
        how = draw(_HOWS)
        fitting = [moment for moment in passed if moment.point.allows(how)]
        if not fitting:
            how, fitting = How.KILL, list(passed)
        moment = draw(st.sampled_from([*fitting, *_often(fitting)]))
        plan.append(moment.point.disturbed(how))
        passed = moments_after(passed, moment)
        if not passed or not draw(st.booleans()):
            break
    return tuple(plan)


def _telling(passed: tuple[Moment, ...], spec: PipelineSpec) -> list[Moment]:
    """Return the moments at which most goes wrong, if `spec` has any.

    That is when a member of a fan-out has returned and is not saved, when a routed node is called or has just been
    saved, and between two attempts.
    """
    sides, routed = _places(spec)
    return [
        moment
        for moment in passed
        if (moment.point.kind is Kind.AFTER and moment.point.subject in sides)
        or (moment.point.kind in (Kind.DURING, Kind.AFTER_SAVE) and moment.point.subject in routed)
        or moment.point.occurrence > 1
    ]


def _often(passed: list[Moment]) -> list[Moment]:
    """Return moments to be drawn more often: a node has returned and is not saved, or has just been saved."""
    return [moment for moment in passed if moment.point.kind in (Kind.AFTER, Kind.AFTER_SAVE)] * 2


@lru_cache(maxsize=64)
def _places(spec: PipelineSpec) -> tuple[frozenset[str], frozenset[str]]:
    """Return the nodes that are in a fan-out, and those that are on a route of a branch."""
    groups = list(_groups(spec.steps))
    sides = frozenset(node.name for step in groups if isinstance(step, FanOutSpec) for node in nodes_of(step))
    routed = frozenset(node.name for step in groups if isinstance(step, BranchSpec) for node in nodes_of(step))
    return sides, routed


def _groups(steps: tuple[StepSpec, ...]) -> Iterator[StepSpec]:
    for step in steps:
        if not isinstance(step, NodeSpec):
            yield step
            yield from _groups(step.members if isinstance(step, FanOutSpec) else step.steps)


_KINDS = st.sampled_from((*("lives",) * 9, *("telling",) * 6, "create", "await", "stopped save", "poison", "poison"))
_CUT_SHORT = st.sampled_from((How.CANCEL, How.TIMEOUT))
_CREATIONS = st.sampled_from((Kind.BEFORE_CREATE, Kind.AFTER_CREATE))
