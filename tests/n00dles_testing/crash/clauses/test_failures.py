"""E10, E11, E15: nodes that fail, over all lives."""

from __future__ import annotations

import math
from typing import Any

import pytest

from n00dles_testing.crash.shape import Shape
from tests.n00dles_testing.crash.clauses.tale import CHAIN, Tale, case, faults, occasions

ONCE = Shape(attempts=dict.fromkeys("abc", 1))
TWICE = Shape(attempts=dict.fromkeys("abc", 2))


def failed_at_b() -> Tale:
    return Tale().life().calls("a").saves("a").calls("b", error="ValueError: no").saves("a").fails()


def test_a_resume_after_a_failure_runs_what_failed_and_what_follows() -> None:
    tale = failed_at_b().life(stored=["a"], status="failed").calls("b").saves("a", "b").calls("c").finishes()

    assert faults("E10", case(tale)) == []
    assert occasions("E10", case(tale)) == 1


def test_a_failure_takes_no_checkpoint_along() -> None:
    tale = failed_at_b().life(stored=[]).calls("a").saves("a").calls("b").finishes()

    assert "`b` failed in life 1, and the checkpoint of `a` was gone with it" in faults("E10", case(tale))


def test_a_resume_after_a_failure_runs_nothing_before_it() -> None:
    tale = failed_at_b().life(stored=["a"], status="failed").calls("a").calls("b").saves("a", "b").finishes()

    assert faults("E10", case(tale)) == [
        "`b` had failed, and the resume in life 2 called `a` again, which had not",
    ]


@pytest.mark.parametrize("how", ["raised RuntimeError", "reported success"])
def test_a_failed_run_that_is_resumed_without_calling_what_failed_breaks_e10(how: str) -> None:
    tale = failed_at_b().life(stored=["a"], status="failed")
    ended = tale.finishes() if how == "reported success" else tale.fails("RuntimeError", "it has failed", blame="")

    assert faults("E10", case(ended)) == [f"`b` had failed, and the resume in life 2 {how} without calling it"]


def test_a_failure_is_never_stored_as_an_output_and_the_answer_of_a_fallback_is_one() -> None:
    stored = Tale().life().calls("a", error="ValueError: no").saves("a").fails()
    fallback = Tale().life().calls("a", error="ValueError: no").calls("a").saves("a").calls("b").finishes()

    assert faults("E10", case(stored)) == ["`a` had only failed, and a save of life 1 stored an output of it"]
    assert faults("E10", case(fallback)) == []


def test_attempts_count_over_all_lives() -> None:
    tale = Tale().life("after-opening-save").calls("a", error="ValueError: no").says("node_retried", "a").saves().dies()
    tale.life(stored=[])
    for _ in range(3):
        tale.calls("a", error="ValueError: no")

    assert faults("E11", case(tale.fails())) == ["`a` was called 4 times in 2 lives, where its retries allow 3"]


def test_an_attempt_that_a_death_has_cut_short_need_not_count() -> None:
    tale = Tale().life("during:a").starts("a").dies().life("after:a", stored=[]).calls("a").dies()
    tale.life("before-opening-save", stored=[]).calls("a", error="ValueError: no").dies()
    tale.life(stored=[]).calls("a").saves("a").calls("b").finishes()

    assert faults("E11", case(tale, shape=ONCE)) == []


def test_a_run_that_has_failed_and_is_resumed_has_its_attempts_again() -> None:
    tale = Tale().life().calls("a", error="ValueError: no").fails()
    tale.life(stored=[], status="failed").calls("a", error="ValueError: no").fails()
    tale.life(stored=[], status="failed").calls("a").saves("a").calls("b").finishes()

    assert faults("E11", case(tale, shape=ONCE)) == []


def test_a_node_whose_process_died_between_two_attempts_gets_its_next_one() -> None:
    tale = Tale().life("after-opening-save").calls("a", error="ValueError: no").says("node_retried", "a").saves().dies()

    given_up = tale.life(stored=[]).fails(message="its attempts were used up")

    assert faults("E11", case(given_up)) == ["`a` was given up in life 2 after 1 of its 3 attempts"]
    assert occasions("E11", case(given_up)) == 1


def test_a_node_that_kills_every_process_is_not_called_for_ever() -> None:
    tale = Tale()
    for number in range(6):
        tale.life("during:a", stored=[] if number else None).starts("a").dies()

    assert faults("E11", case(tale)) == [
        "5 lives in a row had died without a completed node, and life 6 called `a` again",
    ]


def test_a_life_that_completes_a_node_ends_the_row_of_deaths() -> None:
    tale = Tale()
    for number in range(3):
        tale.life("during:a", stored=[] if number else None).starts("a").dies()
    tale.life("during:b", stored=[]).calls("a").saves("a").starts("b").dies()
    for _ in range(2):
        tale.life("during:b", stored=["a"]).starts("b").dies()
    tale.life(stored=["a"]).calls("b").saves("a", "b").calls("c").finishes()

    assert faults("E11", case(tale)) == []


@pytest.mark.parametrize(
    ("returned", "passed", "seen"),
    [({1}, "{1}", "a set"), ({"n": [math.nan]}, {"n": [None]}, "a float"), (b"x", "b'x'", "a bytes")],
)
def test_an_output_that_json_cannot_hold_is_not_passed_on_as_something_else(
    returned: Any, passed: Any, seen: str
) -> None:
    tale = Tale().life().calls("a", returned).saves("a").calls("b", x=passed).saves("a", "b").finishes()

    assert [fault.partition(", and ")[0] for fault in faults("E15", case(tale))] == [f"`a` returned {seen}"]


def test_an_executor_that_keeps_sets_exactly_may_do_so_and_a_node_may_make_a_list_of_one() -> None:
    tale = (
        Tale().life().calls("a", {1}).saves("a").calls("b", [1], x={1}).saves("a", "b").calls("c", x=[1]).finishes([1])
    )

    assert faults("E15", case(tale)) == []
    assert occasions("E15", case(tale)) == 1


def test_an_output_that_is_refused_is_named_with_its_path() -> None:
    def refused(message: str) -> list[str]:
        return faults("E15", case(Tale().life().calls("a", {"facts": {1}}).fails(message=message)))

    assert refused("node 'a': output['facts'] is a set") == []
    assert refused("node 'a' cannot be stored") == [
        "the output of `a` cannot be stored, and the error does not name `facts`: PipelineFailure: node 'a' cannot be "
        "stored"
    ]
    assert len(refused("Object of type set is not JSON serializable")) == 1


def test_nothing_that_needs_it_starts_when_an_output_cannot_be_stored() -> None:
    tale = Tale().life().calls("a", {1}).calls("b").fails(message="node 'a': output is a set")

    assert faults("E15", case(tale, needs=CHAIN)) == [
        "`b` was started in life 1, though the output of `a` cannot be stored"
    ]
