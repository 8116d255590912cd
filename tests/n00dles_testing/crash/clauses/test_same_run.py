"""E04, E05, E17, E18: the resumed run is the same run, however often it was resumed."""

from __future__ import annotations

from tests.n00dles_testing.crash.clauses.tale import Tale, case, faults, occasions


def killed_once(output: object = "x") -> Tale:
    tale = Tale().life("after-save:a").calls("a").saves("a").dies().life(stored=["a"])
    return tale.calls("b").saves("a", "b").calls("c").saves("a", "b", "c").finishes(output)


def failing(error: str = "ValueError: no") -> Tale:
    """Undisturbed, the pipeline fails at `b`."""
    return Tale().life().calls("a").saves("a").calls("b", error=error).fails(message="b failed")


def test_another_output_is_a_fault_and_the_same_one_is_none() -> None:
    assert faults("E04", case(killed_once())) == []
    assert faults("E04", case(killed_once({"x": 1}))) == [
        "the resumed run returned a dict at output, where the undisturbed one returned text"
    ]


def test_a_run_that_never_ends_is_a_fault() -> None:
    tale = Tale().life("after-save:a").calls("a").saves("a").dies().life(stored=["a"]).hangs()

    assert faults("E04", case(tale)) == ["the run never got to its end: life 2 did not end within its limit (30 s)"]


def test_a_pipeline_that_fails_undisturbed_may_fail_at_a_node_and_may_finish() -> None:
    killed = Tale().life("after-save:a").calls("a").saves("a").dies()
    killed.life(stored=["a"]).calls("b", error="ValueError: no").fails()

    assert faults("E04", case(killed, usual=failing())) == []
    assert faults("E04", case(killed_once(), usual=failing())) == []
    assert faults("E05", case(killed_once(), usual=failing())) == []


def test_a_pipeline_that_fails_undisturbed_may_not_fail_for_a_reason_of_the_executor() -> None:
    tale = Tale().life("after-save:a").calls("a").saves("a").dies()
    tale.life(stored=["a"]).fails("KeyError", "'worker-1'", blame="")

    assert faults("E04", case(tale, usual=failing())) == ["the resumed run failed: KeyError: 'worker-1'"]


def test_a_node_that_is_flaky_undisturbed_as_well_may_use_up_its_attempts() -> None:
    usual = Tale().life().calls("a", error="OSError: busy").calls("a").saves("a").calls("b").calls("c").finishes()
    tale = Tale().life("before:a#2").calls("a", error="OSError: busy").saves().dies()
    tale.life("before:a#2", stored=[]).calls("a", error="OSError: busy").saves().dies()
    tale.life(stored=[]).calls("a", error="OSError: busy").fails(message="busy")

    assert faults("E04", case(tale, usual=usual)) == []
    assert faults("E04", case(tale)) == ["the resumed run failed: PipelineFailure: busy"]


def test_what_a_node_that_killed_five_processes_comes_to_is_no_fault() -> None:
    tale = Tale()
    for number in range(5):
        tale.life("during:a", stored=[] if number else None).starts("a").dies()
    tale.life(stored=[]).fails(message="5 lives in a row have ended")

    assert faults("E04", case(tale)) == []
    assert faults("E11", case(tale)) == []


def test_the_end_of_a_finished_run_that_is_resumed_is_told_by_e17_alone() -> None:
    tale = Tale().life("run-finished").calls("a").calls("b").calls("c").saves("a", "b", "c").dies()
    tale.life(stored=["a", "b", "c"], status="finished").finishes(None)

    assert faults("E04", case(tale)) == []
    assert faults("E17", case(tale)) == ['run of the finished run returned null, where the run itself had returned "x"']


def test_a_finished_run_that_is_resumed_and_cancelled_has_not_failed() -> None:
    tale = Tale().life("run-finished").calls("a").saves("a").dies()
    tale.life("cancel@run-started", stored=["a"], status="finished").at_point().is_told_to_end()
    tale.life(stored=["a"], status="finished").finishes("x")

    assert faults("E17", case(tale)) == []


def test_an_attempt_that_was_announced_and_cancelled_before_its_call_may_count() -> None:
    traces = [{"name": node, "attempts": count, "input_tokens": 0, "output_tokens": 0} for node, count in (("a", 2),)]
    tale = Tale().life("cancel@before:a").says("node_started", "a").at_point().is_told_to_end()
    tale.life(stored=[]).says("node_started", "a").calls("a").saves("a").calls("b").calls("c").saves("a", "b", "c")
    tale.finishes("x", traces=traces)

    assert [fault for fault in faults("E05", case(tale)) if "attempts" in fault] == []


def test_a_chain_that_ends_otherwise_or_calls_again_after_its_second_kill_breaks_e18() -> None:
    def twice(*again: str, output: str = "x") -> Tale:
        tale = Tale().life("after-save:a").calls("a").saves("a").dies()
        tale.life("after-save:b", stored=["a"]).calls("b").saves("a", "b").dies()
        tale.life(stored=["a", "b"])
        for node in again:
            tale.calls(node)
        return tale.calls("c").saves("a", "b", "c").finishes(output)

    assert faults("E18", case(twice())) == []
    assert faults("E18", case(twice(output="y"))) == [
        'after 2 disturbed lives the resumed run returned "y" at output, where the undisturbed one returned "x"'
    ]
    assert faults("E18", case(twice("b"))) == [
        "`b` was called again in life 3, though an earlier resume had not called it again"
    ]
    assert occasions("E18", case(twice())) == 1
    assert occasions("E18", case(killed_once())) == 0
