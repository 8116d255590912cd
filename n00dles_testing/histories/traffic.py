"""Random traffic of several clients in one process: what a history is recorded of.

Call `make_traffic` in two to four processes with the same seed and runs, each with its own number and journal; then
`last_loads` in a new process; then `gather` the journals and `judge`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

from .recording import Held, Journal, RecordingClient, UnknownOutcomeError

__all__ = ["Traffic", "last_loads", "make_traffic"]

_JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Traffic:
    """What to do. The shares need not add up to 1; `stale` are saves from an older load, on purpose.

    `calls` is how many each process makes on a run, give or take a tenth, so that runs do not end together.
    `widen` is the longest pause, in seconds, before and after the store is called, within the recorded interval.
    `revisions` says whether the store keeps them.
    """

    seed: int
    runs: tuple[str, ...]
    clients: int = 3
    calls: int = 60
    load: float = 0.4
    save: float = 0.5
    delete: float = 0.05
    stale: float = 0.05
    widen: float = 0.002
    timeout: float = 30.0
    revisions: bool = True


async def make_traffic(store: Any, journal: Journal, traffic: Traffic, process: int) -> None:
    """Let the clients of one process make their calls. An unknown outcome retires a client; another takes its place."""
    random = Random(f"{traffic.seed}-{process}")
    left = {run: round(traffic.calls * random.uniform(1 - _JITTER, 1 + _JITTER)) for run in traffic.runs}
    names = count(1)

    async def pause() -> None:
        await asyncio.sleep(random.uniform(0, traffic.widen))

    async def one_client() -> None:
        while any(left.values()):
            name = f"p{process}c{next(names)}"
            client = RecordingClient(
                store, name, journal, timeout=traffic.timeout, pause=pause, revisions=traffic.revisions
            )
            try:
                await _use(client, traffic, random, left)
            except UnknownOutcomeError:
                continue

    async with asyncio.TaskGroup() as group:
        for _ in range(traffic.clients):
            group.create_task(one_client())


async def _use(client: RecordingClient, traffic: Traffic, random: Random, left: dict[str, int]) -> None:
    known: dict[str, list[Held]] = {run: [] for run in traffic.runs}
    kinds = ("load", "save", "delete", "stale")
    weights = (traffic.load, traffic.save, traffic.delete, traffic.stale)
    while open_runs := [run for run, calls in left.items() if calls]:
        run = random.choice(open_runs)
        left[run] -= 1
        kind = random.choices(kinds, weights)[0]
        if kind == "delete":
            await client.delete(run)
        elif kind == "load" or not known[run]:
            known[run].append(await client.load(run))
        elif kind == "stale":
            await client.save(run, random.choice(known[run]))
        else:
            await client.save(run, known[run][-1])


async def last_loads(store: Any, journal: Journal, runs: Sequence[str]) -> None:
    """Load every run when all traffic has ended: what is found then must be what the history leads to."""
    client = RecordingClient(store, "last", journal)
    for run in runs:
        await client.load(run)
