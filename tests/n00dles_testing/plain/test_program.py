"""A loop of another interpreter is killed with its process, resumed and judged like one of this interpreter."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from n00dles import ConfigurationError
from n00dles_testing import Verdict, explore
from n00dles_testing.plain import Program

PROGRAMS = Path(__file__).with_name("far_programs.py")
NODES = ["research", "write", "publish"]
INPUTS = {"topic": "x"}


def stored(folder: Path) -> list[str]:
    """Return what is stored."""
    file = folder / "state.json"
    return list(json.loads(file.read_text())) if file.exists() else []


def program(function: str, **options: Any) -> Program:
    return Program(sys.executable, f"{PROGRAMS}:{function}", NODES, stored=stored, **options)


right = program("run")
in_a_loop = program("run_async")
failing = program("run_failing")
ending = program("run_ending")


def test_it_is_killed_around_its_functions_and_in_its_saves_and_goes_on_in_another_process() -> None:
    report = explore(right, INPUTS, at=["during:write", "after:write", "during-save:write#2"])

    rows = {str(row.point): (row.killed_by, row.on_disk, row.calls, row.recalled) for row in report.rows}
    assert rows == {
        "during:write": (signal.SIGKILL, ("research",), 4, ()),
        "after:write": (signal.SIGKILL, ("research",), 4, ()),
        "during-save:write#2": (signal.SIGKILL, ("research",), 4, ()),
    }
    assert (report.verdict, report.mode) == (Verdict.PASS, "fork")


def test_a_careless_one_is_caught() -> None:
    report = explore(right, {**INPUTS, "is_right": False}, at=["during-save:write", "before:write"])

    # E05, since `write` got a tuple before the kill and gets a list behind it.
    assert {finding.clause for finding in report.findings} == {"E04", "E05"}
    assert "JSONDecodeError" in str(report)  # its file was emptied


def test_one_of_an_event_loop_is_run_in_one() -> None:
    assert explore(in_a_loop, INPUTS, at=["before:publish"]).ok


@pytest.mark.parametrize(
    ("subject", "message"),
    [(failing, "LookupError: nothing is known of x"), (ending, "its interpreter ended with 3, and gave no result")],
)
def test_what_it_raises_is_told(subject: Program, message: str) -> None:
    with pytest.raises(Exception, match=message):
        explore(subject, INPUTS)


@pytest.mark.parametrize(
    ("python", "target", "message"),
    [
        ("no-such-python", f"{PROGRAMS}:run", "python='no-such-python' is no interpreter"),
        (sys.executable, "nowhere.py:run", "program='nowhere.py:run' names no file"),
    ],
)
def test_what_cannot_be_started_is_refused(python: str, target: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Program(python, target, NODES)
