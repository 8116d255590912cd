"""How the command ends when its reader or its user has had enough."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
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
