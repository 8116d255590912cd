"""Real stores, real processes: what is recorded of them can be judged."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from n00dles import InMemoryStateStore
from n00dles.context import PipelineContext
from n00dles_testing.histories import judge
from n00dles_testing.histories.recording import Journal, RecordingClient, UnknownOutcomeError, gather
from n00dles_testing.histories.traffic import Traffic, last_loads, make_traffic

_PROCESS = """
import asyncio, sys
from pathlib import Path
from n00dles.stores.sqlite import SQLiteStateStore
from n00dles_testing.histories.recording import Journal
from n00dles_testing.histories.traffic import Traffic, make_traffic
folder, process = Path(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
traffic = Traffic(seed=3, runs=("r1", "r2"), clients=2, calls=40, widen=0.01)
journal = Journal(folder / f"{process}.journal")
asyncio.run(make_traffic(SQLiteStateStore(folder / "runs.db"), journal, traffic, process))
"""


class LastWriterWins(InMemoryStateStore):
    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        ctx.revision = (await self.load_or_create(run_id, {})).revision
        await super().save(run_id, ctx)


class NeverAnswers(InMemoryStateStore):
    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        await super().save(run_id, ctx)
        await asyncio.Event().wait()


def _recorded(store: Any, path: Path, **options: Any) -> Any:
    async def main() -> None:
        traffic = Traffic(**{"seed": 1, "runs": ("r1", "r2"), "clients": 4, "calls": 80, "widen": 0.001, **options})
        await make_traffic(store, Journal(path), traffic, 1)
        await last_loads(store, Journal(path.with_suffix(".last")), traffic.runs)

    asyncio.run(main())
    return gather([path, path.with_suffix(".last")], starts_empty=True)


@pytest.mark.parametrize("delete", [0.0, 0.05])
def test_the_traffic_of_a_correct_store_passes(tmp_path: Path, delete: float) -> None:
    history = _recorded(InMemoryStateStore(), tmp_path / "1.journal", delete=delete)

    judgement = judge(history)

    assert judgement.kind == "PASS", judgement.reason
    assert judgement.calls > 140
    assert any(call.is_conflict for call in history.calls)


def test_the_traffic_of_a_store_without_a_check_loses_an_update(tmp_path: Path) -> None:
    history = _recorded(LastWriterWins(), tmp_path / "1.journal", delete=0.0)

    judgement = judge(history)

    assert judgement.kind == "FAIL(LOST_UPDATE)"
    assert len(judgement.violations[0].calls) == 2


def test_a_call_without_an_answer_retires_its_client(tmp_path: Path) -> None:
    async def main() -> None:
        client = RecordingClient(NeverAnswers(), "a", Journal(tmp_path / "j"), timeout=0.05)
        held = await client.load("r")
        with pytest.raises(UnknownOutcomeError, match="save of run 'r'"):
            await client.save("r", held)
        with pytest.raises(RuntimeError, match="is retired"):
            await client.load("r")

    asyncio.run(main())

    load, save = gather([tmp_path / "j"], starts_empty=True).calls
    assert (load.outcome, load.inputs, load.incarnation, load.revision) == ("ok", "a-1", "a-1", 1)
    assert (save.outcome, save.returned, save.expected, save.outputs) == ("unknown", None, 1, ("node-a-2",))


def test_two_processes_of_which_one_is_killed_make_one_history(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _PROCESS, str(tmp_path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in (1, 2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    journal = tmp_path / "1.journal"
    while not journal.exists() or journal.read_text().count("\n") < 40:
        assert processes[0].poll() is None
        time.sleep(0.005)  # it is another process that writes there

    processes[0].kill()
    ends = [process.wait(60) for process in processes]
    for process in processes:
        process.communicate()

    history = gather([tmp_path / "1.journal", tmp_path / "2.journal"], starts_empty=True, about={"seed": 3})
    judgement = judge(history)
    assert ends == [-signal.SIGKILL, 0]
    assert judgement.kind == "PASS", judgement.reason
    assert {call.client[:2] for call in history.calls} == {"p1", "p2"}
    assert any(call.outcome == "unknown" for call in history.calls if call.client.startswith("p1"))
