"""Crash plans: every death in them happens, and a run that dies so still does what its spec says."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis import strategies as st

from n00dles_testing.crash.points import Kind, Point
from n00dles_testing.crash.typed import canonical, encode
from n00dles_testing.strategies import (
    ALWAYS,
    BranchSpec,
    Choice,
    FanOutSpec,
    NodeSpec,
    ParameterSpec,
    PipelineSpec,
    RouteSpec,
    crash_plans,
    pipelines,
    predict,
)
from n00dles_testing.strategies.crash_plans import Moment, moments, moments_after

from .mortal import played

quick = settings(max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck))

CHAIN = PipelineSpec(
    (NodeSpec("a", "str"), NodeSpec("b", "str", (ParameterSpec("text", "previous"),), fails=1, retry=2))
)
FAN = PipelineSpec((FanOutSpec((NodeSpec("a", "str"), NodeSpec("b", "str"))), NodeSpec("c", "str")))


def test_every_death_of_a_plan_happens_and_the_output_stays() -> None:
    deaths = 0

    @quick
    @given(st.data())
    def each(data: st.DataObject) -> None:
        nonlocal deaths
        spec = data.draw(pipelines(failures=False))
        plan = data.draw(crash_plans(spec))

        output, missed = played(spec, plan)

        assert missed == []
        assert canonical(encode(output)) == canonical(encode(predict(spec).output))
        deaths += len(plan)

    each()
    assert deaths >= 200


@quick
@given(st.data())
def test_a_plan_has_a_point_for_each_of_one_to_four_lives(data: st.DataObject) -> None:
    spec = data.draw(pipelines())
    most = data.draw(st.integers(1, 4))

    plan = data.draw(crash_plans(spec, max_lives=most))

    assert 1 <= len(plan) <= most
    assert all(Point.parse(str(point)) == point for point in plan)


def test_a_plan_needs_a_life() -> None:
    with pytest.raises(ValueError, match="max_lives=0"):
        crash_plans(CHAIN, max_lives=0)


def points(spec: PipelineSpec) -> list[str]:
    return [str(moment.point) for moment in moments(predict(spec), spec)]


def test_the_points_of_a_chain_are_listed_in_order() -> None:
    assert points(CHAIN) == [
        "run-started",
        *("before:a", "during:a", "after:a", "before-save:a", "after-save:a"),
        *("before:b", "during:b", "before:b#2", "during:b#2", "after:b", "before-save:b", "after-save:b"),
        "run-finished",
    ]


def test_groups_and_branches_have_points_of_their_own() -> None:
    routes = BranchSpec((RouteSpec(("x",), NodeSpec("b", "str")),))
    spec = PipelineSpec((NodeSpec("a", Choice(("x",))), routes, *FAN.steps[:0]))

    assert "routed:branch[x]" in points(spec)
    assert "joined:parallel[a,b]" in points(FAN)


def test_a_run_that_fails_ends_where_it_fails() -> None:
    spec = PipelineSpec((NodeSpec("a", "str", fails=ALWAYS, retry=2), NodeSpec("b", "str")))

    assert points(spec) == ["run-started", "before:a", "during:a", "before:a#2", "during:a#2"]


def after(spec: PipelineSpec, point: str) -> list[str]:
    passed = tuple(moments(predict(spec), spec))
    died = next(moment for moment in passed if str(moment.point) == point)
    return [str(moment.point) for moment in moments_after(passed, died)]


def test_what_is_stored_is_not_passed_again() -> None:
    assert after(CHAIN, "after-save:a") == [
        *("run-started", "before-opening-save", "after-opening-save"),
        *("before:b", "during:b", "after:b", "before-save:b", "after-save:b", "run-finished"),
    ]
    assert after(CHAIN, "after-save:b") == ["run-started", "run-finished"]


def test_what_is_not_stored_is_passed_again() -> None:
    assert "before:a" in after(CHAIN, "before-save:a")
    assert "before:b" in after(CHAIN, "during:b#2")
    assert "before:b#2" not in after(CHAIN, "during:b#2")


def test_of_members_only_the_one_that_died_is_certainly_passed_again() -> None:
    left = after(FAN, "during:b")

    assert "before:b" in left
    assert "before:a" not in left
    assert "joined:parallel[a,b]" in left
    assert "before:c" in left


def test_the_order_of_moments_is_that_of_chains_only() -> None:
    start = Moment(Point(Kind.RUN_STARTED), ())
    first, second = Moment(Point(Kind.BEFORE, "a"), (0, "a")), Moment(Point(Kind.BEFORE, "b"), (0, "b"))
    last = Moment(Point(Kind.BEFORE, "c"), (1,))

    assert start.is_before(first)
    assert not first.is_before(second)
    assert first.is_before(last)
    assert not last.is_before(first)


@pytest.mark.parametrize("number", [0, 1])
def test_plans_shrink_to_one_life_and_an_early_point(number: int) -> None:
    shrunk = settings(quick, max_examples=2000, phases=[Phase.generate, Phase.shrink])

    def smallest(wanted: str) -> list[str]:
        plan = find(
            crash_plans(CHAIN),
            lambda plan: any(str(point).startswith(wanted) for point in plan),
            settings=shrunk,
            random=random.Random(number),
        )
        return [str(point) for point in plan]

    assert smallest("") == ["run-started"]
    assert smallest("before-save") == ["before-save:a"]
    assert smallest("before-opening-save") == ["run-started", "before-opening-save"]


def test_no_number_of_lives_and_no_kind_of_death_is_rare() -> None:
    lives: Counter[int] = Counter()
    kinds: Counter[Kind] = Counter()

    @seed(0)
    @settings(quick, max_examples=500, phases=[Phase.generate])
    @given(crash_plans(CHAIN))
    def drawn(plan: tuple[Point, ...]) -> None:
        lives[len(plan)] += 1
        kinds.update(point.kind for point in plan)

    drawn()
    assert {number: lives[number] for number in (1, 2, 3, 4) if lives[number] < 10} == {}
    of_others = {Kind.ROUTED, Kind.JOINED, Kind.DURING_SAVE, Kind.DURING_OPENING_SAVE}  # a chain has none of these
    not_kills_of_a_run = {Kind.BEFORE_CREATE, Kind.AFTER_CREATE, Kind.AWAIT}
    assert {kind for kind in Kind if kinds[kind] < 10} == of_others | not_kills_of_a_run
