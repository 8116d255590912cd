"""Tokens, claims and reports that somebody has written by hand, or damaged: one clear error each, never a traceback."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from n00dles.errors import ConfigurationError
from n00dles_testing.cli import main
from n00dles_testing.command_report import run_report
from n00dles_testing.conformance.claims import Claims
from n00dles_testing.conformance.machine import PlanToken
from n00dles_testing.conformance.machine.operations import Plan
from n00dles_testing.crash.tokens import BadTokenError, Token
from n00dles_testing.report.json_file import enveloped, write_json

LOAD = {"do": "load", "run": 0, "inputs": 0, "second": False}
MANY_DIGITS = "9" * 6000


def token(text: str, prefix: str = "") -> str:
    return prefix + base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def plan_token(operation: object) -> str:
    plan = {"operations": [operation], "ids": "plain", "first_id": 0}
    return token(json.dumps({"target": "memory://", "seed": 0, "plan": plan}), "s1")


def crash_token(**changed: Any) -> str:
    form = {"v": 1, "target": "a:x", "inputs": {}, "store": None, "mode": "fork", "plan": [], **changed}
    return token(json.dumps(form))


@pytest.mark.parametrize(
    "text",
    [
        plan_token({"do": []}),
        plan_token({"do": {}}),
        plan_token({"do": "edit", "run": 0, "back": 0, "what": ["handed"]}),
        token(f'{{"target": "memory://", "seed": {MANY_DIGITS}, "plan": null}}', "s1"),
        PlanToken("memory://", 0, Plan((LOAD,))).encode() + "AAAA",
        token(f'{{"v": 1, "x": {MANY_DIGITS}}}'),
        crash_token(path=["a\0b"]),
        crash_token(target="a\0b.py:x"),
        crash_token(target="\ud800:x"),
        crash_token() + "AAAA",
    ],
)
def test_a_token_that_somebody_has_changed_is_a_usage_error(text: str) -> None:
    came = CliRunner().invoke(main, ["replay", text])

    assert (came.exit_code, type(came.exception)) == (2, SystemExit), came.output
    assert came.output.count("Error: ") == 1


def test_a_token_with_something_behind_it_says_so() -> None:
    behind = PlanToken("memory://", 0, Plan((LOAD,))).encode() + "AAAA"

    with pytest.raises(BadTokenError, match="something follows it"):
        PlanToken.decode(behind)


def test_a_crash_token_with_a_nul_in_a_path_is_damaged() -> None:
    with pytest.raises(BadTokenError, match="of other types than they should be"):
        Token.decode(crash_token(path=["a\0b"]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = " + "[" * 3000, "are nested too deep"),
        (f"x = {MANY_DIGITS}", "are no TOML: Exceeds the limit"),
        ('[known-gaps]\ns05 = "a"\nS05 = "b"\n', "names S05 twice, also as 'S05'"),
    ],
)
def test_claims_that_cannot_be_read_are_an_error_that_names_the_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(text)

    with pytest.raises(ConfigurationError, match=message) as raised:
        Claims.from_file(path)

    assert str(path) in str(raised.value)


def report(**changed: Any) -> dict[str, Any]:
    result = {
        "clause": "S01",
        "title": "t",
        "verdict": "PASS",
        "reason": "",
        "scenarios": 1,
        "seconds": 0.1,
        "findings": [],
    }
    return {
        "target": "memory://",
        "ok": True,
        "level": None,
        "grade": "no level",
        "not_implemented": [],
        "results": [result],
        "notes": [],
        "seed": 0,
        "seconds": 0.1,
        **changed,
    }


def test_a_report_whose_level_does_not_follow_from_its_results_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "r.json", "check", report(level=4))

    with pytest.raises(click.UsageError, match="says level 4, and its results show no level"):
        run_report([tmp_path / "r.json"], tmp_path / "page.html")


def test_a_report_with_two_results_of_one_clause_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "r.json", "check", report(results=report()["results"] * 2))

    with pytest.raises(click.UsageError, match="has two results of S01"):
        run_report([tmp_path / "r.json"], tmp_path / "page.html")


@pytest.mark.parametrize("version", [True, 1.0, "1"])
def test_the_version_of_a_report_is_a_whole_number(tmp_path: Path, version: object) -> None:
    form = {**enveloped("check", report()), "version": version}
    (tmp_path / "r.json").write_text(json.dumps(form))

    with pytest.raises(click.UsageError, match="is a report of format version"):
        run_report([tmp_path / "r.json"], tmp_path / "page.html")
