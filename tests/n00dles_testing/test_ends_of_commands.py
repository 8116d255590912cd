"""How the command ends when its reader or its user has had enough."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BODY = f"{ROOT}/docs/examples/body.py:body_pipeline"

# The first import that a command makes for itself waits, so that the interrupt comes before anything has begun.
SLOW_START = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "n00dles_testing.command_check":
            print("starting", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
from n00dles_testing.cli import main
main(["check", "memory://"], prog_name="n00dles-testing")
"""


def started(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize(
    "words",
    [
        ["check", "memory://"],
        ["check", "memory://", "--clause", "S05"],
        ["explore", BODY, "--input", "text=a b", "--at", "before:split"],
    ],
)
def test_a_reader_that_goes_early_is_no_failure(words: list[str]) -> None:
    command = started("-m", "n00dles_testing", *words)
    assert command.stdout is not None
    assert command.stderr is not None

    command.stdout.readline()
    command.stdout.close()
    said = command.stderr.read()
    command.stderr.close()

    assert command.wait(60) == 141
    assert said == ""


def test_an_interrupt_while_a_command_starts_ends_it_with_130() -> None:
    command = started("-c", SLOW_START)
    assert command.stdout is not None
    assert command.stdout.readline() == "starting\n"

    command.send_signal(signal.SIGINT)
    _, said = command.communicate(timeout=60)

    assert command.returncode == 130
    assert said == "interrupted\n"


SLOW_FLOW = """
import time
from pathlib import Path
from n00dles import agent, pipeline

@agent
def first(text: str) -> str:
    time.sleep(0.2)
    return text

@agent
def second(first: str) -> str:
    time.sleep(0.2)
    return first

flow = pipeline(first >> second, name="flow")
"""
TEST_OF_IT = """
from slow_flow import flow
def test_it(crash_safety):
    crash_safety.check(flow, text="x", mode={mode!r})
"""


@pytest.mark.parametrize("how", ["explore", "pytest"])
@pytest.mark.parametrize("mode", ["fork", "spawn"])
@pytest.mark.parametrize("again", [0.0, 0.05])
def test_an_interrupted_exploration_leaves_no_folder_and_no_process(
    tmp_path: Path, how: str, mode: str, again: float
) -> None:
    (tmp_path / "slow_flow.py").write_text(SLOW_FLOW)
    (tmp_path / "test_it.py").write_text(TEST_OF_IT.format(mode=mode))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = {
        "explore": ["-m", "n00dles_testing", "explore", "slow_flow.py:flow", "--input", "text=x", "--mode", mode],
        "pytest": ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
    }[how]
    command = subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
    )
    try:
        deadline = time.monotonic() + 60
        while not list(temporary.glob("n00dles-crash-*/4")):
            assert command.poll() is None, command.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        command.send_signal(signal.SIGINT)
        if again:
            time.sleep(again)
            command.send_signal(signal.SIGINT)
        command.communicate(timeout=30)
    finally:
        command.kill()
        command.communicate()

    time.sleep(0.5)  # whoever is left would write now
    assert [path.name for path in temporary.rglob("*") if "n00dles" in path.name] == []


SLOW_STORE = """
import os, time
from n00dles_testing.conformance.mutants.correct import JSONFiles

class Slow(JSONFiles):
    def save(self, run_id, context):
        if self.folder.name.startswith("apart"):  # what is tried before the first clause
            return super().save(run_id, context)
        with open("started", "a") as file:
            file.write(f"{os.getpid()} ")
        time.sleep(600)
"""


FINDS_AND_HANGS = """
import time
from n00dles_testing.conformance.mutants.s05 import GivesOutItsCache

class Slow(GivesOutItsCache):
    def delete(self, run_id):
        with open("started", "w"):
            time.sleep(600)
"""


