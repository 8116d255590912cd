"""`CrashSafety.check`: silent when all is well, and a story when it is not."""

from __future__ import annotations

import pytest

from n00dles import agent, pipeline
from n00dles_testing.crash import CrashSafety
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
    from n00dles_testing.crash.safety import told
    from tests.n00dles_testing.crash import mutants

    report = explore(
        pipelines.chain,
        {"topic": "x"},
        mode="in-process",
        store=mutants.WholeStore(),
        executor=mutants.ForgetsTheLastNode(),
        at=["after-save:edit"],
    )
    raise AssertionError(told(report))
