"""How much faster eight workers are than one: 400 runs of 5 nodes of 20 ms, by `n00dles worker`, on each store.

With `--concurrency 1`, where a worker waits for its node most of the time, eight workers can be eight times as fast;
what they fall short of that is what claims, saves and the two processors cost. With `--concurrency 8` one worker is
already eight times as fast, and the processors are the limit, so the ratio is only told.

The time goes from the first claim to the last finished run, by the workers' own notes. All workers have been started
before. N00DLES_BENCHMARK_RUNS takes another number of runs, to look at it in small.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from n00dles import asubmit
from n00dles.stores import open_store

from ..torture.places import PLACES, why_not
from .figure import Figure
from .worker_flow import flow

__all__ = ["figures"]

ROOT = Path(__file__).resolve().parents[2]
RUNS = int(os.environ.get("N00DLES_BENCHMARK_RUNS", "400"))
WORKERS = 8
_TARGET = 6.0


@dataclass(frozen=True)
class _Cost:
    """Seconds by the clock, and of the workers' processor time a run."""

    clock: float
    processor: float


def figures() -> Iterator[Figure]:
    """Measure each store that is here, and yield each figure as soon as it is known."""
    for name in PLACES:
        if why_not(name) is not None:
            continue
        for concurrency in (1, 8):
            one, many = (_measured(name, workers, concurrency) for workers in (1, WORKERS))
            yield Figure(
                f"{name}, --concurrency {concurrency}",
                one.clock / many.clock,
                "× one worker",
                f"{RUNS} runs: {many.clock:.2f} s against {one.clock:.2f} s; processor time of the workers a run: "
                f"{many.processor * 1000:.1f} ms against {one.processor * 1000:.1f} ms",
                at_least=_TARGET if concurrency == 1 else None,
            )


def _measured(name: str, workers: int, concurrency: int) -> _Cost:
    with tempfile.TemporaryDirectory(prefix="n00dles-bench-") as text:
        folder = Path(text)
        gate = folder / "gate"
        gate.mkdir()
        with PLACES[name](folder) as place:
            asyncio.run(_submitted(place.url))
            command = [sys.executable, "-m", "n00dles", "worker", f"{__package__}.worker_flow:flow"]
            command += ["--store", place.url, "--json", "--until-idle", "--concurrency", str(concurrency)]
            environment = {
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "N00DLES_BENCHMARK_GATE": str(gate),
                "N00DLES_BENCHMARK_PARENT": str(os.getpid()),
                "N00DLES_BENCHMARK_STORE": place.url,
            }
            children = list[subprocess.Popen[bytes]]()
            for number in range(workers):
                with (folder / f"{number}.jsonl").open("wb") as said:
                    children.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=said))
            while len(list(gate.iterdir())) < workers:
                time.sleep(0.01)
                if any(child.poll() is not None for child in children):
                    raise RuntimeError("a worker has ended before it began")
            (gate / "go").touch()
            for child in children:
                child.wait()
        notes = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
        spent = sum(float(file.read_text()) for file in gate.iterdir() if file.name != "go")
    return _Cost(_seconds(notes), spent / RUNS)


def _seconds(notes: list[dict[str, Any]]) -> float:
    """Return the time from the first claim to the last end, when every run is finished, once."""
    finished = [note for note in notes if note["kind"] == "finished"]
    if len({note["run_id"] for note in finished}) != RUNS or len(finished) != RUNS:
        raise RuntimeError(f"{len(finished)} of {RUNS} runs are finished")
    began = min(datetime.fromisoformat(note["at"]) for note in notes if note["kind"] == "claimed")
    return (max(datetime.fromisoformat(note["at"]) for note in finished) - began).total_seconds()


async def _submitted(url: str) -> None:
    store: Any = open_store(url)
    for number in range(RUNS):
        await asubmit(flow, run_id=f"run-{number:04}", store=store, topic="x")
    await store.aclose()
