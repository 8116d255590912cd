"""The backend of fresh interpreters: how it ends."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from n00dles_testing.crash.scenario import Subject
from n00dles_testing.crash.spawn import Spawn
from tests.n00dles_testing.crash.test_processes import PIPELINE, module, scenario


def test_closing_it_waits_for_a_lane_that_a_second_interrupt_left_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = Spawn(Subject(module(tmp_path, "import time\n" + PIPELINE.replace("loud =", "time.sleep(600); loud ="))))
    lane = threading.Thread(target=lambda: list(backend.play([scenario(tmp_path)])), daemon=True)
    lane.start()
    while not backend._alive:
        time.sleep(0.01)
    ended = []

    def slow(pid: int) -> None:
        time.sleep(0.5)
        ended.append(pid)

    monkeypatch.setattr("n00dles_testing.crash.spawn.end_group", slow)
    # What an interrupted join comes to, see bpo-45274: a thread is taken for ended that is not.
    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", lambda *_, **__: None)

    backend.close()

    assert len(ended) == 1
    assert not backend._folder.path.exists()
