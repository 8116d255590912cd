"""Submits runs, lets workers work on them, and kills workers and the server until every run has ended."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from n00dles import asubmit
from n00dles.errors import StateStoreError
from n00dles.executor import MAX_STALLED_LIVES
from n00dles.stores import open_store
from n00dles_testing.crash.ledger import LedgerWriter

from .flow import LEDGER, NODE_SECONDS, PARENT, WORKER, expected, flow
from .judge import Ended, Fault, Judge, Tail
from .places import Place

__all__ = ["NODES", "Plan", "Torment", "torment"]

ROOT = Path(__file__).resolve().parents[2]
NODES = len(expected(""))

_TICK = 0.05  # seconds between two looks at the ledger
_LOOK = 1.0  # seconds between two looks at the store, when the ledger does not say that all runs are finished
_DRAIN = 60.0  # seconds that a worker has to end when it is told to
_MOST_STALLS = MAX_STALLED_LIVES - 2
_SERVER_AT = (0.2, 0.5)
"""The parts of all nodes that are completed when the server is killed: there is work on both sides."""


@dataclass(frozen=True)
class Plan:
    """One torture. `patience` is how long, in seconds, nothing may get on before runs count as lost."""

    runs: int = 200
    workers: int = 4
    concurrency: int = 4
    kill_every: float = 0.5
    node_seconds: float = 0.3
    seed: int = 0
    patience: float = 120.0
    target: str = "conformance.torture.flow:flow"


@dataclass
class Torment:
    """What has come of it."""

    judge: Judge
    seconds: float
    server_kills_wanted: int


class _Workers:
    """The `n00dles worker` processes.

    A lease lasts a minute, and is renewed thrice in it: no run is taken over because a worker was slow, and one that
    could not be released, since the server was down, does not hold up the end for long.
    """

    def __init__(self, plan: Plan, url: str, folder: Path) -> None:
        self._folder = folder
        self._command = [sys.executable, "-m", "n00dles", "worker", plan.target, "--store", url, "--json"]
        self._command += ["--concurrency", str(plan.concurrency), "--lease-ttl", "1m"]
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            LEDGER: str(folder / "ledger"),
            PARENT: str(os.getpid()),
            NODE_SECONDS: str(plan.node_seconds),
        }
        self._started = 0
        self.living = dict[int, subprocess.Popen[bytes]]()

    def start(self) -> None:
        """Start one more. What it says goes to a file."""
        self._started += 1
        environment = {**self._environment, WORKER: str(self._started)}
        with (self._folder / f"worker-{self._started}.log").open("wb") as log:
            child = subprocess.Popen(
                self._command, cwd=self._folder, env=environment, stdout=log, stderr=subprocess.STDOUT
            )
        self.living[self._started] = child

    def kill(self, number: int, ledger: LedgerWriter) -> None:
        """End one by SIGKILL, which the ledger knows first."""
        ledger.write("kill", worker=number)
        self.living[number].kill()
        if self.living[number].wait() != -signal.SIGKILL:
            raise RuntimeError(f"worker {number} had ended by itself:\n{self._said()}")
        del self.living[number]

    def check(self) -> None:
        """Raise if one has ended by itself."""
        for number, child in self.living.items():
            if child.poll() is not None:
                raise RuntimeError(f"worker {number} has ended by itself, with {child.returncode}:\n{self._said()}")

    def end(self) -> None:
        """Tell all to end, and wait for that."""
        for child in self.living.values():
            child.terminate()
        for child in self.living.values():
            try:
                child.wait(_DRAIN)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def _said(self) -> str:
        """Return the ends of what the workers have said."""
        logs = sorted(self._folder.glob("worker-*.log"), key=lambda path: path.stat().st_mtime)[-3:]
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-1000:]}" for log in logs)


async def torment(plan: Plan, place: Place, folder: Path, show: Callable[[Judge], Any] = lambda judge: None) -> Torment:
    """Carry out a plan and judge it; `show` is called now and then. The first fault ends it.

    Raises `RuntimeError` if a worker ends that nobody has killed.
    """
    runs = [f"job-{number:03}" for number in range(plan.runs)]
    store: Any = open_store(place.url)
    ledger = LedgerWriter(folder / "ledger", life=0)
    tail, judge, workers = Tail(folder / "ledger"), Judge(), _Workers(plan, place.url, folder)
    wanted = len(_SERVER_AT) if place.server is not None else 0
    try:
        for run in runs:
            await asubmit(flow, run_id=run, store=store, job=run)
        began = time.monotonic()
        for _ in range(plan.workers):
            workers.start()
        killing = _Killing(plan, place, ledger, workers, judge)
        await _until_all_have_ended(store, tail, killing, show)
        seconds = time.monotonic() - began
        if not judge.faults:
            await asyncio.to_thread(workers.end)
            _read(tail, judge)
        if not judge.faults or killing.gave_up:
            judge.close(runs, await _stored(store, runs), {run: expected(run) for run in runs})
        return Torment(judge, seconds, wanted)
    finally:
        for child in workers.living.values():
            child.kill()
            child.wait()
        tail.close()
        ledger.close()
        with suppress(Exception):
            await store.aclose()


class _Killing:
    """Who is killed next, and when."""

    def __init__(self, plan: Plan, place: Place, ledger: LedgerWriter, workers: _Workers, judge: Judge) -> None:
        self.plan, self.judge = plan, judge
        self._place, self._ledger = place, ledger
        self.workers = workers
        self.gave_up = False
        self._random = random.Random(plan.seed)
        self._next = time.monotonic() + plan.kill_every
        self._server_at = [part * plan.runs * NODES for part in _SERVER_AT] if place.server is not None else []
        self._server: asyncio.Task[None] | None = None

    @property
    def server_is_up(self) -> bool:
        return self._server is None

    async def go_on(self) -> None:
        """Kill whoever's time has come."""
        self.workers.check()
        victims = [number for number in self.workers.living if self._may_be_killed(number)]
        if victims and time.monotonic() >= self._next:
            self.workers.kill(self._random.choice(victims), self._ledger)
            self.workers.start()
            self._next = time.monotonic() + self.plan.kill_every
            return  # what is at work now is not known before the ledger is read again
        if self._server is not None:
            if self._server.done():
                self._server = self._server.result()
        # More than one at work: one could have ended before the kill.
        elif self._server_at and len(self.judge.acknowledged) >= self._server_at[0] and self.judge.at_work > 1:
            del self._server_at[0]
            self._server = asyncio.create_task(asyncio.to_thread(self._kill_server))

    def _may_be_killed(self, worker: int) -> bool:
        """Whether runs get on, and end, also if this machine starts workers more slowly than they are killed.

        So a worker completes some nodes first; and one with a run that has ended several workers in a row, as it must
        seem, is left alone, or its next life would be the last.
        """
        has_got_on = self.judge.saved_by[worker] >= self.plan.concurrency
        return has_got_on and all(self.judge.stalls[run] < _MOST_STALLS for run in self.judge.runs_of(worker))

    async def end(self) -> None:
        """Wait until the server is back."""
        if self._server is not None:
            await self._server
            self._server = None

    def _kill_server(self) -> None:
        server = self._place.server
        assert server is not None
        self._ledger.write("server_kill")
        server.kill()
        server.start()
        self._ledger.write("server_start")


