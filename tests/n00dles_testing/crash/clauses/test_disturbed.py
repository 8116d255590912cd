"""E12, E13: a store that fails, and a run that is told to end."""

from __future__ import annotations

import pytest

from tests.n00dles_testing.crash.clauses.tale import Tale, case, faults, occasions


def refused(point: str = "refused@before-save:b") -> Tale:
    """The store fails the save of `b`."""
    return Tale().life(point).calls("a").saves("a").calls("b").at_point().saves("a", "b", error="OSError: full")


def test_the_error_of_a_failed_save_names_the_store() -> None:
    def ends_as(error: str, blame: str) -> list[str]:
        tale = refused().fails(error, "the store is full", blame=blame)
        tale.life(stored=["a"], same_process=True).saves("a", "b").calls("c").saves("a", "b", "c").finishes()
        return faults("E12", case(tale))

    assert ends_as("StateStoreError", "store") == ends_as("OSError", "") == []
    assert ends_as("PipelineFailure", "node") == [
        "the store failed in life 1, and a node was blamed: PipelineFailure: the store is full"
    ]


def test_a_node_that_fails_by_itself_beside_a_failing_store_may_be_blamed() -> None:
    tale = Tale().life("refused@before-opening-save").calls("a", error="ValueError: no").at_point()

    assert faults("E12", case(tale.saves(error="OSError: full").fails("PipelineFailure", "no"))) == []


def test_a_run_whose_last_save_was_refused_has_not_finished() -> None:
    assert faults("E12", case(refused().finishes())) == ["life 1 reported success, though every save of `b` had failed"]


def test_a_node_is_not_called_again_because_its_save_failed() -> None:
    tale = refused("refused-once@before-save:b").calls("b").saves("a", "b").calls("c").saves("a", "b", "c").finishes()

    assert faults("E12", case(tale)) == ["`b` was called again in life 1 after its save had failed"]


def test_only_the_save_is_tried_again_be_it_in_this_life_or_in_the_next_in_the_process() -> None:
    at_once = refused("refused-once@before-save:b").saves("a", "b").calls("c").saves("a", "b", "c").finishes()
    later = refused().fails("StateStoreError", blame="store").life(stored=["a"], same_process=True)

    assert faults("E12", case(at_once)) == []
    assert faults("E12", case(later.saves("a", "b").calls("c").saves("a", "b", "c").finishes())) == []
    assert occasions("E12", case(at_once)) == occasions("E12", case(later)) == 1


def test_what_a_node_has_returned_stays_in_hand_in_the_process() -> None:
    again = refused().fails("StateStoreError", blame="store").life(stored=["a"], same_process=True)
    left_out = refused().fails("StateStoreError", blame="store").life(stored=["a"], same_process=True)

    assert faults("E12", case(again.calls("b").saves("a", "b").finishes())) == [
        "`b` was called again in life 2, in the same process, though only the save of it had failed in life 1"
    ]
    assert faults("E12", case(left_out.saves("a").saves("a", "b").finishes())) == [
        "the first save of life 2 left out `b`, whose save had failed in life 1"
    ]


def test_a_fresh_process_has_nothing_in_hand_and_a_commit_whose_reply_was_lost_is_one() -> None:
    fresh = refused().fails("StateStoreError", blame="store").life(stored=["a"]).calls("b").saves("a", "b").finishes()
    committed = refused("reply-lost@before-save:b").fails("StateStoreError", blame="store")
    committed.life(stored=["a", "b"], same_process=True).calls("c").saves("a", "b", "c").finishes()

    assert faults("E12", case(fresh)) == faults("E12", case(committed)) == []


def told_to_end(how: str = "cancel") -> Tale:
    return Tale().life(f"{how}@during:b").calls("a").saves("a").starts("b").at_point()


@pytest.mark.parametrize(
    ("how", "error"),
    [("cancel", "CancelledError"), ("timeout", "TimeoutError"), ("interrupt", "KeyboardInterrupt")],
)
def test_a_run_ends_as_what_it_was_told(how: str, error: str) -> None:
    def ends_as(name: str) -> Tale:
        tale = told_to_end(how).ends("b", error="CancelledError: ").is_told_to_end(name)
        return tale.life(stored=["a"]).calls("b").saves("a", "b").calls("c").finishes()

    assert faults("E13", case(ends_as(error))) == []
    assert len(faults("E13", case(ends_as("PipelineFailure")))) == 1
    assert occasions("E13", case(ends_as(error))) == 1


def test_a_node_that_fails_as_the_run_is_told_to_end_may_be_what_ends_it() -> None:
    tale = told_to_end().ends("b", error="ValueError: no").is_told_to_end("PipelineFailure")

    assert faults("E13", case(tale)) == []


def test_a_run_that_goes_on_when_it_is_cancelled_breaks_e13() -> None:
    tale = told_to_end().ends("b").saves("a", "b").calls("c").saves("a", "b", "c").finishes()

    assert faults("E13", case(tale)) == [
        "life 1 was cancelled, and went on to its end: `c` was called after that",
    ]


def test_a_run_that_is_cancelled_as_it_ends_may_end() -> None:
    tale = (
        Tale().life("cancel@run-finished").calls("a").calls("b").calls("c").saves("a", "b", "c").at_point().finishes()
    )

    assert faults("E13", case(tale)) == []


def test_nothing_runs_saves_or_starts_after_a_run_has_ended() -> None:
    running = told_to_end().is_told_to_end()
    saving = told_to_end().ends("b").begins_save("a", "b").is_told_to_end()
    starting = told_to_end().ends("b").is_told_to_end().calls("c")

    assert faults("E13", case(running)) == ["life 1 was cancelled, and `b` was still running after `run` had ended"]
    assert faults("E13", case(saving)) == ["life 1 was cancelled, and a save was still going on after `run` had ended"]
    assert faults("E13", case(starting)) == ["life 1 was cancelled, and `c` was started after `run` had ended"]


def test_a_task_of_a_pool_that_neither_calls_nor_saves_may_live_on() -> None:
    tale = told_to_end().ends("b").is_told_to_end(tasks=["ConnectionPool.worker"])

    assert faults("E13", case(tale)) == []
