"""The command `powerloss`: what it prints, writes, and ends with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from n00dles_testing.cli import main
from n00dles_testing.tracing import why_not

MUTANTS = "n00dles_testing.conformance.mutants"
traced = pytest.mark.skipif(why_not() is not None, reason=f"nothing can be traced here: {why_not()}")


@traced
def test_a_whole_store_has_a_row_for_each_model_and_for_failed_syncs(tmp_path: Path) -> None:
    report = tmp_path / "report.json"

    done = CliRunner().invoke(
        main, ["powerloss", f"{MUTANTS}.correct:JSONFiles", "--budget", "20", "--json", str(report)]
    )

    assert done.exit_code == 0, done.output
    rows = [line.split()[0] for line in done.output.splitlines() if line.endswith("none")]
    assert rows == ["kill", "ext4", "journaled", "strict", "failed"]
    assert "10 calls of the store made 20 changes and 13 syncs" in done.output
    form = json.loads(report.read_text())
    assert form["ok"] is True
    assert [(model["model"], model["findings"]) for model in form["models"]] == [
        ("kill", []),
        ("ext4", []),
        ("journaled", []),
        ("strict", []),
    ]
    assert len(form["failed_syncs"]) == 5


@traced
def test_what_is_lost_is_told_as_a_story() -> None:
    target = f"{MUTANTS}.p02:ForgetsTheFolder"

    done = CliRunner().invoke(main, ["powerloss", target, "--model", "ext4", "--budget", "30"])

    name = b"run-1".hex()
    assert done.exit_code == 1
    assert "\nLOST_ACK  ext4\n" in done.output
    assert "  call 2   save('run-1') with {'a1': {'text': 'cats purr'}} → acknowledged\n" in done.output
    assert f"  lost     the rename of `{name}.new` to `{name}.json` in call `2`\n" in done.output
    assert "1 kind of fault: 30 states of the disk tried" in done.output


def test_a_fault_that_two_models_show_is_one_kind() -> None:
    target = "n00dles_testing.conformance.mutants.p02:ForgetsTheFolder"

    done = CliRunner().invoke(main, ["powerloss", target, "--model", "ext4", "--model", "journaled", "--budget", "30"])

    assert "\nLOST_ACK  ext4\n" in done.output
    assert "\nLOST_ACK  journaled\n" in done.output
    assert "1 kind of fault: 60 states of the disk tried" in done.output


def test_a_store_that_cannot_be_opened_where_we_like_is_not_tried() -> None:
    done = CliRunner().invoke(main, ["powerloss", "memory://"])

    assert done.exit_code == 1
    assert "not tried: the target takes no location" in done.output


def test_a_model_that_there_is_not_is_an_error_of_the_command_line() -> None:
    done = CliRunner().invoke(main, ["powerloss", "memory://", "--model", "fat32"])

    assert done.exit_code == 2
    assert "'fat32' is not one of" in done.output
