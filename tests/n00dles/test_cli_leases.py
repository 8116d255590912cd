"""What `n00dles runs` says of runs that somebody is working on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from n00dles import SQLiteStateStore
from n00dles.cli import build_parser, main
from n00dles.stores import Lease
from tests.n00dles.processes import PATIENCE

FLOW = """
from n00dles import agent

@agent
def node() -> str:
    return "done"
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SQLiteStateStore]:
    """A store with the runs "held" and "free"."""
    store = SQLiteStateStore(tmp_path / "runs.db")

    async def fill() -> Lease:
        for run_id in ("free", "held"):
            await store.load_or_create(run_id, {})
        return await store.acquire("held", "process 42 on web-3", 3600)

    asyncio.run(fill())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.py").write_text(FLOW)
    monkeypatch.setenv("N00DLES_STORE", "sqlite:///runs.db")
    yield store
    asyncio.run(store.aclose())


def test_list_says_who_holds_a_run(store: SQLiteStateStore, capsys: pytest.CaptureFixture[str]) -> None:
    main(["runs", "list"])
    table = capsys.readouterr().out.splitlines()
    main(["runs", "list", "--json"])
    runs = json.loads(capsys.readouterr().out)

    assert table[0].endswith("  HELD BY")
    assert table[1].startswith("held")
    assert table[1].endswith("  process 42 on web-3")
    assert table[2].startswith("free")
    assert table[2].endswith("  (nobody)")
    assert {run["run_id"]: run["held_by"] for run in runs} == {"held": "process 42 on web-3", "free": None}


def test_show_says_who_holds_a_run_and_for_how_long(
    store: SQLiteStateStore, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["runs", "show", "held"])
    held = capsys.readouterr().out
    main(["runs", "show", "free"])
    free = capsys.readouterr().out

    assert "\nheld by   process 42 on web-3 since 2" in held
    assert "to continue" not in held
    assert "\nheld by   nobody: it was interrupted\n" in free
    assert "to continue: n00dles runs resume free PIPELINE" in free


def test_delete_says_that_a_run_is_held_and_frees_it(
    store: SQLiteStateStore, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["runs", "delete", "held", "--yes"])

    assert code == 0
    assert "; held by process 42 on web-3 since " in capsys.readouterr().out
    assert asyncio.run(store.list_leases(["held"])) == []


def test_resume_of_a_held_run_is_refused_and_may_wait(
    store: SQLiteStateStore, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = main(["runs", "resume", "held", "flow.py:node"])
    why = capsys.readouterr().err
    waited = main(["runs", "resume", "held", "flow.py:node", "--wait", "1s"])
    why_again = capsys.readouterr().err
    asyncio.run(store.delete("held"))
    asyncio.run(store.load_or_create("held", {}))
    free = main(["runs", "resume", "held", "flow.py:node", "--wait", f"{PATIENCE}"])

    assert (refused, waited, free) == (1, 1, 0)
    assert why.startswith("n00dles: RunLockedError: run 'held' is held by process 42 on web-3 (this process), since ")
    assert "Wait for it to end (--wait 60 waits up to a minute), or end that process" in why
    assert "waiting for" not in why
    assert why_again.startswith("waiting for process 42 on web-3\nn00dles: RunLockedError: ")
    assert why_again.endswith(" It was waited for, for 1 s.\n")
    assert json.loads(capsys.readouterr().out)["output"] == "done"


def test_resume_of_a_finished_run_says_that_it_is(store: SQLiteStateStore, capsys: pytest.CaptureFixture[str]) -> None:
    main(["runs", "resume", "free", "flow.py:node"])
    first = capsys.readouterr().err
    again = main(["runs", "resume", "free", "flow.py:node"])

    assert "finished already" not in first
    assert again == 0
    assert capsys.readouterr().err.endswith("finished already; nothing was called\n")


@pytest.mark.parametrize(("text", "seconds"), [("60", 60.0), ("0.5", 0.5), ("0", 0.0), ("2m", 120.0), ("3s", 3.0)])
def test_a_wait_is_seconds_or_has_a_unit(text: str, seconds: float) -> None:
    options = build_parser().parse_args(["runs", "resume", "r", "flow.py:node", "--wait", text])

    assert options.wait == seconds
