"""The report for other programs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from n00dles_testing.report.json_file import check_writable, json_text, write_json, written_whole


def test_a_report_has_a_format_a_version_and_its_content(tmp_path: Path) -> None:
    path = tmp_path / "report.json"

    write_json(path, "check", {"target": "memory://", "level": 1})

    report = json.loads(path.read_text())
    assert (report["format"], report["version"], report["kind"]) == ("n00dles-testing-report", 1, "check")
    assert (report["target"], report["level"]) == ("memory://", 1)


def test_any_text_from_a_store_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "report.json"

    write_json(path, "check", {"target": "\ud800 \x00 \u202e 猫"})

    assert path.read_bytes().isascii()
    assert json.loads(path.read_text())["target"] == "\ud800 \x00 \u202e 猫"


def test_a_failed_write_leaves_the_older_report_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.json"
    write_json(path, "check", {"run": "first"})

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("n00dles_testing.report.json_file.os.fsync", full)
    said = written_whole(path, json_text("check", {"run": "second"}))

    assert said == (False, f"the report could not be written to {path}: No space left on device")
    assert json.loads(path.read_text())["run"] == "first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]


def test_a_report_can_be_read_by_whom_the_umask_lets(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    before = os.umask(0o027)
    try:
        write_json(path, "check", {})
    finally:
        os.umask(before)

    assert path.stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_written_is_known_beforehand(tmp_path: Path) -> None:
    assert check_writable(tmp_path / "new.json") is None
    assert check_writable(tmp_path) == f"{tmp_path} is a folder; name a file in it"
    assert check_writable(tmp_path / "no" / "x.json") == f"there is no folder {tmp_path / 'no'}"
