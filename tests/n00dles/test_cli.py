"""The `n00dles` command, as an operator meets it: what it prints, what it changes, and its exit code."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

from n00dles import PipelineContext, SQLiteStateStore
from n00dles.cli import main

DAY = 86400

ROOT = Path(__file__).resolve().parents[2]
INHERITED = {name: value for name, value in os.environ.items() if not name.startswith("N00DLES")}
ENVIRONMENT = {**INHERITED, "PYTHONPATH": str(ROOT)}

FLOWS = """
from pydantic import BaseModel
from n00dles import agent, pipeline

class Article(BaseModel):
    title: str

@agent
def researcher(topic: str) -> str:
    raise AssertionError("a completed node was called again")

@agent
def writer(research: str) -> Article:
    return Article(title=research.title())

@agent
def broken(research: str) -> str:
    raise RuntimeError("no\\nluck")

content = pipeline(researcher >> writer, name="content")
failing = pipeline(researcher >> broken, name="content")
not_a_pipeline = 3
"""


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with three runs: one half done, one failed, one finished 40 days ago."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delenv("N00DLES_STORE", raising=False)
    monkeypatch.delenv("N00DLES_DEBUG", raising=False)
    asyncio.run(fill(tmp_path / "runs.db"))
    (tmp_path / "flows.py").write_text(FLOWS)
    return "sqlite:///runs.db"


async def fill(path: Path) -> None:
    store = SQLiteStateStore(path)
    await add_run(store, "half", "running", {"researcher": "three facts"})
    failed = await add_run(store, "bad id\x1b[31m", "failed", {})
    failed.error = "RateLimitError: slow\ndown"
    failed.record("researcher").error = "RateLimitError"
    failed.record("researcher").attempts = 3
    await store.save(failed.run_id, failed)
    with mock.patch("time.time", return_value=time.time() - 40 * DAY):
        await add_run(store, "old", "finished", {"researcher": "x", "writer": {"title": "x" * 200}})
    await store.aclose()


async def add_run(store: SQLiteStateStore, run_id: str, status: str, outputs: dict[str, object]) -> PipelineContext:
    ctx = await store.load_or_create(run_id, {"topic": "agentic search"})
    ctx.pipeline, ctx.status, ctx.lives = "content", status, 1  # type: ignore[assignment]
    for node, output in outputs.items():
        record = ctx.record(node)
        record.attempts, record.input_tokens, record.output_tokens, record.duration_ms = 1, 120, 80, 1500.0
        ctx.checkpoint(node, output)
    await store.save(run_id, ctx)
    return ctx


def stored_runs(url: str) -> list[str]:
    async def read() -> list[str]:
        store = SQLiteStateStore(url.removeprefix("sqlite:///"))
        try:
            return sorted(run.run_id for run in await store.list_runs())
        finally:
            await store.aclose()

    return asyncio.run(read())


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "n00dles", *arguments]


def test_list_shows_the_last_updated_run_first(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["runs", "list", "--store", url])

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[0].split() == ["RUN", "ID", "PIPELINE", "STATUS", "NODES", "STARTED", "UPDATED", "HELD", "BY"]
    assert [re.split(r"  +", line)[:4] for line in lines[1:]] == [
        ["bad id\N{REPLACEMENT CHARACTER}[31m", "content", "failed", "0"],
        ["half", "content", "running", "1"],
        ["old", "content", "finished", "2"],
    ]
    assert lines[3].endswith("40 d ago")


def test_list_filters_by_status_and_limit(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["runs", "list", "--store", url, "--json", "--status", "finished"])
    finished = json.loads(capsys.readouterr().out)
    main(["runs", "list", "--store", url, "--json", "--limit", "2"])
    limited = json.loads(capsys.readouterr().out)

    assert [run["run_id"] for run in finished] == ["old"]
    assert [run["run_id"] for run in limited] == ["bad id\x1b[31m", "half"]
    assert limited[1].keys() == {"run_id", "pipeline", "status", "completed", "created_at", "updated_at", "held_by"}


def test_the_store_may_be_named_by_the_environment(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("N00DLES_STORE", url)

    code = main(["runs", "list", "--json"])

    assert (code, len(json.loads(capsys.readouterr().out))) == (0, 3)


def test_a_missing_database_is_an_error_and_is_not_created(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("N00DLES_STORE", raising=False)

    code = main(["runs", "list"])

    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert "there is no database 'n00dles_state.db'" in captured.err
    assert list(tmp_path.iterdir()) == []


def test_show_tells_the_story_of_a_run(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["runs", "show", "half", "--store", url])

    text = capsys.readouterr().out
    facts = dict(re.split(r"  +", line, maxsplit=1) for line in text.split("\n\n")[0].splitlines())
    assert code == 0
    assert (facts["run"], facts["pipeline"], facts["status"]) == ("half", "content", "running")
    assert (facts["tokens"], facts["input topic"]) == ("120 in, 80 out", '"agentic search"')
    assert re.search(r'^1 +researcher +1 +120\+80 +1\.50 s +"three facts"$', text, re.MULTILINE)
    assert "n00dles runs resume half PIPELINE" in text


def test_show_names_what_failed_without_obeying_its_control_characters(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["runs", "show", "bad id\x1b[31m", "--store", url])

    text = capsys.readouterr().out
    assert re.search(r"^- +researcher +3 .*\(not complete: RateLimitError\)$", text, re.MULTILINE)
    assert "last error: RateLimitError: slow down" in text
    assert "\x1b" not in text


def test_show_cuts_a_long_output_and_json_does_not(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["runs", "show", "old", "--store", url])
    text = capsys.readouterr().out
    main(["runs", "show", "old", "--store", url, "--json"])
    record = json.loads(capsys.readouterr().out)

    assert "xxx…" in text
    assert max(map(len, text.splitlines())) < 120
    assert record["completed"]["writer"] == {"title": "x" * 200}
    assert record["order"] == ["researcher", "writer"]


@pytest.mark.parametrize(
    "arguments", [["show", "nope"], ["delete", "nope", "--yes"], ["resume", "nope", "flows.py:content"]]
)
def test_an_unknown_run_is_an_error(url: str, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["runs", *arguments, "--store", url])

    captured = capsys.readouterr()
    assert (code, captured.out) == (1, "")
    assert captured.err.startswith("n00dles: RunNotFoundError: ")
    assert "'nope'" in captured.err
    assert stored_runs(url) == ["bad id\x1b[31m", "half", "old"]


def test_resume_finishes_a_run_without_calling_completed_nodes(url: str) -> None:
    done = subprocess.run(
        command("runs", "resume", "half", "flows.py:content", "--store", url),
        capture_output=True, text=True, check=False, env=ENVIRONMENT,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["run_id"], result["output"]) == ("half", {"title": "Three Facts"})
    assert "already complete: researcher" in done.stderr
    assert "writer started" in done.stderr


DATED = """
from datetime import date
from n00dles import agent, pipeline
from flows import researcher

