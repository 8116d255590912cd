"""What the command `faults` prints of many faults with one cause."""

from __future__ import annotations

import io

from rich.console import Console

from n00dles_testing.conformance.disturbing import DisturbanceReport
from n00dles_testing.report.terminal import StepDisplay
from n00dles_testing.show_faults import FaultsProgress, print_report
from n00dles_testing.verdicts import ClauseResult, Finding, Verdict

NAME = "ab12" * 16


def finding(number: int, why: str) -> Finding:
    story = (f"scenario a later save, system call {number}, write of {NAME}.tmp, failing", f"why      {why}")
    return Finding(
        "C04", f"load_or_create after the fault raised DamagedError: char {number}", story, "n00dles-testing …"
    )


def printed(*findings: Finding) -> str:
    result = ClauseResult("C04", "…", Verdict.FAIL, findings=findings)
    console = Console(file=io.StringIO(), width=200)
    print_report(console, DisturbanceReport("s.py:Store", (result,), (), (), 0, 80, 1.0))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_of_faults_for_one_reason_one_is_told_and_the_others_are_counted() -> None:
    text = printed(*(finding(number, "the call was acknowledged") for number in range(3)), finding(9, "it hangs"))

    assert text.count("replay") == 2
    assert "char 0" in text
    assert "char 9" in text
    assert "and 2 more for the same reason; --json FILE has each of them" in text


def test_a_long_name_of_a_file_is_shown_in_short() -> None:
    text = printed(finding(1, "it hangs"))

    assert "write of ab12ab12….tmp" in text
    assert "more for the same reason" not in text


def test_the_password_of_a_server_is_not_shown() -> None:
    console = Console(file=io.StringIO(), width=200)

    with StepDisplay(console, "calls of the store") as display:
        FaultsProgress("redis://:s3cret@host:6379/0", display, 1).started((), "")

    assert "disturbing redis://:…@host:6379/0" in console.file.getvalue()  # type: ignore[attr-defined]
