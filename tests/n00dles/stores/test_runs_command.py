"""What `n00dles runs list` and `show` tell of the runs in each store that workers share."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from n00dles import PipelineFailure, agent, arun, asubmit, pipeline
from n00dles.cli import main
from n00dles.stores import open_store
from tests.n00dles.stores.postgres_server import Postgres

failures: list[str] = []


@agent(retry=2)
async def research(topic: str) -> str:
    if failures:
        raise TimeoutError(failures.pop())
    return f"facts about {topic}"


@agent(retry=1)
async def write(research: str) -> str:
    raise ValueError("no\nluck")


ARTICLE = pipeline(research >> write, name="article")


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store with four runs: one waits, one is held, one was interrupted, and one has failed, in its second life."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/runs.db"
    elif request.param == "postgres":
        url = request.getfixturevalue("postgres").url(uuid.uuid4().hex)
    else:
        url = f"{request.getfixturevalue('redis_server').url}?prefix={uuid.uuid4().hex}:"
    store = asyncio.run(fill(url))
    yield url
    del store  # with which a lease in a file goes, whenever the collector comes by


async def fill(url: str) -> Any:
    store: Any = open_store(url)
    for run_id, stalled in [("waiting", 0), ("held", 1), ("interrupted", 3)]:
        await asubmit(ARTICLE, run_id=run_id, store=store, topic="noodles")
        if stalled:
            ctx = await store.load(run_id)
            ctx.status, ctx.lives, ctx.stalled = "running", stalled + 1, stalled
            cost = ctx.record("research")
            cost.attempts, cost.input_tokens, cost.output_tokens = 1, 120, 80
            ctx.checkpoint("research", "facts")
            await store.save(run_id, ctx)
    await store.acquire("held", "process 42 on web-3", 3600)
    failures[:] = ["the model is slow"]
    for _ in range(2):
        with pytest.raises(PipelineFailure):
            await arun(ARTICLE, run_id="failed", store=store, topic="noodles")
    await store.aclose()
    return store


@pytest.mark.parametrize(
    "command",
    [
        ["list"],
        ["show", "r"],
        ["delete", "r", "--yes"],
        ["prune"],
        ["prune", "--dry-run"],
        ["resume", "r", f"{__file__}:ARTICLE", "--wait", "1"],
    ],
)
def test_a_schema_that_is_mistyped_is_told_and_is_not_made(
    command: list[str], postgres: Postgres, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = f"mistyped-{uuid.uuid4().hex}"

    code = main(["runs", *command, "--store", postgres.url(schema)])

    made = postgres.execute("SELECT nspname FROM pg_namespace")
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert f"there is no store in the schema '{schema}' (?schema=) of the database 'postgresql://" in captured.err
    assert "Name the store of your runs with --store" in captured.err
    assert (schema,) not in made


def shown(url: str, run_id: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["runs", "show", run_id, "--store", url]) == 0
    return capsys.readouterr().out


def test_list_says_who_holds_what(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["runs", "list", "--store", url])
    rows = [re.split(r"  +", line) for line in capsys.readouterr().out.splitlines()]
    main(["runs", "list", "--store", url, "--json", "--status", "running"])
    running = json.loads(capsys.readouterr().out)

    assert rows[0][-1] == "HELD BY"
    assert {row[0]: (*row[1:4], *row[6:]) for row in rows[1:]} == {
        "waiting": ("article", "waiting", "0"),
        "held": ("article", "running", "1", "process 42 on web-3"),
        "interrupted": ("article", "running", "1", "(nobody)"),
        "failed": ("article", "failed", "1"),
    }
    assert {run["run_id"]: run["held_by"] for run in running} == {"held": "process 42 on web-3", "interrupted": None}


def test_show_tells_of_a_run_that_somebody_works_on(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(url, "held", capsys)

    facts = dict(re.split(r"  +", line, maxsplit=1) for line in text.split("\n\n")[0].splitlines())
    assert (facts["run"], facts["pipeline"], facts["status"]) == ("held", "article", "running")
    assert facts["held by"].startswith("process 42 on web-3 since 2")
    assert re.fullmatch(r"2 \(revision \d+, [\d.]+ s in all\)", facts["lives"])
    assert (facts["tokens"], facts["input topic"]) == ("120 in, 80 out", '"noodles"')
    assert re.search(r'^1 +research +1 +120\+80 +0\.00 s +"facts"$', text, re.MULTILINE)
    assert "to continue" not in text


def test_show_tells_of_a_run_that_was_interrupted_again_and_again(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(url, "interrupted", capsys)

    assert re.search(r"^held by +nobody: it was interrupted$", text, re.MULTILINE)
    assert re.search(r"^lives +4 \(.*, 3 in a row without a completed node\)$", text, re.MULTILINE)
    assert text.endswith("to continue: n00dles runs resume interrupted PIPELINE\n")


def test_show_tells_of_what_failed_and_of_what_was_overcome(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(url, "failed", capsys)

    assert re.search(r"^lives +2 ", text, re.MULTILINE)
    assert re.search(r'^1 +research +2 +0\+0 +[\d.]+ s +"facts about noodles"$', text, re.MULTILINE)
    assert re.search(r"^- +write +2 .*\(not complete: ValueError: no luck\)$", text, re.MULTILINE)
    assert (
        "\n\nerrors of attempts before the one that completed:\n  research: TimeoutError: the model is slow\n\n" in text
    )
    assert "last error: run 'failed' failed at node 'write': ValueError: no luck." in text
    assert "held by" not in text


def test_show_says_what_a_waiting_run_waits_for(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(url, "waiting", capsys)

    assert "(no node was started)" in text
    assert text.endswith("it waits for a worker: n00dles worker PIPELINE\n")