async def _until_all_have_ended(store: Any, tail: Tail, killing: _Killing, show: Callable[[Judge], Any]) -> None:
    plan, judge = killing.plan, killing.judge
    look = last = time.monotonic()
    got = (0, 0)
    try:
        while not judge.faults:
            _read(tail, judge)
            show(judge)
            await killing.go_on()
            now = time.monotonic()
            if got != (len(judge.acknowledged), len(judge.finished)):
                got, last = (len(judge.acknowledged), len(judge.finished)), now
            elif now - last > plan.patience:
                killing.gave_up = True
                judge.faults.append(Fault(f"nothing has got on for {plan.patience:g} s"))
            # A worker that was killed right after the last save has not written that the run is finished.
            if killing.server_is_up and (len(judge.finished) == plan.runs or now - look > _LOOK):
                look = now
                if await _all_ended(plan, store):
                    return
            await asyncio.sleep(_TICK)
    finally:
        await killing.end()


def _read(tail: Tail, judge: Judge) -> None:
    for entry in tail.read():
        judge.note(entry)


async def _all_ended(plan: Plan, store: Any) -> bool:
    try:
        runs = await store.list_runs()
    except StateStoreError:
        return False  # it is asked again, as long as `patience` allows
    return sum(run.status in ("finished", "failed") for run in runs) >= plan.runs


async def _stored(store: Any, runs: list[str]) -> dict[str, Ended]:
    found = {run: await store.load(run) for run in runs}
    return {
        run: Ended(context.status, context.lives, dict(context.completed))
        for run, context in found.items()
        if context is not None
    }
