"""Which disturbances a campaign draws: one a life, up to four lives, of every kind that makes sense at its moment.

A life can only be disturbed at a moment that it passes. Which those are is certain for the first life; for later ones
it is what a correct executor passes after a kill. A disturbance that then does not happen ends the plan before it: the
life was left alone, and is judged as such.
"""

from __future__ import annotations

from functools import lru_cache

from hypothesis import strategies as st

from ..crash.points import How, Kind, Plan, Point
from ..strategies import PipelineSpec, predict
from ..strategies.crash_plans import MOST_LIVES, Moment, moments, moments_after

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
    passed = _moments(spec)
    return tuple(draw(_plan(passed)) for _ in range(draw(st.sampled_from((1, *(most,) * 5)))))


@lru_cache(maxsize=64)
def _moments(spec: PipelineSpec) -> tuple[Moment, ...]:
    return tuple(moments(predict(spec), spec))


@st.composite
def _plan(draw: st.DrawFn, passed: tuple[Moment, ...]) -> Plan:
    kind = draw(_KINDS)
    if kind == "poison":
        inside = [
            moment.point for moment in passed if moment.point.kind is Kind.DURING and moment.point.occurrence == 1
        ]
        if inside:
            return (draw(st.sampled_from(inside)),) * POISON_LIVES
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
        moment = draw(st.sampled_from(fitting))
        plan.append(moment.point.disturbed(how))
        passed = moments_after(passed, moment)
        if not passed or not draw(st.booleans()):
            break
    return tuple(plan)


_KINDS = st.sampled_from((*("lives",) * 16, "create", "await", "poison"))
_CUT_SHORT = st.sampled_from((How.CANCEL, How.TIMEOUT))
_CREATIONS = st.sampled_from((Kind.BEFORE_CREATE, Kind.AFTER_CREATE))
