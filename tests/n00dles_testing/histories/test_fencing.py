"""H10: a worker that was stopped while another went on is refused, or it is told which of the two states was kept."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from n00dles.stores.sqlite import SQLiteStateStore
from n00dles_testing.conformance.stopping import until_stopped
from n00dles_testing.histories import History, judge
from n00dles_testing.histories.recording import Journal, RecordingClient, gather

from .hand_made import conflict, delete, load, save

_SLEEPER = """
import asyncio, os, signal, sys
from pathlib import Path
from n00dles.stores.sqlite import SQLiteStateStore
from n00dles_testing.histories.recording import Journal, RecordingClient

async def main(folder):
    client = RecordingClient(SQLiteStateStore(folder / "runs.db"), "sleeper", Journal(folder / "sleeper.journal"))
    held = await client.load("r")
    await client.save("r", held, stop=lambda: os.kill(os.getpid(), signal.SIGSTOP))

asyncio.run(main(Path(sys.argv[1])))
"""


def judged(*calls: object) -> object:
    return judge(History(tuple(calls)))  # type: ignore[arg-type]


def test_a_worker_that_is_refused_when_it_wakes_up_passes() -> None:
    late = replace(conflict("a", (10, 60), "late", None, 0), woken=50)

    judgement = judge(History((load("a", (1, 5)), load("b", (11, 15)), save("b", (20, 30), "t1", None, 1), late)))

    assert judgement.kind == "PASS", judgement.reason
    assert not any(rule.startswith("H10") for rule in judgement.not_run)


@pytest.mark.parametrize("other", [save("b", (20, 30), "t1", None, 1), delete("b", (20, 30))])
def test_a_late_save_that_is_acknowledged_is_a_zombie(other: object) -> None:
    late = replace(save("a", (10, 60), "late", None, 1), woken=50)

    judgement = judged(load("a", (1, 5)), load("b", (11, 15)), other, late)

    [violation] = judgement.violations  # type: ignore[attr-defined]
    assert (violation.rule, violation.kind, violation.calls) == ("H10", "ZOMBIE", (other, late))
    assert violation.sentence.startswith("a was stopped before its save, and woke up after the ")


@pytest.mark.parametrize(
    ("shown", "kept"),
    [
        (("node-b", "node-a"), "both"),
        (("node-b",), "the other's"),
        (("node-a",), "the stopped worker's"),
        ((), "neither"),
    ],
)
def test_without_revisions_it_is_told_which_state_was_kept(shown: tuple[str, ...], kept: str) -> None:
    other = save("b", (20, 30), "t1", None, None, outputs=("node-b",))
    late = replace(save("a", (10, 60), "late", None, None, outputs=("node-a",)), woken=50)
    after = load("c", (70, 80), "late", None, outputs=shown)

    judgement = judge(History((load("a", (1, 5), None, None), load("b", (11, 15), None, None), other, late, after)))

    assert judgement.told == (
        f"run 'r': a woke up after the save of token t1 by b, and of the two states {kept} was kept",
    )


def test_what_a_worker_had_seen_before_it_was_stopped_is_no_takeover() -> None:
    first, late = save("b", (2, 4), "t1", None, 1), replace(save("a", (10, 60), "t2", "t1", 2), woken=50)

    judgement = judge(History((load("b", (0, 1)), first, load("a", (5, 8), "t1", 1), late)))

    assert judgement.violations == ()
    assert any(rule.startswith("H10") for rule in judgement.not_run)


def test_a_process_that_was_stopped_by_a_signal_makes_such_a_history(tmp_path: Path) -> None:
    async def go_on_meanwhile() -> None:
        assert await until_stopped(sleeper.pid)
        client = RecordingClient(SQLiteStateStore(tmp_path / "runs.db"), "other", Journal(tmp_path / "other.journal"))
        assert await client.save("r", await client.load("r"))

    with subprocess.Popen([sys.executable, "-c", _SLEEPER, str(tmp_path)]) as sleeper:
        try:
            asyncio.run(go_on_meanwhile())
            os.kill(sleeper.pid, signal.SIGCONT)
            status = sleeper.wait(60)
        finally:
            sleeper.kill()

    history = gather([tmp_path / "sleeper.journal", tmp_path / "other.journal"], starts_empty=True)
    [late] = [call for call in history.calls if call.woken is not None]
    judgement = judge(history)
    assert status == 0
    assert (late.client, late.is_conflict, late.invoked < (late.woken or 0)) == ("sleeper", True, True)
    assert judgement.kind == "PASS", judgement.reason
    assert not any(rule.startswith("H10") for rule in judgement.not_run)
