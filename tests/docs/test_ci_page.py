"""The jobs that the page on CI shows: each is whole, both test the same, and both keep what was found."""

from __future__ import annotations

from typing import Any

import pytest

from tests.docs.pages import ROOT, blocks_of, parse_yaml

GITHUB, GITLAB = (
    parse_yaml(block)[0] for block in blocks_of(ROOT / "docs" / "how-to" / "run-in-ci.md") if block.language == "yaml"
)


@pytest.fixture
def steps() -> list[dict[str, Any]]:
    (job,) = GITHUB["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


@pytest.fixture
def job() -> dict[str, Any]:
    (found,) = GITLAB.values()
    assert isinstance(found, dict)
    return found


def test_each_step_of_the_workflow_does_one_thing_and_actions_are_pinned(steps: list[dict[str, Any]]) -> None:
    assert [("uses" in step) + ("run" in step) for step in steps] == [1] * len(steps)
    assert [step["uses"] for step in steps if "uses" in step and "@v" not in step["uses"]] == []
    # YAML 1.1 reads the key `on` as true, and so does GitHub's own documentation live with it.
    assert GITHUB[True] == ["push", "pull_request"]


def test_both_run_the_same_commands(steps: list[dict[str, Any]], job: dict[str, Any]) -> None:
    assert [step["run"] for step in steps if "run" in step] == job["script"]
    assert job["script"][-1].startswith("python -m pytest tests/test_crash_safety.py")


def test_both_keep_the_report_also_of_a_run_that_failed(steps: list[dict[str, Any]], job: dict[str, Any]) -> None:
    assert (steps[-1]["if"], steps[-1]["with"]["path"]) == ("always()", "junit.xml")
    assert (job["artifacts"]["when"], job["artifacts"]["reports"]["junit"]) == ("always", "junit.xml")
