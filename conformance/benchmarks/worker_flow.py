"""The pipeline of the benchmark of workers: five nodes that each wait 20 ms, as for a model, and compute nothing.

Whoever imports it says that it is there (a file named by its process id in the folder N00DLES_BENCHMARK_GATE) and waits
until the file `go` is there, too: so all workers begin at the same time, and nobody's start is measured. When it ends,
it leaves the seconds of processor time that it has used since.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import time
from pathlib import Path

from n00dles import agent, pipeline
from n00dles.stores import open_store
from n00dles_testing.parent import die_with_parent

SECONDS = 0.02


@agent
async def one(topic: str) -> str:
    await asyncio.sleep(SECONDS)
    return topic


@agent
async def two(one: str) -> str:
    await asyncio.sleep(SECONDS)
    return one


@agent
async def three(two: str) -> str:
    await asyncio.sleep(SECONDS)
    return two


@agent
async def four(three: str) -> str:
    await asyncio.sleep(SECONDS)
    return three


@agent
async def five(four: str) -> str:
    await asyncio.sleep(SECONDS)
    return four


flow = pipeline(one >> two >> three >> four >> five, name="measured")


def _wait_at(gate: Path) -> None:
    die_with_parent(int(os.environ["N00DLES_BENCHMARK_PARENT"]))
    open_store(os.environ["N00DLES_BENCHMARK_STORE"])  # imports its driver, too, before the time begins
    mine = gate / str(os.getpid())
    mine.touch()
    while not (gate / "go").exists():
        time.sleep(0.005)
    before = time.process_time()
    atexit.register(lambda: mine.write_text(str(time.process_time() - before)))


if "N00DLES_BENCHMARK_GATE" in os.environ:
    _wait_at(Path(os.environ["N00DLES_BENCHMARK_GATE"]))
