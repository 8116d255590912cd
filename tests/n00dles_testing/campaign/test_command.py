"""The command: what it prints, how it ends, and what its replay line does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from n00dles_testing.cli import main

EXECUTOR = "tests.n00dles_testing.campaign.executors:forgets_what_was_stored"


def typed(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_a_campaign_that_passes_ends_with_0_and_says_how_much_stands_behind_it(tmp_path: Path) -> None:
    report = tmp_path / "report.json"

    result = typed("executor", "--examples", "40", "--only", "E01", "--json", str(report))

    assert result.exit_code == 0, result.output
    assert "the executor of n00dles: PASS, 40 scenarios" in result.output
    told = json.loads(report.read_text())
    assert told["kind"] == "executor"
    (clause,) = [clause for clause in told["clauses"] if clause["clause"] == "E01"]
    assert clause["verdict"] == "PASS"
    assert clause["scenarios"] > 0
    assert {c["verdict"] for c in told["clauses"] if c["clause"] != "E01"} == {"NOT RUN"}


def test_a_fault_ends_with_1_and_its_line_replays_it() -> None:
    result = typed("executor", EXECUTOR, "--examples", "40", "--only", "e02", "--no-confirm")
    (line,) = [line for line in result.output.splitlines() if line.strip().startswith("replay ")]

    again = typed("replay", line.split()[-1])

    assert result.exit_code == 1
    assert again.exit_code == 1
    assert "E02  `a` was called again in life 2" in again.output
    assert "and again in processes of their own, killed for real" in again.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["executor", "nowhere.py:executor"], "nowhere.py"),
        (["executor", "--only", "E99"], "there is no clause E99"),
        (["executor", "--budget", "soon"], "'soon' is no time: write it as 60s, or 5m."),
        (["executor", "--budget", "60"], "'60' is no time: write it as 60s, or 5m."),
        (["executor", "--examples", "0"], "0 is not in the range"),
        (["replay", "c1damaged"], "no token of a campaign"),
    ],
)
def test_what_cannot_be_used_ends_with_2(words: list[str], told: str) -> None:
    result = typed(*words)

    assert result.exit_code == 2
    assert told in result.output


def test_a_budget_alone_is_enough() -> None:
    result = typed("executor", "--budget", "4s", "--only", "E02")

    assert result.exit_code == 0, result.output
