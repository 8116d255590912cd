"""Crash points: their names are stable, they are listed as they were passed, and chosen by name."""

from __future__ import annotations

from typing import Any

import pytest

from n00dles_testing.crash.points import How, Kind, Plan, Point, choose, enumerate_points

CHAIN: list[tuple[str, dict[str, Any]]] = [
    ("run_started", {}),
    ("node_started", {"node": "a"}),
    ("call_start", {"node": "a"}),
    ("node_returned", {"node": "a"}),
    ("save_start", {"new": ["a"]}),
    ("save_end", {"new": ["a"]}),
    ("run_finished", {}),
]


def plans(points: list[Point]) -> list[Plan]:
    return [(point,) for point in points]


@pytest.mark.parametrize(
    "text",
    [
        "run-started",
        "before-opening-save#2",
        "after-save:writer",
        "before:writer#2",
        "joined:parallel[a,b]",
        "during:my.node-1",
        "cancel@after:writer#2",
        "timeout@await#7",
        "reply-lost-once@before-save:writer",
        "refused@before-opening-save",
        "interrupt@after-create",
        "during:cancel@home",
    ],
)
def test_a_point_survives_its_text(text: str) -> None:
    assert str(Point.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "writer", "before", "sometime:writer", "run-started:writer", "before:", "later@before:writer", "cancel@"],
)
def test_what_is_no_point_is_refused_with_the_way_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no crash point.*(before|run-started)"):
        Point.parse(text)


@pytest.mark.parametrize(
    ("text", "where"),
    [("await", "cancel and timeout"), ("interrupt@await#2", "cancel"), ("slow@after-save:a", "before-save:NAME")],
)
def test_what_cannot_be_done_at_a_moment_is_refused_with_where_it_can(text: str, where: str) -> None:
    with pytest.raises(ValueError, match=rf"is possible .*{where}"):
        Point.parse(text)


def test_a_point_says_what_is_done_there_and_at_which_moment() -> None:
    point = Point.parse("cancel@after:writer#2")

    assert point == Point(Kind.AFTER, "writer", 2, How.CANCEL)
    assert point.moment == Point(Kind.AFTER, "writer", 2)
    assert point.moment.disturbed(How.CANCEL) == point


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("cancel@after:writer", "cancelled after writer, not saved"),
        ("timeout@await#7", "timed out at await 7"),
        ("interrupt@before:writer#2", "interrupted before writer (time 2)"),
        ("refused@before-save:writer", "the save of writer refused, and all after it"),
        ("reply-lost-once@before-opening-save", "reply to the save without outputs lost once"),
        ("before-create", "before the record is made"),
        ("run-finished", "run finished"),
        ("cancel@run-finished", "cancelled as the run finished"),
        ("interrupt@joined:parallel[a,b]", "interrupted as parallel[a,b] joined"),
    ],
)
def test_a_table_says_in_words_what_is_done(text: str, label: str) -> None:
    assert Point.parse(text).label == label


def test_points_are_listed_in_the_order_in_which_they_are_passed() -> None:
    points = enumerate_points(CHAIN)

    assert [str(point) for point in points] == [
        "run-started",
        "before:a",
        "during:a",
        "after:a",
        "before-save:a",
        "after-save:a",
        "run-finished",
    ]
    assert points[3].label == "after a, not saved"


def test_a_second_attempt_is_a_point_of_its_own() -> None:
    points = enumerate_points([CHAIN[1], CHAIN[2], CHAIN[1], CHAIN[2]])

    assert [str(point) for point in points] == ["before:a", "during:a", "before:a#2", "during:a#2"]


def test_members_of_a_fan_out_that_share_a_save_have_a_point_each() -> None:
    points = enumerate_points([("save_start", {"new": ["a", "b"]}), ("save_end", {"new": ["a", "b"]})])

    assert [str(point) for point in points] == ["before-save:a", "before-save:b", "after-save:a", "after-save:b"]


def test_a_save_that_fails_is_not_passed_to_its_end() -> None:
    points = enumerate_points([("save_start", {"new": ["a"]}), ("save_end", {"new": [], "error": "disk full"})])

    assert points == [Point(Kind.BEFORE_SAVE, "a")]


@pytest.mark.parametrize(
    ("at", "chosen"),
    [
        (["after:a"], ["after:a"]),
        (["a"], ["before:a", "during:a", "after:a", "before-save:a", "after-save:a"]),
        (["*-save:*", "run-finished"], ["before-save:a", "after-save:a", "run-finished"]),
        (["during"], ["during:a"]),
    ],
)
def test_points_are_chosen_by_id_node_kind_or_pattern(at: list[str], chosen: list[str]) -> None:
    assert [str(point) for (point,) in choose(plans(enumerate_points(CHAIN)), at, None)] == chosen


@pytest.mark.parametrize(
    ("at", "chosen"),
    [
        (["after:a"], ["after:a", "cancel@after:a"]),
        (["cancel@after:a"], ["cancel@after:a"]),
        (["cancel"], ["cancel@after:a"]),
        (["*after:*"], ["after:a", "cancel@after:a"]),
        (["cancel@*"], ["cancel@after:a"]),
    ],
)
def test_a_moment_is_chosen_whatever_is_done_there_unless_that_is_said(at: list[str], chosen: list[str]) -> None:
    points = plans([Point(Kind.AFTER, "a"), Point(Kind.AFTER, "a", how=How.CANCEL), Point(Kind.AFTER_SAVE, "b")])

    assert [str(point) for (point,) in choose(points, at, None)] == chosen


def test_a_group_is_chosen_by_its_id_though_it_looks_like_a_pattern() -> None:
    points = plans([Point(Kind.JOINED, "parallel[a,b]"), Point(Kind.RUN_FINISHED)])

    assert choose(points, ["joined:parallel[a,b]"], None) == points[:1]


def test_a_plan_of_several_kills_is_chosen_by_its_last() -> None:
    first, second = Point(Kind.AFTER_SAVE, "a"), Point(Kind.BEFORE_OPENING_SAVE)

    assert choose([(first,), (first, second)], ["a"], None) == [(first,)]
    assert choose([(first,), (first, second)], ["before-opening-save"], None) == [(first, second)]


def test_a_choice_that_fits_nothing_is_an_error_not_an_empty_run() -> None:
    with pytest.raises(ValueError, match="has no crash point 'after:b'"):
        choose(plans(enumerate_points(CHAIN)), ["after:a", "after:b"], None)


def test_a_budget_keeps_the_first_and_spreads_the_rest() -> None:
    points = plans([Point(Kind.BEFORE, str(number)) for number in range(10)])

    assert [point.subject for (point,) in choose(points, None, 3)] == ["0", "3", "6"]
    assert choose(points, None, 100) == points
