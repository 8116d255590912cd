"""Work that ends its process, or blocks it, is told; all other work ends with its own exit code."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from n00dles_testing.watched import SilentEndError, watched

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")

Told = Callable[[], None]


@pytest.mark.parametrize("code", [0, 1, 130])
def test_work_ends_with_its_own_exit_code(code: int) -> None:
    def work(told: Told) -> int:
        told()
        return code

    assert watched(work, silence=30) == code


def test_an_error_of_the_work_is_no_success() -> None:
    def work(told: Told) -> int:
        raise RuntimeError("no luck")

    assert watched(work, silence=30) == 1


@pytest.mark.parametrize("has_begun", [False, True])
def test_work_that_ends_its_process_with_exit_code_0_is_told(has_begun: bool) -> None:
    def work(told: Told) -> int:
        if has_begun:
            told()
        os._exit(0)

    with pytest.raises(SilentEndError, match="exit code 0") as caught:
        watched(work, silence=30)

    assert caught.value.has_begun is has_begun


def test_work_that_blocks_is_ended_and_told() -> None:
    def work(told: Told) -> int:
        told()
        time.sleep(60)
        return 0

    started = time.monotonic()
    with pytest.raises(SilentEndError, match=r"has blocked its process for 0\.2 s"):
        watched(work, silence=0.2)

    assert time.monotonic() - started < 30


def test_the_command_fails_for_an_executor_that_exits_with_0(tmp_path: Path) -> None:
    (tmp_path / "leaving.py").write_text(
        "import os\n\n"
        "class Leaving:\n"
        "    async def run(self, pipeline, *, run_id, store, observers, inputs):\n"
        "        os._exit(0)\n"
        "    async def resume(self, pipeline, *, run_id, store, observers):\n"
        "        os._exit(0)\n\n"
        "executor = Leaving()\n"
    )
    command = [sys.executable, "-m", "n00dles_testing", "executor", "leaving.py:executor", "--examples", "5"]

    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    assert ended.returncode in (1, 2)
    assert "leaving.py:executor cannot be judged: it ended the process" in ended.stderr
