"""Attempts are counted by the world, not by the process: a resumed node meets what the first life left."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from n00dles import InMemoryStateStore, PipelineFailure, resume, run
from n00dles_testing.strategies import (
    ATTEMPTS_VARIABLE,
    AttemptsFile,
    AttemptsInMemory,
    NodeSpec,
    PipelineSpec,
    build,
    counted_by,
)
from n00dles_testing.strategies.build import build_for_other_processes

ROOT = Path(__file__).parents[3]
FLAKY = PipelineSpec((NodeSpec("a", "str", fails=3, retry=2),))


def test_a_pipeline_counts_for_itself_where_nobody_else_does() -> None:
    built, store = build(FLAKY), InMemoryStateStore()

    with pytest.raises(PipelineFailure, match="fails in attempt 2"):
        run(built, run_id="r", store=store)

    assert resume(built, "r", store=store).agent_traces[0].attempts == 4


def test_a_pipeline_that_is_built_again_meets_a_new_world() -> None:
    store = InMemoryStateStore()

    for _ in range(2):
        with pytest.raises(PipelineFailure, match="fails in attempt 2"):
            run(build(FLAKY), store=store)


def test_a_file_counts_over_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "attempts"
    child = f"from n00dles_testing.strategies import AttemptsFile; AttemptsFile({str(path)!r}).count('a')"
    for _ in range(3):
        subprocess.run([sys.executable, "-c", child], check=True, cwd=ROOT, timeout=60)
    monkeypatch.setenv(ATTEMPTS_VARIABLE, str(path))

    result = run(build(FLAKY), store=InMemoryStateStore())

    assert result.agent_traces[0].attempts == 1
    assert AttemptsFile(path).counts == {"a": 4}


def test_what_is_chosen_here_goes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ATTEMPTS_VARIABLE, str(tmp_path / "attempts"))
    attempts = AttemptsInMemory()

    with counted_by(attempts), pytest.raises(PipelineFailure):
        run(build(FLAKY), store=InMemoryStateStore())

    assert attempts.counts == {"a": 2}
    assert AttemptsFile(tmp_path / "attempts").counts == Counter()


def test_a_sync_body_in_a_thread_is_counted_too() -> None:
    attempts = AttemptsInMemory()
    spec = PipelineSpec((NodeSpec("a", "str", is_sync=True, fails=1, retry=2),))

    with counted_by(attempts):
        run(build(spec), store=InMemoryStateStore())

    assert attempts.counts == {"a": 2}


def test_a_pipeline_for_other_processes_says_that_nobody_counts() -> None:
    with pytest.raises(PipelineFailure, match=ATTEMPTS_VARIABLE):
        run(build_for_other_processes(FLAKY), store=InMemoryStateStore())


def test_names_that_begin_alike_are_counted_apart(tmp_path: Path) -> None:
    attempts = AttemptsFile(tmp_path / "attempts")

    counts = [attempts.count(name) for name in ("a", "a.1", "a", "A", "ä", "a-1", "a")]

    assert counts == [1, 1, 2, 1, 1, 1, 3]


def test_calls_at_the_same_time_are_all_counted(tmp_path: Path) -> None:
    attempts = AttemptsFile(tmp_path / "attempts")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(attempts.count, ["a"] * 100))

    assert attempts.counts == {"a": 100}


def test_every_task_of_a_loop_sees_the_same_count() -> None:
    attempts = AttemptsInMemory()
    spec = PipelineSpec((NodeSpec("a", "str", fails=1, retry=2),))

    async def several() -> None:
        from n00dles import arun

        with counted_by(attempts):
            await asyncio.gather(*(arun(build(spec), store=InMemoryStateStore()) for _ in range(3)))

    asyncio.run(several())
    assert attempts.counts == {"a": 4}
