"""What a command does where its process lacks something: a stream, docstrings, descriptors, room for its output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from n00dles.errors import ConfigurationError
from n00dles_testing.cli import main
from n00dles_testing.conformance import check_store

ROOT = Path(__file__).parents[2]
CHECK = "check n00dles_testing.conformance.mutants.correct:JSONFiles --clause S05"


def shell(redirected: str, before: str = "") -> subprocess.CompletedProcess[str]:
    line = f"{before} {sys.executable} -m n00dles_testing {CHECK} {redirected}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(line, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("closed", ["2>&- <&-", ">&- <&-", ">&- 2>&- <&-"])
def test_a_store_is_checked_though_standard_streams_are_closed(closed: str) -> None:
    ended = shell(closed)

    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_an_output_that_cannot_be_written_is_told_in_a_sentence() -> None:
    ended = shell("> /dev/full")

    assert ended.returncode == 1
    assert ended.stderr == "Error: the output could not be written: No space left on device\n"


def test_a_process_without_docstrings_is_told_that_they_are_needed() -> None:
    ended = shell("", "PYTHONOPTIMIZE=2")

    assert ended.returncode == 2
    assert ended.stderr.startswith("Error: Python runs without docstrings here")


def test_too_few_descriptors_are_told_in_a_sentence() -> None:
    ended = shell("", "ulimit -n 7;")

    assert ended.returncode == 2
    assert ended.stderr == "Error: Too many open files: this needs more descriptors than ulimit -n allows.\n"


@pytest.mark.parametrize("limit", ["nan", "inf", "1e308"])
@pytest.mark.parametrize("command", [["check"], ["faults"], ["explore"]])
def test_what_is_no_number_of_seconds_is_refused(command: list[str], limit: str) -> None:
    option = "--time-limit" if command == ["explore"] else "--limit"

    result = CliRunner().invoke(main, [*command, "memory://", option, limit])

    assert result.exit_code == 2
    assert f"Invalid value for '{option}'" in result.output


def test_a_limit_that_is_none_blames_no_store() -> None:
    with pytest.raises(ConfigurationError, match="the limit nan is no number of seconds"):
        check_store("memory://", clauses=["S05"], limit=float("nan"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--json", "x" * 10_000], "(10000 characters) cannot be written to: File name too long"),
        (["--json", "both", "--html", "both"], "--json and --html both name both"),
        (["--clause", ""], "no check for an empty id"),
    ],
)
def test_what_cannot_be_meant_is_told_shortly(words: list[str], said: str) -> None:
    result = CliRunner().invoke(main, ["check", "memory://", *words])

    assert result.exit_code == 2
    assert said in result.output
    assert len(result.output) < 2500


@pytest.mark.parametrize("target", ["x" * 10_000 + ":open_store", ".:open_store"])
def test_a_target_that_is_none_is_told_shortly(target: str) -> None:
    result = CliRunner().invoke(main, ["check", target])

    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert len(result.output) < 2500
    assert "argument is required" not in result.output


def test_claims_in_a_pipe_are_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    result = CliRunner().invoke(main, ["check", "memory://", "--claims", str(tmp_path / "pipe")])

    assert result.exit_code == 2
    assert "no ordinary file" in result.output
