"""`CrashSafety.check`: silent when all is well, and a story when it is not."""

from __future__ import annotations

import os
from typing import Any

import pytest

from n00dles import agent, pipeline
from n00dles_testing.crash import CrashSafety, ExplorationError
from n00dles_testing.verdicts import Verdict
from tests.n00dles_testing.crash import pipelines

_calls: list[str] = []


@agent
def spend(text: str) -> str:
    return text


@agent
def leak(text: str) -> str:
    # What it returns depends on what this process has seen: a resumed run differs.
    _calls.append(text)
    return text * min(len(_calls), 3)


def test_a_pipeline_that_survives_passes_and_gives_its_report() -> None:
    safety = CrashSafety()

    report = safety.check(pipelines.chain, mode="in-process", topic="crashes")

    assert report.verdict is Verdict.PASS
    assert safety.reports == [report]


def test_a_pipeline_at_module_level_is_killed_for_real_by_default() -> None:
    report = CrashSafety().check(pipelines.chain, at=["after-save:edit"], topic="crashes")

    assert report.mode == "fork"
    assert report.rows[0].killed_by == 9


memory = pipeline(spend >> leak, name="memory")


def test_a_pipeline_that_does_not_survive_fails_with_the_story_and_what_to_type() -> None:
    _calls.extend(["x"] * 0)

    with pytest.raises(AssertionError) as caught:
        _check_with_a_fault()

    text = str(caught.value)
    assert "does not survive every kill" in text
    assert "FAIL E02" in text
    assert "life 1   draft ✓  saved  edit ✓  saved  ✗ simulated death after the save of edit" in text
    assert "why      the store had the output of `edit`" in text


def _check_with_a_fault() -> None:
    from n00dles_testing.crash import explore
    from tests.n00dles_testing.crash import mutants

    report = explore(
        pipelines.chain,
        {"topic": "x"},
        mode="in-process",
        store=mutants.WholeStore(),
        executor=mutants.ForgetsTheLastNode(),
        at=["after-save:edit"],
    )
    raise AssertionError(str(report))


@agent
def limit(budget: int) -> str:
    return f"at most {budget}"


limited = pipeline(limit, name="limited")


def test_an_input_with_the_name_of_an_option_goes_into_the_mapping() -> None:
    report = CrashSafety().check(limited, mode="in-process", budget=2, inputs={"budget": 7})

    assert report.inputs == {"budget": 7}
    assert len(report.rows) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 7}, "budget= is an option of check, and 'limited' has an input of that name"),
        ({"inputs": {"text": "a"}, "text": "b"}, "text is given twice"),
        ({"inputs": "a"}, "inputs='a' is no mapping"),
    ],
)
def test_what_may_be_an_input_or_an_option_is_an_error_that_says_where_to_put_it(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        CrashSafety().check(limited, **options)

    assert message in str(caught.value)


@agent
def draw(text: str) -> str:
    return f"{text}{os.urandom(8).hex()}"


drawing = pipeline(draw, name="drawing")


def test_what_cannot_be_told_fails_the_check_and_says_what_to_do() -> None:
    with pytest.raises(AssertionError) as caught:
        CrashSafety().check(drawing, mode="in-process", text="x")

    text = str(caught.value)
    assert "UNKNOWN E04, E05 could not be told: two undisturbed runs differ: `draw` returned" in text
    assert "allow_unknown=True" in text


def test_what_cannot_be_told_may_be_allowed_and_is_said(caplog: pytest.LogCaptureFixture) -> None:
    report = CrashSafety().check(drawing, mode="in-process", allow_unknown=True, text="x")

    assert report.ok
    (record,) = caplog.records
    assert record.getMessage().startswith(
        f"{report.target}: E04, E05 could not be told: two undisturbed runs differ: `draw` returned"
    )


def test_what_cannot_be_explored_is_told_at_the_line_of_the_test() -> None:
    with pytest.raises(ExplorationError, match="has no crash point 'after:nobody'") as caught:
        CrashSafety().check(pipelines.chain, mode="in-process", at=["after:nobody"], topic="x")

    assert [frame.name for frame in caught.traceback][1:] == ["check"]
