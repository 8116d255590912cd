"""The command, as it is typed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from n00dles.command_inputs import InputSyntaxError, read_inputs
from n00dles_testing.cli import main
from n00dles_testing.commands.explore import _HOWS
from n00dles_testing.conformance import implemented
from n00dles_testing.crash.points import How, Point
from n00dles_testing.crash.tokens import Token

ROOT = Path(__file__).parents[2]
BODY = f"{ROOT}/docs/examples/body.py:body_pipeline"
BROKEN = "n00dles_testing.conformance.mutants.s05:GivesOutItsCache"


def command(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, list(arguments), prog_name="n00dles-testing")


def test_check_says_what_it_found_and_ends_with_0(tmp_path: Path) -> None:
    done = command("check", "memory://", "--json", f"{tmp_path}/report.json")

    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["kind"], report["ok"], report["problems"]) == ("check", True, [])
    assert [result["clause"] for result in report["results"]] == [clause.id for clause in implemented()]
    passed = sum(result["verdict"] == "PASS" for result in report["results"])
    tried = sum(result["verdict"] not in ("NOT APPLICABLE", "NOT RUN") for result in report["results"])
    assert f"of {tried} clauses tried, {passed} passed in " in done.output
    assert f"\n{report['grade'].splitlines()[0]}\n" in done.output
    assert " leases       found, not claimed\n" in "\n".join(line.rstrip() for line in done.output.splitlines())


def test_check_ends_with_1_and_a_story_if_a_clause_fails() -> None:
    done = command("check", BROKEN, "--clause", "S05", "--clause", "s01", "--seed", "3")

    assert done.exit_code == 1
    assert "S05  inputs['topic'] is 'spoiled', not 'cats'" in done.output
    assert f"replay   n00dles-testing check {BROKEN} --clause S05 --seed 3" in done.output
    assert "no level: the store breaks S05\n" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check"], "Missing argument 'TARGET'"),
        (["check", "runs.db"], "'runs.db' is no store: write a URL (sqlite:///runs.db)"),
        (["check", "sqlit:///runs.db"], "Did you mean sqlite://?"),
        (["check", "sqlite:/runs.db"], "Did you mean sqlite:///runs.db?"),
        (["check", "memory:"], "Did you mean memory://?"),
        (["check", "no.such.module:store"], "module 'no.such.module' cannot be imported"),
        (["check", "math:pi"], "math:pi is of type float"),
        (["check", "collections:Counter"], "no method load_or_create, save, delete"),
        (["check", "memory://", "--clause", "S5"], "Did you mean S05?"),
        (["check", "memory://", "--clause", "s-5"], "Did you mean S05?"),
        (["check", "docs/examples/my_store.py"], "write docs/examples/my_store.py:open_store, the function that opens"),
        (["check", "nowhere.py"], "'nowhere.py' names a file, and no function in it: write nowhere.py:open_store"),
        (["report", "README.md", "./README.md", "--html", "never.html"], "README.md is named twice"),
        (["replay", "s1garbage"], "this is no token that a failure of S17 has printed, or a damaged one"),
        (["check", "memory://", "--clause", "S99"], "no check for S99; this release checks S01"),
        (["check", "memory://", "--json", "/no/such/folder/x.json"], "there is no folder /no/such/folder"),
        (["explore", "no.such.module:x"], "module 'no.such.module' cannot be imported"),
        (["explore", BODY, "--input", "text"], "write name=text, or name:=json"),
        (["explore", BODY, "--input", "text:=[", "--llm", "off"], "is no JSON"),
        (["explore", BODY, "--input", "topic=x", "--llm", "off"], "the inputs do not fit pipeline 'body'"),
        (
            ["explore", BODY, "--input", "text=x", "--store", "sqlite:////nowhere/x.db", "--llm", "off"],
            f"the store sqlite:////nowhere/x.db cannot be used for {BODY}: StateStoreError: the folder of the SQLite",
        ),
        (["explore", BODY, "--input", "text=x", "--at", "never", "--llm", "off"], "no crash point 'never'"),
        (["replay", "nonsense"], "'nonsense' is no token"),
        (["nonsense"], "No such command 'nonsense'"),
    ],
)
def test_what_cannot_be_used_ends_with_2_and_says_why(arguments: list[str], message: str) -> None:
    done = command(*arguments)

    assert done.exit_code == 2, done.output
    assert message in done.output
    assert "Traceback" not in done.output


def test_explore_shows_every_crash_point_and_ends_with_0(tmp_path: Path) -> None:
    report = tmp_path / "report.json"

    done = command("explore", BODY, "--input", "text=a b a", "--at", "after*:count", "--json", str(report))

    assert done.exit_code == 0, done.output
    assert "2 of 2 crash points killed by SIGKILL" in done.output
    assert ", 0 re-calls" in done.output
    content = json.loads(report.read_text())
    assert (content["kind"], content["verdict"]) == ("explore", "PASS")
    assert [row["killed_by"] for row in content["rows"]] == [9, 9]
    assert content["inputs"] == {"text": "a b a"}


def test_a_simulated_death_is_not_called_a_kill() -> None:
    done = command("explore", BODY, "--input", "text=a", "--at", "before:split", "--mode", "in-process")

    assert done.exit_code == 0, done.output
    assert "1 of 1 crash points ended by a simulated death, 0 re-calls" in done.output
    assert "SIGKILL" not in done.output


def test_what_else_is_done_than_killing_is_counted_apart(tmp_path: Path) -> None:
    report = tmp_path / "report.json"

    done = command(
        *("explore", BODY, "--input", "text=a b a", "--at", "after:split", "--how", "kill", "--how", "cancel"),
        *("--how", "interrupt", "--budget", "30s", "--json", str(report)),
    )

    assert done.exit_code == 0, done.output
    assert "1 of 1 crash points killed by SIGKILL, 2 of 2 disturbed otherwise (1 interrupt, 1 cancel)" in done.output
    assert "cancelled after split, not saved" in done.output
    assert [row["how"] for row in json.loads(report.read_text())["rows"]] == ["kill", "interrupt", "cancel"]


def test_a_point_that_says_what_is_done_there_needs_no_other_option() -> None:
    done = command("explore", BODY, "--input", "text=a b a", "--at", "refused@before-save:split")

    assert done.exit_code == 0, done.output
    assert "1 of 1 disturbed otherwise (1 refused), 0 re-calls" in done.output


def test_a_token_carries_what_is_done() -> None:
    token = Token(BODY, {"text": "a b a"}, None, "fork", (Point.parse("cancel@during:split"),))

    done = command("replay", token.encode())

    assert done.exit_code == 0, done.output
    assert "PASS  cancelled during split" in done.output
    assert "raised CancelledError" in done.output


def test_the_command_line_knows_all_that_can_be_done() -> None:
    assert tuple(How) == _HOWS


FORGETFUL = """
from n00dles import agent, pipeline

