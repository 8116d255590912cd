"""What one of several processes does while a history is recorded: it uses the store, and keeps a journal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from n00dles.stores.adapt import as_store
from n00dles.stores.base import StateStore

from ..histories.recording import Journal, RecordingClient, UnknownOutcomeError
from ..histories.traffic import Traffic, make_traffic
from .child import die, still_alive
from .pauses import pauses
from .target import StoreTarget

__all__ = ["create_at_once", "load_last", "make_recorded_traffic", "one_run_each"]

_LONGEST_IN_A_CALL = 0.002
"""Seconds into a call, after which its process is killed."""


async def make_recorded_traffic(
    target: StoreTarget,
    location: str | None,
    *,
    traffic: dict[str, Any],
    process: int,
    journal: str,
    at: float,
    dies_at: int | None = None,
) -> dict[str, Any]:
    """From the moment `at` on, let the clients of `Traffic` make their calls on common runs.

    The process kills itself inside the call of the number `dies_at`.
    """
    made = _traffic(traffic)
    async with _recording(target, location, journal, at, _Killed(dies_at, made.seed)) as (store, kept):
        await make_traffic(store, kept, made, process)
        return {"told": f"{store.calls} calls made"}


async def one_run_each(
    target: StoreTarget,
    location: str | None,
    *,
    traffic: dict[str, Any],
    process: int,
    journal: str,
    at: float,
) -> dict[str, Any]:
    """From the moment `at` on, let each run of `traffic` have one client of its own."""
    made = _traffic(traffic)
    async with _recording(target, location, journal, at) as (store, kept), asyncio.TaskGroup() as group:
        for number, run in enumerate(made.runs):
            alone = replace(made, runs=(run,), clients=1)
            group.create_task(make_traffic(store, kept, alone, process * len(made.runs) + number))
    return {"told": f"{store.calls} calls made"}


async def create_at_once(
    target: StoreTarget,
    location: str | None,
    *,
    traffic: dict[str, Any],
    process: int,
    journal: str,
    times: Sequence[float],
) -> dict[str, Any]:
    """At each of `times`, load one of the runs with every client, each with inputs of its own.

    Before its calls to the system the process rests for a moment, as a loaded machine has it rest: who looks and then
    creates may have nothing else in between. `mixed` tells of each run that was shown with the inputs of two callers.
    """
    made, mixed = _traffic(traffic), list[str]()
    async with _recording(target, location, journal, times[0]) as (store, kept):
        for number, (run, at) in enumerate(zip(made.runs, times, strict=True)):
            time.sleep(max(0.0, at - time.monotonic()))  # noqa: ASYNC251 - nothing else runs, and a loop wakes up late
            with pauses():
                async with asyncio.TaskGroup() as group:
                    for at_once in range(made.clients):
                        name = f"p{process}c{at_once}r{number}"
                        client = RecordingClient(store, name, kept, revisions=made.revisions)
                        group.create_task(_create(client, run, mixed))
        return {"told": f"{store.calls} calls made", "mixed": mixed}


async def _create(client: RecordingClient, run: str, mixed: list[str]) -> None:
    with suppress(UnknownOutcomeError):
        held = await client.load(run, {f"only of {client.name}": client.name})
        callers = [name for name in held.context.inputs if name.startswith("only of ")]
        if len(callers) != 1:
            mixed.append(f"run {run!r} was shown to {client.name} with inputs {', '.join(callers) or 'of nobody'}")


async def load_last(
    target: StoreTarget, location: str | None, *, runs: Sequence[str], journal: str, revisions: bool
) -> dict[str, Any]:
    """Load every run when all else has ended."""
    async with _recording(target, location, journal, 0.0) as (store, kept):
        client = RecordingClient(store, "last", kept, revisions=revisions)
        for run in runs:
            with suppress(UnknownOutcomeError):
                await client.load(run)
    return {"told": f"{store.calls} calls made"}


def _traffic(form: dict[str, Any]) -> Traffic:
    return Traffic(**{**form, "runs": tuple(form["runs"])})


class _Killed:
    """When a process is to be killed: inside its call of the number `at`, counted from 1."""

    def __init__(self, at: int | None = None, seed: int = 0) -> None:
        self._at = at
        self._random = Random(seed)

    async def over(self, number: int, call: Awaitable[Any]) -> Any:  # noqa: RET503 - it is killed
        """Await the call of this number, or die within it."""
        if number != self._at:
            return await call
        task = asyncio.ensure_future(call)
        await asyncio.sleep(self._random.uniform(0, _LONGEST_IN_A_CALL))
        die({"told": f"inside call {number}, {'which had ended' if task.done() else 'which went on'}"})


class _Observed:
    """A store whose calls are counted, and told: each may take the time of one."""

    def __init__(self, store: StateStore, killed: _Killed) -> None:
        self.calls = 0
        self._store = store
        self._killed = killed

    async def load_or_create(self, run_id: str, inputs: Any) -> Any:
        return await self._call(self._store.load_or_create, run_id, inputs)

    async def save(self, run_id: str, context: Any) -> None:
        await self._call(self._store.save, run_id, context)

    async def delete(self, run_id: str) -> None:
        await self._call(self._store.delete, run_id)

    async def _call(self, method: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        self.calls += 1
        try:
            return await self._killed.over(self.calls, method(*arguments))
        finally:
            still_alive()


@asynccontextmanager
async def _recording(
    target: StoreTarget, location: str | None, journal: str, at: float, killed: _Killed | None = None
) -> AsyncIterator[tuple[_Observed, Journal]]:
    """Open the store before the moment `at`, and wait for that."""
    instance = await target.open(location)
    kept = Journal(Path(journal))
    try:
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        yield _Observed(as_store(instance.raw), killed or _Killed()), kept
    finally:
        kept.close()
        await instance.close()
