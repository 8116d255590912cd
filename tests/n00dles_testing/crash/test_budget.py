"""Budgets: so many scenarios, or as many as there is time for, spread over all of them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from n00dles_testing.crash import ExplorationError, explore
from n00dles_testing.crash.budget import Budget, spread
from n00dles_testing.verdicts import Verdict
from tests.n00dles_testing.crash import pipelines


@pytest.mark.parametrize(
    ("given", "budget"),
    [
        (None, Budget()),
        (200, Budget(scenarios=200)),
        ("200", Budget(scenarios=200)),
        ("30s", Budget(seconds=30)),
        ("1.5m", Budget(seconds=90)),
        ("2 h", Budget(seconds=7200)),
    ],
)
def test_a_budget_is_scenarios_or_a_time(given: Any, budget: Budget) -> None:
    assert Budget.read(given) == budget


@pytest.mark.parametrize("given", [0, -1, "0s", "1.5", "30 years", "", True, 2.5])
def test_what_is_no_budget_is_refused_with_how_to_write_one(given: Any) -> None:
    with pytest.raises(ValueError, match="write 200 for so many scenarios, or '30s'"):
        Budget.read(given)


def test_the_first_few_lie_evenly_among_all() -> None:
    order = spread(range(16))

    assert sorted(order) == list(range(16))
    assert sorted(order[:4]) == [0, 4, 8, 12]
    assert spread([]) == []
    assert spread(["a"]) == ["a"]


def test_what_is_left_is_shared_among_the_lives_that_follow() -> None:
    now = time.monotonic()

    assert Budget(scenarios=12).share(5, now, 2) == Budget(scenarios=4)
    assert Budget(scenarios=12).share(15, now, 2) == Budget(scenarios=0)
    assert Budget(seconds=10).share(0, now - 4, 2).seconds == pytest.approx(3, abs=0.5)
    assert Budget().share(100, now, 3) == Budget()


def test_a_time_that_is_over_leaves_the_rest_out_and_the_report_says_so() -> None:
    report = explore(pipelines.chain, {"topic": "x"}, mode="in-process", budget="0.000001s", how="all")

    assert len(report.rows) == 1
    assert report.left_out == report.points - 1
    assert any("left no time for" in note for note in report.notes)
    assert report.verdict is Verdict.PASS


def test_a_time_that_is_long_enough_leaves_nothing_out_and_keeps_the_order() -> None:
    timed = explore(pipelines.chain, {"topic": "x"}, mode="in-process", budget="5m", lives=2, at=["edit"])
    untimed = explore(pipelines.chain, {"topic": "x"}, mode="in-process", lives=2, at=["edit"])

    assert [row.plan for row in timed.rows] == [row.plan for row in untimed.rows]
    assert not any("left no time" in note for note in timed.notes)


def test_a_budget_that_is_none_is_an_error_of_the_exploration() -> None:
    with pytest.raises(ExplorationError, match="budget='soon' is no budget"):
        explore(pipelines.chain, {"topic": "x"}, budget="soon")
