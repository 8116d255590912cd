"""What is left when a command, or what it tries, comes to an end that nobody can clear up after: nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from n00dles_testing.temporary_folder import TemporaryFolder

ROOT = Path(__file__).parents[2]

SLOW_FLOW = """
import time
from n00dles import agent, pipeline

@agent
def first(text: str) -> str:
    time.sleep(0.2)
    return text

flow = pipeline(first, name="flow")
"""

STARTS_PROGRAMS = """
import os, subprocess, sys, time
from n00dles import agent, pipeline

@agent
def first(text: str) -> str:
    with open(os.environ["STARTED"], "a") as started:
        program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"], start_new_session=True)
        started.write(f"{program.pid}\\n")
        forked = os.fork()
        if not forked:
            os.setsid()
            time.sleep(120)
            os._exit(0)
        started.write(f"{forked}\\n")
    return text

@agent
def second(first: str) -> str:
    return first

flow = pipeline(first >> second, name="flow")
"""

KEEPS_A_FOLDER = """
import time
from n00dles import agent, pipeline
from n00dles_testing.temporary_folder import TemporaryFolder

@agent
def first(text: str) -> str:
    with TemporaryFolder("n00dles-inner-") as folder:
        (folder.path / "file").write_text(text)
    return text

flow = pipeline(first, name="flow")
"""

ENDS_ITS_PROCESS = """
import os
from pathlib import Path
from n00dles import aresume, arun

class Executor:
    calls = 0

    async def run(self, pipeline, *, run_id, store, observers, inputs):
        Executor.calls += 1
        if Executor.calls == 20:
            os._exit(3)
        return await arun(pipeline, run_id=run_id, store=store, observers=observers, **inputs)

    async def resume(self, pipeline, *, run_id, store, observers):
        return await aresume(pipeline, run_id, store=store, observers=observers)

executor = Executor()
"""


HANGS = """
import itertools, time
from n00dles.stores.sqlite import SQLiteStateStore

saves = itertools.count()

class Hangs(SQLiteStateStore):
    async def save(self, run_id, ctx):
        if next(saves) > 60:
            time.sleep(600)
        await super().save(run_id, ctx)

def open_store(location):
    return Hangs(f"{location}/runs.db")
"""


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """The folder in which the commands make theirs."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


def started(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "n00dles_testing", *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(folder / "temporary"),
            "STARTED": str(folder / "started"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "\nState:\tZ" not in status.read_text()


@pytest.mark.parametrize("mode", ["fork", "spawn"])
def test_the_folder_of_an_exploration_that_is_killed_goes_with_it(tmp_path: Path, temporary: Path, mode: str) -> None:
    (tmp_path / "slow_flow.py").write_text(SLOW_FLOW)
    command = started(tmp_path, "explore", "slow_flow.py:flow", "--input", "text=x", "--mode", mode)
    wait_until(lambda: bool(list(temporary.glob("n00dles-crash-*/*"))))

    command.kill()
    command.communicate(timeout=60)

    wait_until(lambda: not list(temporary.iterdir()))


def test_an_executor_that_ends_its_process_leaves_no_folder(tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "ends.py").write_text(ENDS_ITS_PROCESS)
    command = started(tmp_path, "executor", "ends.py:executor", "--examples", "40")

    said, _ = command.communicate(timeout=60)

    assert command.returncode == 1
    assert "it ended the process of the command, with exit code 3" in " ".join(said.split())
    wait_until(lambda: not list(temporary.iterdir()))


def test_a_worker_that_is_killed_since_the_store_hangs_leaves_no_folder(tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    command = started(tmp_path, "check", "hangs.py:open_store", "--clause", "S17", "--limit", "0.5")

    said, _ = command.communicate(timeout=60)

    assert "the store did not answer within 0.5 s, and was killed" in " ".join(said.split())
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt what others leave behind")
@pytest.mark.parametrize("mode", ["fork", "spawn"])
def test_a_program_that_a_body_starts_in_a_session_of_its_own_ends_with_its_life(
    tmp_path: Path, temporary: Path, mode: str
) -> None:
    (tmp_path / "starts.py").write_text(STARTS_PROGRAMS)
    command = started(tmp_path, "explore", "starts.py:flow", "--input", "text=x", "--mode", mode)

    said, _ = command.communicate(timeout=60)

    assert command.returncode == 0, said
    pids = [int(line) for line in (tmp_path / "started").read_text().split()]
    assert len(pids) > 4
    assert [pid for pid in pids if is_running(pid)] == []
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("mode", ["fork", "spawn"])
def test_the_temporary_folder_of_a_life_that_is_killed_is_removed(tmp_path: Path, temporary: Path, mode: str) -> None:
    (tmp_path / "keeps.py").write_text(KEEPS_A_FOLDER.replace("    return", "        time.sleep(0.3)\n    return"))
    words = ["explore", "keeps.py:flow", "--input", "text=x", "--mode", mode, "--at", "during:first"]
    command = started(tmp_path, *words)

    said, _ = command.communicate(timeout=60)

    assert command.returncode == 0, said
    wait_until(lambda: not list(temporary.iterdir()))


def test_a_temporary_folder_is_removed_though_its_process_is_killed(tmp_path: Path) -> None:
    script = f"""
import os, signal
from pathlib import Path
from n00dles_testing.temporary_folder import TemporaryFolder
folder = TemporaryFolder("n00dles-test-", Path({str(tmp_path)!r}))
(folder.path / "file").write_text("x")
os.kill(os.getpid(), signal.SIGKILL)
"""

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, "-c", script], check=False, env=environment, timeout=60)

    assert ended.returncode == -signal.SIGKILL
    wait_until(lambda: not list(tmp_path.iterdir()))


def test_a_temporary_folder_stays_as_long_as_it_is_used_and_no_longer(tmp_path: Path) -> None:
    with TemporaryFolder("n00dles-test-", tmp_path) as folder:
        (folder.path / "file").write_text("x")
        time.sleep(0.1)
        assert [path.name for path in folder.path.iterdir()] == ["file"]

    assert list(tmp_path.iterdir()) == []
