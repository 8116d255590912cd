"""The command `powerloss`: what it prints, writes, and ends with."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from n00dles_testing import show_powerloss
from n00dles_testing.cli import main
from n00dles_testing.conformance.losing_power import PowerLossOfStore
from n00dles_testing.powerloss.brief import brief
from n00dles_testing.report.terminal import StepDisplay, console_for
from n00dles_testing.tracing import why_not

MUTANTS = "n00dles_testing.conformance.mutants"
HANGS = """
import time
from n00dles_testing.conformance.mutants.p01 import RenamesWithoutASync


class Hangs(RenamesWithoutASync):
    def read(self, run_id):
        try:
            return super().read(run_id)
        except ValueError:
            time.sleep(600)
"""
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
    assert "12 calls of the store made 26 changes and 17 syncs" in done.output
    form = json.loads(report.read_text())
    assert form["ok"] is True
    assert [(model["model"], model["findings"]) for model in form["models"]] == [
        ("kill", []),
        ("ext4", []),
        ("journaled", []),
        ("strict", []),
    ]
    assert len(form["failed_syncs"]) == 5
    assert [(each["clause"], each["verdict"]) for each in form["clauses"]] == [
        ("P01", "PASS"),
        ("P02", "PASS"),
        ("P03", "PASS"),
    ]
    assert form["conclusion"].startswith("no fault found; ")


@traced
def test_what_is_lost_is_told_as_a_story() -> None:
    target = f"{MUTANTS}.p02:ForgetsTheFolder"

    done = CliRunner().invoke(main, ["powerloss", target, "--model", "ext4", "--budget", "30"])

    name = brief(b"run-1".hex())
    assert done.exit_code == 1
    assert "\nLOST_ACK  ext4\n" in done.output
    assert "  call 2   save('run-1') with {'a1': {'text': 'cats purr'}} → acknowledged\n" in done.output
    assert f"  lost     the rename of `{name}.new` to `{name}.json` in call `2`\n" in done.output
    assert "1 kind of fault found; 30 disk states tried" in done.output
    assert "  fix      sync the folder (os.open it, and os.fsync the descriptor) after the rename of " in done.output
    assert f"  replay   n00dles-testing powerloss {target} --model=ext4 --budget 30 --seed 0\n" in done.output
    assert "\nP02 FAIL\n" in done.output
    assert "\nP01 UNKNOWN: not tried under kill, journaled" in done.output


def test_a_fault_that_two_models_show_is_one_kind() -> None:
    target = "n00dles_testing.conformance.mutants.p02:ForgetsTheFolder"

    done = CliRunner().invoke(main, ["powerloss", target, "--model", "ext4", "--model", "journaled", "--budget", "30"])

    assert "\nLOST_ACK  ext4\n  also under journaled\n" in done.output
    assert done.output.count("  found    ") == 1
    assert "failed sync: not tried, since models were named" in done.output
    assert "1 kind of fault found; 60 disk states tried" in done.output


@traced
def test_a_fault_under_a_model_that_was_named_counts_though_it_is_not_required() -> None:
    target = f"{MUTANTS}.p02:ForgetsTheFolder"

    done = CliRunner().invoke(main, ["powerloss", target, "--model", "strict", "--budget", "30"])

    assert "\nLOST_ACK  strict\n" in done.output
    assert "1 kind of fault found; 30 disk states tried" in done.output
    assert done.exit_code == 1


@traced
def test_a_store_that_hangs_is_told_after_three_states(tmp_path: Path) -> None:
    store = tmp_path / "hanging_store.py"
    store.write_text(HANGS)

    done = CliRunner().invoke(
        main, ["powerloss", f"{store}:Hangs", "--model", "journaled", "--budget", "40", "--limit", "0.2"]
    )

    assert done.exit_code == 1
    assert "WEDGED in " in done.output, done.output
    assert "journaled: it hung in 3 states (0.2 s each, see --limit), so the rest was not tried" in done.output
    assert "it did not come back within 0.2 s" in done.output
    assert " --budget 40 --seed 0 --limit 0.2\n" in done.output


def test_without_a_terminal_a_line_is_printed_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = iter(range(0, 1000, 2))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(now)))

    with StepDisplay(console_for(), "states") as display:
        progress = show_powerloss.PowerLossProgress("store", display, ["kill", "ext4"], 100)
        for tried in range(10):
            progress.on_state("kill", 10 * tried)
        for tried in range(1, 5):
            progress.on_state("failed sync", tried)

    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "cutting the power under store"
    assert 2 < len(lines) < 8
    assert re.fullmatch(r"kill: \d+ states of the disk tried, \d+ s so far, up to \d+ s left", lines[0])
    assert re.fullmatch(r"failed sync: \d states of the disk tried, \d+ s so far", lines[-1])


def test_what_is_found_only_under_strict_is_counted_apart() -> None:
    strict = {"model": "strict", "tried": 2, "findings": [{"kind": "LOST_ACK", "cause": ["rename"], "further": []}]}
    kill = {"model": "kill", "tried": 1, "findings": []}
    found = PowerLossOfStore("store", 0, 600, models=(kill, strict))

    said = show_powerloss.conclusion(found)

    assert said.startswith("no fault under the required models, 1 under strict, found; 3 disk states tried")


def finding(kind: str, cause: str, *further: str) -> dict[str, Any]:
    """Return what `power_told` tells of a fault, as far as it matters here."""
    others = [{"cause": [each], "words": f"{each} is lost", "fix": f"sync the {each}"} for each in further]
    told = {"kind": kind, "cause": [cause], "further": others, "words": f"{cause} is lost", "fix": f"sync the {cause}"}
    lists = dict.fromkeys(("lost", "on_disk", "details", "acknowledged", "invoked"), ())
    return {**told, **lists, "count": 1, "message": f"it fails by {cause}"}


def test_a_kind_that_is_found_under_the_required_models_is_not_counted_for_strict_again() -> None:
    ext4 = {"model": "ext4", "tried": 1, "findings": [finding("LOST_ACK", "rename")]}
    both = [finding("CORRUPT", "data"), finding("LOST_ACK", "creation")]
    strict = {"model": "strict", "tried": 2, "findings": both}

    some = show_powerloss.conclusion(PowerLossOfStore("store", 0, 600, models=(ext4, strict)))
    same = show_powerloss.conclusion(PowerLossOfStore("store", 0, 600, models=(ext4, {**strict, "findings": both[1:]})))

    assert some.startswith("1 kind of fault under the required models, 1 more under strict, found; ")
    assert same.startswith("1 kind of fault found; ")


def test_another_cause_that_only_another_model_shows_names_it_and_has_its_own_replay(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ext4 = {"model": "ext4", "tried": 1, "findings": [finding("LOST_ACK", "rename", "removal")]}
    journaled = {"model": "journaled", "tried": 1, "findings": [finding("LOST_ACK", "rename", "removal", "data")]}
    models = [{**report, "at_least": None, "hung": 0, "missed": 0, "unfollowed": ""} for report in (ext4, journaled)]

    show_powerloss.print_report(console_for(), PowerLossOfStore("store", 0, 600, models=tuple(models)), [])

    told = capsys.readouterr().out.splitlines()
    at = told.index("  also under journaled")
    assert told[at - 1] == "LOST_ACK  ext4"
    begins = told.index("  fix      sync the rename")
    assert told[begins : begins + 7] == [
        "  fix      sync the rename",
        "  also     removal is lost",
        "  fix      sync the removal",
        "  replay   n00dles-testing powerloss store --model=ext4 --budget 600 --seed 0",
        "  also     under journaled: data is lost",
        "  fix      sync the data",
        "  replay   n00dles-testing powerloss store --model=journaled --budget 600 --seed 0",
    ]


def test_a_store_that_cannot_be_opened_where_we_like_is_not_tried() -> None:
    done = CliRunner().invoke(main, ["powerloss", "memory://"])

    assert done.exit_code == 1
    assert "not tried: the target takes no location" in done.output


def test_a_server_is_not_tried_and_its_password_is_in_no_report(tmp_path: Path) -> None:
    reports = tmp_path / "r.json", tmp_path / "r.html"
    url, options = "postgresql://app:s3cret@127.0.0.1:1/runs?timeout=0.1", ["--json", reports[0], "--html", reports[1]]

    done = CliRunner().invoke(main, ["powerloss", url, *map(str, options)])

    assert done.exit_code == 1
    assert "cutting the power under postgresql://app:…@127.0.0.1:1/runs?timeout=0.1" in done.output
    assert "its runs lie with a server" in done.output
    assert "share-a-store.md says what it has to be told" in done.output
    for text in (done.output, *(report.read_text() for report in reports)):
        assert "s3cret" not in text


def test_a_model_that_there_is_not_is_an_error_of_the_command_line() -> None:
    done = CliRunner().invoke(main, ["powerloss", "memory://", "--model", "fat32"])

    assert done.exit_code == 2
    assert "'fat32' is not one of" in done.output
