"""What a checkpoint costs on a server, against the raw limit: one row and a commit, or one `HSET`, of the same bytes.

Either side talks to the same throw-away server in one event loop, through the same driver, by turns. The raw side of
PostgreSQL is an `INSERT` that commits by itself, that of Valkey an `HSET` under `appendfsync always`. On a machine that
does something else, read the processor's time of client and server together, which waits for nobody; the ratio of the
times by the clock also has the disk in it.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from n00dles import PipelineContext
from n00dles.stores import StateStore, open_store
from n00dles_testing.servers import PostgresServer, Server, ValkeyServer, why_not_postgres, why_not_valkey

from .figure import Figure

__all__ = ["figures"]

PAYLOAD = "x" * 1000
STORED = json.dumps(PAYLOAD)
LENGTHS = ((10, 60), (100, 20), (1000, 5), (3000, 3))
"""Nodes of a run, and how many of them are measured."""

Raw = Callable[[], Awaitable[Any]]


@dataclass
class _Cost:
    """Seconds a call, by the clock and of the processor."""

    clock: float
    processor: float


def figures() -> Iterator[Figure]:
    """Measure both, and yield each figure as soon as it is known; a server that is not here is left out."""
    if why_not_postgres() is None:
        with PostgresServer() as postgres:
            yield from _of("PostgreSQL", postgres, f"{postgres.url}?schema=measured", _raw_insert)
    if why_not_valkey() is None:
        with ValkeyServer() as valkey:
            yield from _of("Valkey", valkey, valkey.url, _raw_hset)


def _of(name: str, server: Server, url: str, raw: Callable[[asyncio.Runner, str], tuple[Raw, Raw]]) -> Iterator[Figure]:
    store = open_store(url)
    with asyncio.Runner() as runner:
        insert, close = raw(runner, server.url)
        runner.run(_saves(store, 20, runner.run(_created(store))))
        for nodes, rounds in LENGTHS:
            limits, ours = [], []
            for _ in range(rounds):
                limits.append(_timed(runner, server, nodes, _calls(insert, nodes)))
                ours.append(_timed(runner, server, nodes, _saves(store, nodes, runner.run(_created(store)))))
            yield from _ratios(f"{name}, {nodes} nodes", ours, limits)
        runner.run(store.aclose())  # type: ignore[attr-defined]
        runner.run(_one(close))


def _ratios(name: str, ours: list[_Cost], limits: list[_Cost]) -> Iterator[Figure]:
    for what in ("clock", "processor"):
        mine, raw = ([getattr(cost, what) for cost in costs] for costs in (ours, limits))
        value = statistics.median(a / b for a, b in zip(mine, raw, strict=True))
        detail = f"{statistics.median(mine) * 1000:.3f} ms against {statistics.median(raw) * 1000:.3f} ms"
        yield Figure(f"{name}, {what}", value, "× raw", detail, at_most=1.3 if what == "clock" else None)


def _timed(runner: asyncio.Runner, server: Server, calls: int, work: Any) -> _Cost:
    started, spent = time.perf_counter(), _processor_seconds(server)
    runner.run(work)
    return _Cost((time.perf_counter() - started) / calls, (_processor_seconds(server) - spent) / calls)


async def _created(store: StateStore) -> PipelineContext:
    return await store.load_or_create(f"run-{time.perf_counter_ns()}", {})


async def _saves(store: StateStore, nodes: int, context: PipelineContext) -> None:
    for number in range(nodes):
        context.checkpoint(f"n{number}", PAYLOAD)
        await store.save(context.run_id, context)


async def _calls(call: Raw, count: int) -> None:
    for _ in range(count):
        await call()


async def _one(call: Raw) -> None:
    await call()


def _raw_insert(runner: asyncio.Runner, url: str) -> tuple[Raw, Raw]:
    import psycopg

    connection: Any = runner.run(psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=None))
    statement = "CREATE TABLE raw (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, output bytea)"
    runner.run(connection.execute(statement))
    body = STORED.encode()
    return lambda: connection.execute("INSERT INTO raw (output) VALUES (%s)", (body,)), connection.close


def _raw_hset(runner: asyncio.Runner, url: str) -> tuple[Raw, Raw]:
    from redis.asyncio import Redis

    client, numbers = Redis.from_url(url, protocol=2), iter(range(10**9))

    def hset() -> Awaitable[Any]:
        number = next(numbers)
        return client.hset(f"raw-{number // 1000}", str(number), STORED)

    return hset, client.aclose


def _processor_seconds(server: Server) -> float:
    """Return what this process and the server's have used of the processor (Linux; elsewhere of this one only)."""
    used = time.process_time()
    for pid in server.processes():
        schedule = Path(f"/proc/{pid}/schedstat")
        if schedule.exists():
            used += int(schedule.read_text().split()[0]) / 1e9
    return used
