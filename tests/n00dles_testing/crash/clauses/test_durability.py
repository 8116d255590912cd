"""E01, E02, E03: stored before it is used, and called again only while it was in flight."""

from __future__ import annotations

import pytest

from tests.n00dles_testing.crash.clauses.tale import BESIDE, Tale, case, fan_out, faults, occasions, undisturbed


def test_a_node_that_starts_while_the_save_of_what_it_needs_is_on_its_way_is_too_early() -> None:
    tale = Tale().life().calls("a").begins_save("a").starts("b").ends_save("a").ends("b").saves("a", "b").finishes()

    assert faults("E01", case(tale)) == ["`b` was started in life 1 before the output of `a` was in the store"]


def test_a_node_that_starts_after_a_save_that_is_gone_after_the_kill_was_too_early() -> None:
    tale = Tale().life("during:b").calls("a").saves("a").starts("b").dies()
    tale.life(stored=[]).calls("a").saves("a").calls("b").saves("a", "b").finishes()

    assert faults("E01", case(tale)) == ["`b` was started in life 1 before the output of `a` was in the store"]


def test_members_of_a_fan_out_may_share_a_save_and_what_was_failed_by_the_store_may_be_saved_again() -> None:
    tale = Tale().life().starts("a").starts("b").ends("a").ends("b").saves("a", "b", error="busy").saves("a", "b")
    tale.calls("c").saves("a", "b", "c").finishes()

    assert faults("E01", case(tale, needs=BESIDE, shape=fan_out())) == []


def test_a_node_whose_save_was_acknowledged_is_not_called_again() -> None:
    tale = Tale().life("after-save:a").calls("a").saves("a").dies()
    tale.life(stored=["a"]).calls("a").saves("a").calls("b").saves("a", "b").finishes()

    assert faults("E02", case(tale)) == [
        "`a` was called again in life 2, though its save was acknowledged in life 1",
    ]
    assert occasions("E02", case(tale)) == 1


def test_a_node_in_flight_may_be_called_again_whether_or_not_it_had_returned() -> None:
    tale = (
        Tale().life("before-save:b").calls("a").saves("a").calls("b").says("node_returned", "b").begins_save("a", "b")
    )
    tale.dies().life(stored=["a"]).calls("b").saves("a", "b").calls("c").saves("a", "b", "c").finishes()

    assert faults("E02", case(tale)) == faults("E03", case(tale)) == []


def test_what_a_finished_run_calls_is_told_by_e17_alone() -> None:
    tale = Tale().life("run-finished").calls("a").saves("a").dies()
    tale.life("before:a", stored=["a"], status="finished").starts("a").dies()
    tale.life(stored=[]).calls("a").saves("a").finishes()

    told = case(tale)

    assert faults("E02", told) == faults("E18", told) == faults("E11", told) == []
    assert faults("E17", told) == ["the run was finished, and life 2 called `a` again"]


def test_a_node_that_had_returned_and_was_left_out_of_a_save_is_in_flight_no_more() -> None:
    tale = Tale().life("after-save:b").starts("a").starts("b").ends("a").says("node_returned", "a").ends("b")
    tale.saves("b").dies().life(stored=["b"]).calls("a").saves("b", "a").calls("c").saves("b", "a", "c").finishes()

    assert faults("E03", case(tale, needs=BESIDE, shape=fan_out())) == [
        "`a` was called again in life 2, though it had returned in life 1 before a save that left it out"
    ]


def test_a_save_that_began_before_a_node_had_returned_need_not_carry_it() -> None:
    tale = Tale().life("after-save:b").starts("a").starts("b").ends("b").begins_save("b").ends("a")
    tale.says("node_returned", "a").ends_save("b").dies()
    tale.life(stored=["b"]).calls("a").saves("b", "a").calls("c").saves("b", "a", "c").finishes()

    assert faults("E03", case(tale, needs=BESIDE, shape=fan_out())) == []


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("k1", "k2", "`a` got another idempotency key in life 2 than before"),
        ("k1", None, "`a` got no idempotency key in life 2, and had one before"),
    ],
)
def test_each_attempt_of_a_node_has_the_same_key(first: str, second: str | None, message: str) -> None:
    tale = (
        Tale().life("after:a").calls("a", key=first).dies().life(stored=[]).calls("a", key=second).saves("a").finishes()
    )

    assert faults("E03", case(tale)) == [message]


def test_two_nodes_do_not_share_a_key_and_an_executor_may_offer_none() -> None:
    shared = Tale().life().calls("a", key="k").saves("a").calls("b", key="k").saves("a", "b").finishes()

    assert faults("E03", case(shared)) == ["`b` and `a` got the same idempotency key"]
    assert faults("E03", case(undisturbed())) == []