@pytest.mark.parametrize(("by", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_check_tells_what_it_has_found_so_far_and_no_level(
    tmp_path: Path, by: signal.Signals, code: int
) -> None:
    (tmp_path / "slow_store.py").write_text(FINDS_AND_HANGS)
    words = ["check", "slow_store.py:Slow", "--clause", "S01", "--clause", "S05", "--clause", "S07", "--limit", "500"]
    command = subprocess.Popen(
        [sys.executable, "-m", "n00dles_testing", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "started").exists():
        assert command.poll() is None
        time.sleep(0.02)

    command.send_signal(by)
    shown, _ = command.communicate(timeout=60)

    assert command.returncode == code
    *story, last = shown.splitlines()
    assert last == "interrupted: 2 of 3 clauses checked, no level"
    assert any(line.startswith(" S05      FAIL") for line in story)
    assert any(line.startswith("  allowed") for line in story)
    assert any(line.startswith("  replay   n00dles-testing check slow_store.py:Slow --clause S05") for line in story)


def test_a_check_that_is_terminated_leaves_no_folder_and_no_process(tmp_path: Path) -> None:
    (tmp_path / "slow_store.py").write_text(SLOW_STORE)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = subprocess.Popen(
        [sys.executable, "-m", "n00dles_testing", "check", "slow_store.py:Slow", "--clause", "S02", "--limit", "500"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    started = tmp_path / "started"
    while not started.exists() or not started.read_text():
        assert command.poll() is None
        time.sleep(0.02)

    command.terminate()
    _, said = command.communicate(timeout=60)

    assert command.returncode == 143
    assert said.endswith("terminated; the store's processes are ended and the temporary folder is removed\n")
    assert list(temporary.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


@pytest.mark.parametrize(
    "signals",
    [
        [signal.SIGINT] * 3,
        [signal.SIGTERM, signal.SIGINT, signal.SIGTERM],
        [signal.SIGHUP],
        [signal.SIGQUIT, signal.SIGHUP],
    ],
)
def test_no_second_signal_interrupts_the_cleaning_up_of_a_check(tmp_path: Path, signals: list[signal.Signals]) -> None:
    command, pids = started_and_saving(tmp_path)

    end_and_expect_nothing_left(command, pids, signals, tmp_path)


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGINT] * 3, [signal.SIGTERM]])
def test_a_check_by_several_workers_ends_at_once_and_leaves_nothing(
    tmp_path: Path, signals: list[signal.Signals]
) -> None:
    command, pids = started_and_saving(tmp_path, "S03", workers=2)

    said = end_and_expect_nothing_left(command, pids, signals, tmp_path)

    assert len(set(pids)) == 2
    assert said.endswith("; the store's processes are ended and the temporary folder is removed\n")


def end_and_expect_nothing_left(
    command: subprocess.Popen[str], pids: list[int], signals: list[signal.Signals], folder: Path
) -> str:
    for number in signals:
        command.send_signal(number)
        time.sleep(0.04)
    _, said = command.communicate(timeout=60)

    # On a machine that is busy several arrive at once, and the kernel gives the one with the lowest number first.
    assert command.returncode in {128 + number for number in signals}
    assert list((folder / "temporary").iterdir()) == []
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    return said


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
@pytest.mark.parametrize(("clauses", "workers"), [([], 1), (["S03"], 2)])
def test_the_processes_and_the_folder_of_a_check_that_is_killed_end_with_it(
    tmp_path: Path, clauses: list[str], workers: int
) -> None:
    command, pids = started_and_saving(tmp_path, *clauses, workers=workers)

    command.kill()
    command.communicate(timeout=60)

    deadline = time.monotonic() + 30
    while any(map(is_running, pids)) or list((tmp_path / "temporary").iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "\nState:\tZ" not in status.read_text()


def started_and_saving(folder: Path, *clauses: str, workers: int = 1) -> tuple[subprocess.Popen[str], list[int]]:
    """Return a check in the midst of saves that take long, one a worker, and the processes that save."""
    (folder / "slow_store.py").write_text(SLOW_STORE)
    (folder / "temporary").mkdir()
    words = [word for clause in ("S02", *clauses) for word in ("--clause", clause)]
    words += ["--limit", "500", "--workers", str(workers)]
    command = subprocess.Popen(
        [sys.executable, "-m", "n00dles_testing", "check", "slow_store.py:Slow", *words],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "temporary")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while len(pids := saving(folder)) < workers:
        assert command.poll() is None
        time.sleep(0.02)
    return command, pids


def saving(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "started").read_text().split()] if (folder / "started").exists() else []
