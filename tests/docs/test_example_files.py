"""The examples do what they say, and do nothing when they are only imported."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from n00dles import CorruptCheckpointError, PipelineContext, StaleContextError
from n00dles.targets import load_target

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    from n00dles_testing.llm import LLMServer

    with LLMServer() as server:
        yield {**os.environ, **server.environment, "PYTHONPATH": str(ROOT)}


def python(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_there_are_examples() -> None:
    assert {path.name for path in EXAMPLES} >= {
        "body.py",
        "content.py",
        "home_made_loop.py",
        "my_store.py",
        "triage.py",
    }


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_import_prints_nothing_and_leaves_nothing(example: Path, tmp_path: Path) -> None:
    without_key = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = python(tmp_path, without_key, "-c", f"import runpy; runpy.run_path({str(example)!r}, run_name='imported')")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("body.py", "'the' occurs 2 times"),
        ("content.py", " tokens, "),
        ("home_made_loop.py", "published 7 words"),
        ("triage.py", "{'sent': "),
    ],
)
def test_an_example_runs(name: str, said: str, tmp_path: Path, environment: dict[str, str]) -> None:
    done = python(tmp_path, environment, str(ROOT / "docs" / "examples" / name))

    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def open_store(folder: Path):  # type: ignore[no-untyped-def]
    return load_target(f"{ROOT / 'docs' / 'examples' / 'my_store.py'}:open_store")(str(folder))


def test_the_store_gives_back_what_was_saved(tmp_path: Path) -> None:
    ctx = open_store(tmp_path).load_or_create("r", {"topic": "x"})
    ctx.checkpoint("a", None)
    open_store(tmp_path).save("r", ctx)

    loaded = open_store(tmp_path).load_or_create("r", {"topic": "y"})

    assert (loaded.inputs, dict(loaded.completed), loaded.order) == ({"topic": "x"}, {"a": None}, ["a"])
    assert (loaded.revision, ctx.revision) == (2, 2)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == ["", ".run"]


def test_the_store_refuses_an_older_revision(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    older, newer = store.load_or_create("r", {}), store.load_or_create("r", {})
    newer.checkpoint("a", 1)
    store.save("r", newer)

    older.checkpoint("a", 2)
    with pytest.raises(StaleContextError, match="'r'"):
        store.save("r", older)

    assert store.load_or_create("r", {}).completed["a"] == 1


def test_the_store_does_not_bring_a_deleted_run_back(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    ctx = store.load_or_create("r", {})
    store.delete("r")

    with pytest.raises(StaleContextError):
        store.save("r", ctx)

    assert store.load_or_create("r", {"new": 1}).inputs == {"new": 1}


def test_the_store_finds_each_flipped_bit(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.load_or_create("r", {"topic": "x"})
    (file,) = tmp_path.glob("*.run")
    intact = file.read_bytes()

    for position in range(0, len(intact), 7):
        damaged = bytearray(intact)
        damaged[position] ^= 1
        file.write_bytes(damaged)
        with pytest.raises(CorruptCheckpointError, match="'r'"):
            store.load_or_create("r", {})
        assert file.read_bytes() == damaged


def test_the_store_recognises_its_own_save_when_the_reply_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path)
    ctx: PipelineContext = store.load_or_create("r", {})
    ctx.checkpoint("a", 1)
    monkeypatch.setattr(PipelineContext, "acknowledge", lambda *_: (_ for _ in ()).throw(OSError("the reply was lost")))
    with pytest.raises(OSError, match="lost"):
        store.save("r", ctx)
    monkeypatch.undo()

    store.save("r", ctx)

    assert dict(store.load_or_create("r", {}).completed) == {"a": 1}
