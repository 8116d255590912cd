"""What a durable checkpoint costs, against the raw limit: one `INSERT` of the same bytes and a commit for each node.

The raw side is Python's sqlite3 on the same disk, under the same settings (write-ahead log, synchronous=FULL). The
other side is `save` alone, a whole `run` (async body agents; the event loop, the executor and the creation of the run
included), and the resume of a finished run against a `SELECT` and `json.loads` of the same rows.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from n00dles import Agent, Pipeline, SQLiteStateStore, resume, run
from n00dles.events import CheckpointSaved, Event

from .figure import Figure, alternated, ratio

__all__ = ["figures"]

PAYLOAD = "x" * 1000
STORED = json.dumps(PAYLOAD)
EDGE = 100


def figures() -> Iterator[Figure]:
    """Measure, and yield each figure as soon as it is known."""
    with tempfile.TemporaryDirectory(dir=".") as folder, _raw(folder) as raw, _store(folder) as store:
        yield _save(store, raw)
        for nodes, rounds in ((10, 60), (100, 20), (1000, 4), (3000, 2)):
            yield _run(store, raw, nodes, rounds)
        yield _flatness(store)
        yield _resume(store, raw)


@contextmanager
def _raw(folder: str) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(Path(folder) / "raw.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE outputs (id INTEGER PRIMARY KEY, output TEXT)")
    yield connection
    connection.close()


@contextmanager
def _store(folder: str) -> Iterator[SQLiteStateStore]:
    store = SQLiteStateStore(Path(folder) / "n00dles.db")
    run(_chain(1), store=store, text="warm")
    yield store
    asyncio.run(store.aclose())


def _insert(raw: sqlite3.Connection, nodes: int) -> float:
    """Return the seconds a node."""
    started = time.perf_counter()
    for _ in range(nodes):
        raw.execute("BEGIN IMMEDIATE")
        raw.execute("INSERT INTO outputs (output) VALUES (?)", (STORED,))
        raw.execute("COMMIT")
    return (time.perf_counter() - started) / nodes


def _save(store: SQLiteStateStore, raw: sqlite3.Connection) -> Figure:
    async def saves(nodes: int = 100) -> float:
        context = await store.load_or_create(f"save-{time.perf_counter_ns()}", {})
        started = time.perf_counter()
        for number in range(nodes):
            context.checkpoint(f"n{number}", PAYLOAD)
            await store.save(context.run_id, context)
        return (time.perf_counter() - started) / nodes

    limit, ours = alternated(60, lambda: _insert(raw, 100), lambda: asyncio.run(saves()))
    return Figure("save, 1 KB", ratio(ours, limit), "× raw", _milliseconds(ours, limit), at_most=1.3)


def _run(store: SQLiteStateStore, raw: sqlite3.Connection, nodes: int, rounds: int) -> Figure:
    chain = _chain(nodes)

    def whole_run() -> float:
        started = time.perf_counter()
        run(chain, store=store, text="x")
        return (time.perf_counter() - started) / nodes

    limit, ours = alternated(rounds, lambda: _insert(raw, max(nodes, EDGE)), whole_run)
    return Figure(f"run of {nodes} nodes", ratio(ours, limit), "× raw", _milliseconds(ours, limit), at_most=1.6)


def _flatness(store: SQLiteStateStore) -> Figure:
    first, last = [], []
    for _ in range(3):
        saved: list[float] = []

        def note(event: Event, saved: list[float] = saved) -> None:
            if isinstance(event, CheckpointSaved):
                saved.append(time.perf_counter())

        run(_chain(3000), store=store, observers=[note], text="x")
        costs = [later - earlier for earlier, later in pairwise(saved)]
        first.append(statistics.median(costs[:EDGE]))
        last.append(statistics.median(costs[-EDGE:]))
    return Figure(
        f"last {EDGE} of 3000 nodes", ratio(last, first), f"× first {EDGE}", _milliseconds(last, first), at_most=1.2
    )


def _resume(store: SQLiteStateStore, raw: sqlite3.Connection) -> Figure:
    chain = _chain(1000)
    run_id = run(chain, store=store, text="x").run_id

    def select() -> float:
        started = time.perf_counter()
        rows = raw.execute("SELECT output FROM outputs ORDER BY id LIMIT 1000").fetchall()
        assert len([json.loads(text) for (text,) in rows]) == 1000
        return time.perf_counter() - started

    def resumed() -> float:
        started = time.perf_counter()
        resume(chain, run_id, store=store)
        return time.perf_counter() - started

    limit, ours = alternated(30, select, resumed)
    return Figure("resume of 1000 nodes", ratio(ours, limit), "× raw", _milliseconds(ours, limit), at_most=3.0)


def _chain(nodes: int) -> Pipeline:
    def numbered(number: int) -> Agent:
        async def node(text: str) -> str:
            return PAYLOAD

        node.__name__ = f"n{number}"
        return Agent(node)

    return Pipeline([numbered(number) for number in range(nodes)])


def _milliseconds(ours: list[float], raw: list[float]) -> str:
    return f"{statistics.median(ours) * 1000:.3f} ms against {statistics.median(raw) * 1000:.3f} ms"
