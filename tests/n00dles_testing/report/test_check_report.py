"""Reading reports of checks again: what is none is told, whatever it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from n00dles_testing.cli import main
from n00dles_testing.command_report import run_report
from n00dles_testing.report.check_report import UnreadableReportError, read_check_report
from n00dles_testing.report.json_file import write_json
from tests.n00dles_testing.report.reports import report

ROOT = Path(__file__).parents[3]


def written(folder: Path, form: Any) -> Path:
    path = folder / "report.json"
    path.write_text(json.dumps(form))
    return path


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = written(tmp_path, report(later_field="of a later release"))

    read = read_check_report(path)

    assert (read.target, read.seed, [each.clause for each in read.results]) == (
        "package.stores:Mine",
        0,
        ["S05", "C02"],
    )
    assert read.results[1].findings[0].story == tuple(report()["results"][1]["findings"][0]["story"])


@pytest.mark.parametrize(
    ("form", "complaint"),
    [
        ([], "is no report: its format is not 'n00dles-testing-report'"),
        ({"format": "other"}, "is no report"),
        (report(version=2), "is a report of format version 2, written by 'n00dles-testing 0.1.0'; this release reads"),
        (report(kind="explore"), "is a report of 'explore'; only those of check"),
        (report(results=[]), "is an empty report: no clause was tried"),
        (report(seed="many"), "is a damaged report: seed: "),
        (report(level=7), "is a damaged report: level: "),
        (report(results=[{**report()["results"][0], "verdict": "GREAT"}]), "is a damaged report: results.0.verdict: "),
        ({**report(), "results": "none"}, "is a damaged report: results"),
    ],
)
def test_what_is_no_report_of_this_format_is_told(form: Any, complaint: str, tmp_path: Path) -> None:
    path = written(tmp_path, form)

    with pytest.raises(UnreadableReportError) as told:
        read_check_report(path)

    assert str(told.value).startswith(f"{path} {complaint}")


@pytest.mark.parametrize("text", ["", "no JSON", "[" * 100_000, "\x00"])
def test_a_file_that_is_no_json_is_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)

    with pytest.raises(UnreadableReportError, match="is no report: it is not JSON"):
        read_check_report(path)


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "n00dles_testing", *words],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "500"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_check_writes_the_page_that_report_writes_of_its_json(tmp_path: Path) -> None:
    page, again, form = tmp_path / "check.html", tmp_path / "report.html", tmp_path / "report.json"

    checked = command("check", "memory://", "--clause", "S05", "--json", str(form), "--html", str(page))
    merged = command("report", str(form), "--html", str(again))

    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.splitlines()[-1] == f"report written to {page}"
    assert (merged.returncode, merged.stdout) == (0, f"report written to {again}\n")
    date = json.loads(form.read_text())["written_at"]
    assert again.read_text().count(date) == 1
    assert len(page.read_text()) == len(again.read_text())


def test_report_merges_several_stores_into_one_page(tmp_path: Path) -> None:
    for name in ("First", "Second"):
        write_json(tmp_path / f"{name}.json", "check", report(f"a:{name}"))

    done = command("report", f"{tmp_path}/First.json", f"{tmp_path}/Second.json", "--html", f"{tmp_path}/page.html")

    page = (tmp_path / "page.html").read_text()
    assert done.returncode == 0
    assert page.index("First") < page.index("Second")
    assert "2 of 2 stores break the contract" in page


def test_a_page_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("n00dles_testing.report.json_file.os.fsync", full)

    assert run_report([written(tmp_path, report())], tmp_path / "page.html") == 1

    told = f"the report could not be written to {tmp_path}/page.html: No space left on device\n"
    assert capsys.readouterr() == ("", told)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_check_whose_report_cannot_be_written_ends_badly(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("n00dles_testing.report.json_file.os.fsync", full)
    done = CliRunner().invoke(main, ["check", "memory://", "--clause", "S01", option, str(tmp_path / "report")])

    assert "could not be written" in done.output
    assert done.exit_code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--html", "page.html"], "Missing argument 'FILES...'"),
        (["missing.json", "--html", "page.html"], "'missing.json' does not exist"),
        (["README.md", "--html", "page.html"], "README.md is no report: it is not JSON"),
        (["README.md"], "Missing option '--html'"),
        (["README.md", "--html", "docs"], "docs is a folder"),
    ],
)
def test_report_says_what_it_cannot_use(words: list[str], complaint: str) -> None:
    done = command("report", *words)

    assert done.returncode == 2
    assert complaint in done.stderr
    assert not (ROOT / "page.html").exists()
