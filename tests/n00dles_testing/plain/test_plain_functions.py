"""A home-made loop is killed for real, resumed and judged: right ones pass, and each typical mistake is caught."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from n00dles_testing import CrashSafety, ExplorationError, PlainFunctions, Verdict, explore
from n00dles_testing.cli import main
from tests.n00dles_testing.plain import loops
from tests.n00dles_testing.plain.mistakes import MISTAKES, draw, frame, loads_a_dict

HERE = "tests.n00dles_testing.plain.loops"
FAILING = Path(__file__).with_name("mistakes.py")
INPUTS = {"topic": "x"}
RIGHT = ["list", "database", "log", "async", "handing", "thread", "completed", "class", "book", "folder"]


def test_a_loop_is_killed_by_signal_9_around_each_function_and_inside_each_save() -> None:
    report = explore(loops.by_name_subject, INPUTS)

    assert [str(row.point) for row in report.rows] == [
        "run-started",
        *(f"{kind}:research" for kind in ("before", "during", "after", "during-save")),
        "during-save:research#2",
        *(f"{kind}:write" for kind in ("before", "during", "after", "during-save")),
        "during-save:write#2",
        *(f"{kind}:publish" for kind in ("before", "during", "after", "during-save")),
        "during-save:publish#2",
        "run-finished",
    ]
    assert {row.killed_by for row in report.rows} == {signal.SIGKILL}
    assert (report.verdict, report.mode, report.store) == (Verdict.PASS, "fork", "its own")


def test_what_is_on_disk_is_what_the_loop_says() -> None:
    report = explore(loops.by_name_subject, INPUTS, at=["during-save:write", "before:publish"])

    on_disk = {str(row.point): (row.on_disk, row.calls) for row in report.rows}
    assert on_disk == {
        "during-save:write": (("research",), 4),
        "before:publish": (("research", "write"), 3),
    }


def test_without_stored_it_is_not_known_what_is_on_disk_and_e01_is_not_told() -> None:
    report = explore(loops.blind_subject, INPUTS, at=["write"])

    verdicts = {clause.clause: clause for clause in report.clauses}
    assert {(row.on_disk, row.disk_note) for row in report.rows} == {(None, "not known")}
    assert report.rows[0].story[1] == "on disk  not known"
    assert (verdicts["E01"].verdict, verdicts["E02"].verdict) == (Verdict.NOT_APPLICABLE, Verdict.PASS)
    assert "not known without stored=" in verdicts["E01"].reason


@pytest.mark.parametrize("name", RIGHT)
def test_a_loop_that_is_right_passes_however_it_is_built(name: str) -> None:
    report = explore(f"{HERE}:{name}_subject", INPUTS)

    assert report.findings == ()
    assert report.ok
    assert {row.killed_by for row in report.rows} == {signal.SIGKILL}


@pytest.mark.parametrize("name", ["by_name", "blind", "blind_thread", *RIGHT])
def test_it_passes_in_process_as_well_and_in_chains_of_kills(name: str) -> None:
    report = explore(f"{HERE}:{name}_subject", INPUTS, mode="in-process", lives=3, budget=40)

    assert report.findings == ()
    assert report.ok


def test_each_life_may_be_a_fresh_interpreter() -> None:
    report = explore(loops.list_subject, INPUTS, mode="spawn", at=["during:write"])

    assert (report.verdict, report.rows[0].killed_by) == (Verdict.PASS, signal.SIGKILL)


@pytest.mark.parametrize("how", ["cancel", "timeout", "interrupt"])
def test_a_loop_that_is_a_coroutine_can_be_told_to_end(how: str) -> None:
    report = explore(loops.async_subject, INPUTS, how=how)

    told = {clause.clause: clause.verdict for clause in report.clauses}
    assert report.ok, report.findings
    assert told["E13"] is Verdict.PASS


def test_one_that_is_not_can_only_be_killed() -> None:
    with pytest.raises(ExplorationError, match="cannot be disturbed by cancel; it can by kill"):
        explore(loops.list_subject, INPUTS, how="cancel")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_typical_mistake_is_caught_by_its_clauses_alone(mistake: Callable[..., Any]) -> None:
    knowing = PlainFunctions(mistake, loops.NODES, stored=loops.stored)
    blind = PlainFunctions(mistake, loops.NODES)

    broken = [
        {clause.clause for clause in explore(subject, INPUTS, mode="in-process").clauses if not clause.ok}
        for subject in (knowing, blind)
    ]

    assert tuple(broken) == MISTAKES[mistake]


@pytest.mark.parametrize(
    ("name", "at", "sentence"),
    [
        (
            "at_the_end",
            "before:write",
            "`write` was started in life 1 before the output of `research` was in the store",
        ),
        ("early", "before:write", "though its output was in the store as `write` started in life 1"),
        (
            "text",
            "before:write",
            "`write` got \"['x', 'a fact']\" on resume (life 2, facts) where it got a list before",
        ),
        ("in_place", "during-save:write", "the resumed run failed: JSONDecodeError"),
        ("forgets", "run-finished", "the run was finished, and life 2 called `research`, `write`, `publish` again"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(name: str, at: str, sentence: str) -> None:
    mistake = next(mistake for mistake in MISTAKES if name in mistake.__name__)
    subject = PlainFunctions(mistake, loops.NODES, stored=loops.stored)

    report = explore(subject, INPUTS, mode="in-process", at=[at])

    assert any(sentence in finding.message for finding in report.findings), [f.message for f in report.findings]


def test_another_type_after_a_resume_comes_with_advice_that_a_loop_can_follow() -> None:
    subject = PlainFunctions(loads_a_dict, [draw, frame])

    report = explore(subject, INPUTS, mode="in-process")

    (message,) = {finding.message for finding in report.findings if finding.clause == "E05"}
    assert (
        "where it got `Art` before: convert it when it is loaded (`Art(**…)`), or hand on its stored form in the first "
        "life too"
    ) in message


def test_a_file_that_cannot_be_read_is_no_missing_record() -> None:
    mistake = next(mistake for mistake in MISTAKES if mistake.__name__ == "writes_in_place")
    subject = PlainFunctions(mistake, loops.NODES, stored=loops.stored)

    (row,) = explore(subject, INPUTS, mode="in-process", at=["during-save:write"]).rows

    assert (row.on_disk, row.disk_note, row.to_dict()["disk_note"]) == (None, "unreadable", "unreadable")


def test_a_test_fails_with_the_story_of_a_mistake() -> None:
    mistake = next(mistake for mistake in MISTAKES if mistake.__name__ == "resumes_one_step_early")

    with pytest.raises(AssertionError, match=r"life 2   research AGAIN"):
        CrashSafety().check(PlainFunctions(mistake, loops.NODES, stored=loops.stored), at=["write"], topic="x")


def test_a_test_passes_for_a_loop_that_is_right() -> None:
    report = CrashSafety().check(loops.by_name_subject, at=["write"], topic="x")

    assert (report.mode, report.verdict) == ("fork", Verdict.PASS)


def test_a_model_that_a_function_calls_is_played_and_what_it_is_paid_for_is_counted(crash_safety: CrashSafety) -> None:
    report = crash_safety.check(loops.model_subject, at=["after:ask", "before:shout"], topic="x")

    assert report.paid == 1
    assert {str(row.point): row.paid for row in report.rows} == {"after:ask": 2, "before:shout": 1}


def test_the_command_explores_a_loop_and_replays_what_it_found(tmp_path: Path) -> None:
    loop = tmp_path / "loop.py"
    loop.write_text(
        "from n00dles_testing import PlainFunctions\n"
        "from tests.n00dles_testing.plain import loops, mistakes\n"
        "subject = PlainFunctions(mistakes.resumes_one_step_early, loops.NODES, stored=loops.stored)\n"
    )

    explored = CliRunner().invoke(main, ["explore", f"{loop}:subject", "--input", "topic=x", "--at", "before:write"])
    token = explored.output.split("n00dles-testing replay ")[1].split()[0]
    replayed = CliRunner().invoke(main, ["replay", token])

    assert (explored.exit_code, replayed.exit_code) == (1, 1)
    for output in (explored.output, replayed.output):
        assert "`research` was called again in life 2" in output


@pytest.mark.parametrize("option", ["store", "executor"])
@pytest.mark.parametrize("mode", ["fork", "in-process"])
def test_a_loop_brings_its_own_store_and_executor(option: str, mode: str) -> None:
    with pytest.raises(ExplorationError, match=f"runs and saves by itself, so {option}='a:b' has no use"):
        explore(f"{HERE}:list_subject", INPUTS, mode=mode, **{option: "a:b"})  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["fork", "in-process"])
def test_inputs_that_the_loop_does_not_take_are_named(mode: str) -> None:
    with pytest.raises(ExplorationError, match=r"by_name: .*'topik'|by_name: missing a required argument: 'topic'"):
        explore(f"{HERE}:by_name_subject", {"topik": "x"}, mode=mode)


def test_what_may_happen_twice_is_told_without_a_key_that_there_is_not() -> None:
    report = explore(loops.by_name_subject, INPUTS, mode="in-process", at=["after:publish"])

    (advice,) = [note for note in report.notes if "twice" in note]
    assert advice.startswith("`publish` may run twice")
    assert "give a key made from the run and the node" in advice


def test_a_function_with_several_calls_in_a_run_is_refused() -> None:
    def loop(topic: str, folder: Path) -> Any:
        return [loops.research(topic), loops.research(topic)]

    with pytest.raises(ExplorationError, match=r"`research` returned 2 times in one run.*each\(research, "):
        explore(PlainFunctions(loop, [loops.research]), INPUTS, mode="in-process")


def test_each_of_its_calls_can_be_a_node_instead() -> None:
    report = explore(loops.book_subject, INPUTS, at=["during", "before:chapter-end"])

    calls = {str(row.point): (row.calls, row.on_disk) for row in report.rows}
    assert calls == {
        "during:chapter-x": (4, ()),
        "before:chapter-end": (3, ("chapter-x",)),
        "during:chapter-end": (4, ("chapter-x",)),
        "during:bind": (4, ("chapter-x", "chapter-end")),
    }
    assert report.ok


def test_a_call_that_nobody_has_listed_is_named() -> None:
    with pytest.raises(ExplorationError, match=r"`chapter` was called with a title that .* does not list \(x, end\)"):
        explore(loops.book_subject, {"topic": "y"}, mode="in-process")


def test_a_loop_that_calls_none_of_its_functions_shows_nothing() -> None:
    with pytest.raises(ExplorationError, match=r"none of research, write was called, as far as can be seen"):
        explore(PlainFunctions(lambda topic, folder: topic, [loops.research, loops.write]), INPUTS, mode="in-process")


@pytest.mark.parametrize("mode", ["fork", "in-process"])
def test_checkpoints_outside_of_the_folder_are_named_as_the_cause(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELSEWHERE", str(tmp_path))
    outside = r"the loop keeps its checkpoints outside of `folder`, where an earlier run has left its own"

    with pytest.raises(ExplorationError, match=outside) as second:
        explore(f"{HERE}:elsewhere_subject", INPUTS, mode=mode)
    with pytest.raises(ExplorationError, match=outside) as first:
        explore(f"{HERE}:elsewhere_subject", INPUTS, mode=mode)
    with pytest.raises(
        ExplorationError, match=f"`publish` is stored in a fresh folder, before the loop was called: {outside}"
    ):
        explore(f"{HERE}:elsewhere_knowing_subject", INPUTS, mode=mode)

    assert "The first one went through, and called `research`, `write`, `publish`." in str(second.value)
    assert "The first one" not in str(first.value)


def test_a_function_that_is_not_called_is_named() -> None:
    report = explore(PlainFunctions(loops.by_name, [*loops.NODES, loops.shout]), INPUTS, mode="in-process", budget=3)

    assert "`shout` was not called, so nothing is said of it" in report.notes


def test_another_pipeline_is_refused() -> None:
    with pytest.raises(ExplorationError, match="runs its own functions in its own folder, and no other pipeline"):
        explore("docs/examples/body.py:body_pipeline", {"text": "x"}, executor=f"{HERE}:list_subject")


def test_a_name_that_stored_should_not_have_given_is_told() -> None:
    subject = PlainFunctions(loops.by_name, loops.NODES, stored=lambda folder: ["step-1"])

    with pytest.raises(ExplorationError, match=r"stored= named 'step-1', which is none of the functions"):
        explore(subject, INPUTS, mode="in-process")