FACTS = []

@agent
def collect(topic: str) -> list[str]:
    FACTS.append(topic)
    return FACTS

@agent
def publish(facts: list[str]) -> str:
    return f"{len(FACTS)} facts"

news = pipeline(collect >> publish, name="news")
"""


def test_a_failure_prints_one_line_that_replays_it_elsewhere(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (here, elsewhere):
        folder.mkdir()
        (folder / "news.py").write_text(FORGETFUL)

    first = in_folder(
        here, "explore", f"{here}/news.py:news", "--input", "topic=cats", "--lives", "2", "--budget", "12"
    )
    lines = [line.split() for line in first.stdout.splitlines() if line.strip().startswith("replay ")]
    again = in_folder(elsewhere, *lines[-1][2:])

    assert (first.returncode, again.returncode) == (1, 1)
    assert lines[-1][:3] == ["replay", "n00dles-testing", "replay"]
    assert "1 of 1 crash points killed by SIGKILL" in again.stdout
    assert (
        'E04  the resumed run returned "0 facts" at output, where the undisturbed one returned "1 facts".'
        in again.stdout
    )
    assert "collect ✓  saved" in again.stdout


def in_folder(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "300", "PYTHONUTF8": "1"}
    line = [sys.executable, "-m", "n00dles_testing", *words]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_replay_tells_the_story_of_a_scenario_that_went_well() -> None:
    from n00dles_testing.crash import Point
    from n00dles_testing.crash.tokens import Token

    plan = (Point.parse("after-save:split"), Point.parse("during:count"))

    done = command("replay", Token(BODY, {"text": "a b"}, None, "fork", plan).encode())

    assert done.exit_code == 0, done.output
    assert "after the save of split, then during count" in done.output
    assert "life 3   count ✓" in done.output


def test_explore_counts_what_the_models_were_paid() -> None:
    target = f"{ROOT}/docs/examples/content.py:content_pipeline"

    done = command("explore", target, "--input", "topic=cats", "--at", "during:writer", "--at", "before:editor")

    assert done.exit_code == 0, done.output
    rows = [" ".join(line.split()) for line in done.output.splitlines()]
    assert "during writer SIGKILL researcher 4 0 yes PASS" in rows
    assert "before editor SIGKILL researcher, writer 3 0 yes PASS" in rows
    assert "undisturbed it pays for 3 calls" in done.output


@pytest.mark.parametrize("words", [[], ["check"], ["explore"], ["replay"], ["llm-server"]])
def test_every_help_has_examples(words: list[str]) -> None:
    done = command(*words, "--help")

    assert done.exit_code == 0
    assert "Examples:\n  " in done.output.replace("    n00dles", "  n00dles").replace("  Examples", "Examples")
    assert all(len(line) <= 120 for line in done.output.splitlines())


def test_version() -> None:
    done = command("--version")

    assert done.output.startswith("n00dles-testing ")


def test_inputs_are_text_unless_they_are_said_to_be_json() -> None:
    typed = ["topic=42", "depth:=3", 'tags:=["a"]', "flag:=true", "empty=", "both=a=b", "colon=a:=b", "lines=a\nb"]

    assert read_inputs(typed) == {
        "topic": "42",
        "depth": 3,
        "tags": ["a"],
        "flag": True,
        "empty": "",
        "both": "a=b",
        "colon": "a:=b",
        "lines": "a\nb",
    }


def test_typed_inputs_win_over_those_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "inputs.json"
    file.write_text('{"topic": "cats", "depth": 1}')

    assert read_inputs(["depth:=2"], file) == {"topic": "cats", "depth": 2}


@pytest.mark.parametrize(
    ("typed", "file", "message"),
    [
        (["topic"], "{}", "'topic' is no input"),
        (["=x"], "{}", "is no input"),
        (["a b=x"], "{}", "is no input"),
        (["x:=nan"], "{}", "is no JSON"),
        (["x:=NaN"], "{}", "NaN is not JSON. Write x=NaN for a text"),
        (["x=1", "x=2"], "{}", "input 'x' is given twice"),
        ([], "[1]", "holds a JSON list"),
        ([], "{", "is no JSON"),
    ],
)
def test_inputs_that_cannot_be_read_say_how_to_write_them(
    typed: list[str], file: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "inputs.json"
    path.write_text(file)

    with pytest.raises(InputSyntaxError) as caught:
        read_inputs(typed, path)

    assert message in str(caught.value)


def test_a_program_runs_against_the_llm_server_and_its_exit_code_is_kept() -> None:
    script = "import os, sys; print(os.environ['OPENAI_BASE_URL']); sys.exit(3)"

    done = subprocess.run(
        [sys.executable, "-m", "n00dles_testing", "llm-server", "--", sys.executable, "-c", script],
        capture_output=True, text=True, cwd=ROOT, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 3
    assert done.stdout.startswith("http://127.0.0.1:")
    assert done.stderr.strip() == "0 calls, 0 tokens would have been paid for"


def test_the_llm_server_serves_until_it_is_interrupted() -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "n00dles_testing", "llm-server"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("export OPENAI_BASE_URL=http://127.0.0.1:")
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=30)
    finally:
        server.kill()
        server.communicate()

    assert server.returncode == 0
    assert "would have been paid for" in said


def test_an_interrupted_check_ends_its_processes_and_leaves_no_folder(tmp_path: Path) -> None:
    store = ROOT / "tests" / "n00dles_testing" / "conformance" / "hostile_stores.py"
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    check = subprocess.Popen(
        [sys.executable, "-m", "n00dles_testing", "check", f"{store}:HangsInAThread", "--clause", "S02"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment,
    )  # fmt: skip
    try:
        while not list(tmp_path.glob("n00dles-check-*/worker-1/S02-3")):
            assert check.poll() is None, check.communicate()
            time.sleep(0.05)
        check.send_signal(signal.SIGINT)
        _, said = check.communicate(timeout=30)
    finally:
        check.kill()
        check.communicate()

    assert check.returncode == 130
    assert said == "interrupted; the store's processes are ended and the temporary folder is removed\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seconds", ["inf", "nan", "0", "-1", "1e300"])
def test_explore_refuses_a_time_limit_that_is_none(seconds: str) -> None:
    done = command("explore", BODY, "--time-limit", seconds)

    assert done.exit_code == 2
    assert "--time-limit" in done.output or "is no time for a life" in done.output


def test_the_command_works_with_the_oldest_click_that_it_asks_for() -> None:
    """Types of parameters are generic since click 8.2, and 8.1 is enough."""
    as_it_was = (
        "import click\n"
        "def refuse(*_): raise TypeError(\"type 'ParamType' is not subscriptable\")\n"
        "click.ParamType.__class_getitem__ = refuse\n"
        "import n00dles_testing.cli\n"
    )

    done = subprocess.run([sys.executable, "-c", as_it_was], capture_output=True, text=True, cwd=ROOT, check=False)

    assert done.returncode == 0, done.stderr


def test_a_command_line_is_read_without_what_it_would_start() -> None:
    imported = "import sys, n00dles_testing.cli; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", imported], capture_output=True, text=True, cwd=ROOT, check=True)

    ours = {name for name in done.stdout.split() if name.startswith("n00dles")}
    assert {name for name in ours if not name.startswith("n00dles_testing.commands")} == {
        "n00dles_testing",
        "n00dles_testing.cli",
        "n00dles_testing.exits",
        "n00dles_testing.surroundings",
    }
    assert {"asyncio", "httpx", "rich", "sqlite3"}.isdisjoint(done.stdout.split())


def test_check_lists_the_clauses_without_a_target() -> None:
    done = command("check", "--list")

    assert done.exit_code == 0
    assert done.output.startswith("level 1 (contract)\n  S01  an unknown run gets its inputs")
    assert "\nlevel 4 (shared)\n  W01  many processes with runs of their own" in done.output


def test_check_shows_known_gaps_claims_and_reader_and_ends_as_they_say(tmp_path: Path) -> None:
    claims = tmp_path / "claims.toml"
    claims.write_text('[claims]\nlevel = 1\n[known-gaps]\nS05 = "for speed"\n')
    reader = "n00dles_testing.conformance.mutants.out_of_band:read_json_file"

    done = command("check", BROKEN, "--clause", "S05", "--clause", "S02", "--claims", str(claims), "--reader", reader)

    assert done.exit_code == 0, done.output
    assert "known gap: for speed; inputs['topic'] is" in " ".join(done.output.split())
    assert "S05 FAIL (known gap: for speed)\n" in done.output
    assert f" records compared with what the out-of-band reader {reader} saw\n" in done.output
    assert f"--clause S05 --seed 0 --claims {claims} --reader {reader}\n" in done.output
    assert "level 1 (contract) is claimed; whether it is reached cannot be told from what was checked" in done.output


def test_check_says_what_fails_besides_the_clauses(tmp_path: Path) -> None:
    claims = tmp_path / "claims.toml"
    claims.write_text('[known-gaps]\nS01 = "once"\n')

    done = command("check", "memory://", "--clause", "S01", "--claims", str(claims))

    assert done.exit_code == 1
    assert f"fails: S01 is declared as a known gap (once), and passed: remove it from {claims}" in done.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--claims", "missing.toml"], "File 'missing.toml' does not exist"),
        (["--reader", "no.such.module:read"], "module 'no.such.module' cannot be imported"),
    ],
)
def test_claims_and_readers_that_are_none_end_with_2(options: list[str], message: str) -> None:
    done = command("check", "memory://", "--clause", "S01", *options)

    assert done.exit_code == 2
    assert message in done.output