@agent
def publisher(research: str) -> date:
    return "2026-11-29"

content = pipeline(researcher >> publisher, name="content")
"""


def test_resume_prints_an_output_that_json_has_no_type_for(url: str) -> None:
    Path("dated.py").write_text(DATED)

    done = subprocess.run(
        command("runs", "resume", "half", "dated.py:content", "--store", url),
        capture_output=True, text=True, check=False, env=ENVIRONMENT,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["output"] == "2026-11-29"


def test_resume_says_in_one_paragraph_why_a_node_failed(url: str) -> None:
    done = subprocess.run(
        command("runs", "resume", "half", "flows:failing", "--store", url, "--quiet"),
        capture_output=True, text=True, check=False, env=ENVIRONMENT,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "n00dles: PipelineFailure: run 'half' failed at node 'broken': RuntimeError: no luck."
    )
    assert done.stderr.count("\n") == 1


def test_the_traceback_of_an_error_is_there_for_the_asking(url: str) -> None:
    done = subprocess.run(
        command("runs", "show", "nope", "--store", url),
        capture_output=True, text=True, check=False, env={**ENVIRONMENT, "N00DLES_DEBUG": "1"},
    )  # fmt: skip

    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("flows.py", "is no target: write package.module:name"),
        ("nowhere.py:content", "there is no file 'nowhere.py'"),
        ("nowhere_at_all:content", "cannot be imported: ModuleNotFoundError"),
        ("flows.py:contents", "has no 'contents'. It has: researcher, writer, broken, content, failing."),
        (
            "flows.py:not_a_pipeline",
            "is of type int, not a step. It has: researcher, writer, broken, content",
        ),
        ("leaves.py:content", "cannot be imported: it called sys.exit(0)"),
        ("broken.py:content", "cannot be imported: ZeroDivisionError: division by zero (at "),
    ],
)
def test_a_target_that_cannot_be_used_is_a_usage_error(
    url: str, target: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(0)\n")

    code = main(["runs", "resume", "half", target, "--store", url])

    assert code == 2
    assert complaint in capsys.readouterr().err


def test_delete_without_a_terminal_needs_yes(url: str) -> None:
    refused = subprocess.run(
        command("runs", "delete", "half", "--store", url),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=ENVIRONMENT,
    )  # fmt: skip
    kept = stored_runs(url)
    done = subprocess.run(command("runs", "delete", "half", "--yes", "--store", url), check=False, env=ENVIRONMENT)

    assert (refused.returncode, kept) == (2, ["bad id\x1b[31m", "half", "old"])
    assert "Pass --yes" in refused.stderr
    assert (done.returncode, stored_runs(url)) == (0, ["bad id\x1b[31m", "old"])


@pytest.mark.parametrize(("answer", "code", "kept"), [("y", 0, False), ("no", 1, True), ("", 1, True)])
def test_delete_asks_on_a_terminal(url: str, answer: str, code: int, kept: bool) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command("runs", "delete", "half", "--store", url), stdin=theirs, stderr=subprocess.PIPE, env=ENVIRONMENT
    ) as process:
        os.write(ours, f"{answer}\n".encode())
        _, asked = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)

    assert (process.returncode, "half" in stored_runs(url)) == (code, kept)
    assert b"Delete run 'half' (content, running, 1 completed node" in asked


class OnlyThreeMethods:
    """What the contract asks for, and no more; it notes what is deleted."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def load_or_create(self, run_id: str, inputs: dict[str, object]) -> PipelineContext:
        raise AssertionError("a delete creates nothing")

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        raise AssertionError("a delete saves nothing")

    async def delete(self, run_id: str) -> None:
        self.deleted.append(run_id)


