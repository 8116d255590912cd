"""E06, E07, E14: fan-outs and branches over several lives."""

from __future__ import annotations

from n00dles_testing.crash.shape import Shape
from tests.n00dles_testing.crash.clauses.tale import (
    BESIDE,
    EITHER,
    Tale,
    case,
    fan_out,
    faults,
    occasions,
    two_routes,
    undisturbed,
)


def beside(tale: Tale, shape: Shape | None = None, clause: str = "E06") -> list[str]:
    return faults(clause, case(tale, needs=BESIDE, shape=shape or fan_out()))


def either(tale: Tale) -> list[str]:
    usual = Tale().life().calls("a", "b").saves("a").calls("b").saves("a", "b").finishes()
    return faults("E07", case(tale, usual=usual, needs=EITHER, shape=two_routes()))


def test_members_run_side_by_side_only_as_far_as_the_limit_allows() -> None:
    tale = Tale().life().starts("a").starts("b").ends("a").ends("b").saves("a", "b").calls("c").finishes()

    assert beside(tale, fan_out(2)) == beside(tale, fan_out()) == []
    assert beside(tale, fan_out(1)) == [
        "`a`, `b` ran at the same time in life 1, where max_concurrency=1 allows 1 at once"
    ]


def test_a_call_that_was_given_up_and_lingers_in_its_thread_takes_no_place() -> None:
    tale = Tale().life().starts("a").says("node_failed", "a", fallback=None).starts("b").ends("b").ends("a")

    assert beside(tale.fails(), fan_out(1)) == []


def test_a_join_that_starts_before_a_member_has_an_output_is_too_early() -> None:
    tale = Tale().life("after-save:a").starts("a").starts("b").ends("a").saves("a").dies()
    tale.life(stored=["a"]).starts("c").ends("c").calls("b").saves("a", "c", "b").finishes()

    assert beside(tale) == ["`c` was started in life 2 though `b` of parallel[a,b] had no output yet"]


def test_a_member_that_had_finished_does_not_run_again_with_its_siblings() -> None:
    tale = Tale().life("after-save:a").calls("a").saves("a").starts("b").dies()
    tale.life(stored=["a"]).calls("b").calls("a").saves("a", "b").calls("c").saves("a", "b", "c").finishes()

    assert beside(tale) == ["`a` of parallel[a,b] had finished, and was called again in life 2"]
    assert occasions("E06", case(tale, needs=BESIDE, shape=fan_out())) == 2


def test_members_may_finish_in_another_order_in_each_life() -> None:
    tale = Tale().life("after:b").starts("a").starts("b").ends("b").dies()
    tale.life(stored=[]).starts("b").starts("a").ends("a").saves("a").ends("b").saves("a", "b")
    tale.calls("c").saves("a", "b", "c").finishes()

    assert beside(tale) == []


def test_a_branch_that_takes_another_route_after_a_resume_breaks_e07() -> None:
    tale = Tale().life("during:b").calls("a", "b").saves("a").starts("b").dies()
    tale.life(stored=["a"]).calls("c").saves("a", "c").finishes()

    assert either(tale) == ["branch[b,c] took the route `b` in life 1 and `c` in life 2"]


def test_a_route_that_was_only_chosen_counts_as_well() -> None:
    tale = Tale().life("routed:branch[b,c]").calls("a", "b").saves("a")
    tale.says("branch_routed", branch="branch[b,c]", route="b").dies()
    tale.life(stored=["a"]).calls("c").saves("a", "c").finishes()

    assert either(tale) == ["branch[b,c] took the route `b` in life 1 and `c` in life 2"]


def test_a_node_before_the_branch_that_says_something_else_in_its_second_call_may_change_the_route() -> None:
    tale = Tale().life("after:a").calls("a", "b").says("branch_routed", branch="branch[b,c]", route="b").dies()
    tale.life(stored=[]).calls("a", "c").saves("a").calls("c").saves("a", "c").finishes()

    assert either(tale) == []


def test_the_record_of_the_routed_node_is_enough() -> None:
    tale = Tale().life("after-save:b").calls("a", "b").saves("a").calls("b").saves("a", "b").dies()
    tale.life(stored=["a", "b"]).calls("b").saves("a", "b").finishes()

    assert either(tale) == [
        "`b`, the route that branch[b,c] had taken, was called again in life 2, though its save was acknowledged in "
        "life 1"
    ]


def test_a_sibling_that_still_runs_when_the_run_has_failed_breaks_e14() -> None:
    tale = Tale().life().starts("a").starts("b").ends("a", error="ValueError: no").fails()

    assert beside(tale, clause="E14") == [
        "`a` of parallel[a,b] failed in life 1, and `b` was still running after `run` had raised"
    ]


def test_siblings_that_were_cancelled_or_awaited_before_the_end_are_fine() -> None:
    cancelled = (
        Tale().life().starts("a").starts("b").ends("a", error="ValueError: no").ends("b", error="CancelledError: ")
    )
    awaited = Tale().life().starts("a").starts("b").ends("a", error="ValueError: no").ends("b").saves("b")

    assert beside(cancelled.fails(), clause="E14") == beside(awaited.fails(), clause="E14") == []


def test_what_a_sibling_of_a_failing_member_has_finished_is_kept() -> None:
    tale = Tale().life().starts("a").starts("b").ends("b").says("node_returned", "b").ends("a", error="ValueError: no")
    tale.fails().life(stored=[]).calls("a").calls("b").saves("a", "b").calls("c").finishes()

    assert beside(tale, clause="E14") == [
        "`b` had finished in life 1 as its sibling `a` failed, and was called again in life 2"
    ]
    assert occasions("E14", case(tale, needs=BESIDE, shape=fan_out())) == 1
    assert occasions("E14", case(undisturbed())) == 0