def test_delete_needs_no_store_that_can_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = OnlyThreeMethods()
    monkeypatch.setattr("n00dles.runs_command.open_store", lambda url: store)

    code = main(["runs", "delete", "half", "--yes", "--store", "memory://"])

    assert (code, store.deleted) == (0, ["half"])
    assert capsys.readouterr().out == "deleted run 'half'\n"


def test_prune_removes_old_finished_runs_only(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["runs", "prune", "--older-than", "30d", "--dry-run", "--store", url])
    preview = capsys.readouterr()
    kept = stored_runs(url)
    code = main(["runs", "prune", "--older-than", "30d", "--store", url])
    done = capsys.readouterr()

    assert (preview.out, preview.err) == ("old\n", "1 finished run would be removed\n")
    assert kept == ["bad id\x1b[31m", "half", "old"]
    assert (code, done.out, done.err) == (0, "old\n", "1 finished run removed\n")
    assert stored_runs(url) == ["bad id\x1b[31m", "half"]


@pytest.mark.parametrize(("retention", "removed"), [(None, "old\n"), ("41d", ""), ("39d", "old\n")])
def test_prune_goes_by_the_retention(
    retention: str | None, removed: str, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if retention is not None:
        monkeypatch.setenv("N00DLES_RETENTION", retention)

    assert main(["runs", "prune", "--store", url]) == 0
    assert capsys.readouterr().out == removed


def test_a_retention_that_is_no_time_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("N00DLES_RETENTION", "a month")

    with pytest.raises(SystemExit, match="2"):
        main(["runs", "prune", "--store", url])

    assert "argument --older-than: 'a month' is no time" in capsys.readouterr().err
    assert "old" in stored_runs(url)


def test_prune_keeps_what_is_younger(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["runs", "prune", "--older-than", "41d", "--store", url])

    assert (code, capsys.readouterr().out) == (0, "")
    assert "old" in stored_runs(url)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["runs", "prune", "--older-than", "30"], "'30' is no time"),
        (["runs", "prune", "--older-than", "-1d"], "expected one argument"),
        (["runs", "prune", "--older-than", "9" * 400 + "d"], "that is no time: it has 400 digits"),
        (["runs", "list", "--limit", "0"], "'0' is no positive whole number"),
        (["runs", "list", "--status", "lost"], "invalid choice: 'lost'"),
    ],
)
def test_a_command_line_that_makes_no_sense_exits_with_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)

    assert left.value.code == 2
    assert complaint in capsys.readouterr().err


def test_an_unknown_url_scheme_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["runs", "list", "--store", "mysql://host/db"])

    assert code == 2
    assert "mysql" in capsys.readouterr().err


def test_a_reader_that_leaves_early_gets_no_traceback(url: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command("runs", "list", "--store", url), stdout=writer, stderr=subprocess.PIPE, check=False, env=ENVIRONMENT
    )
    os.close(writer)

    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    "words", [[], ["runs"], *(["runs", name] for name in ("list", "show", "resume", "delete", "prune"))]
)
def test_every_help_page_has_examples_and_exit_codes(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([*words, "--help"])

    text = capsys.readouterr().out
    assert left.value.code == 0
    assert f"examples:\n  n00dles {' '.join(words)}" in text
    assert "exit codes:\n  0  done" in text
