"""What a durable checkpoint costs, against the raw limit: one `INSERT` of the same bytes and a commit for each node.

The raw side is Python's sqlite3 on the same disk, under the same settings (write-ahead log, synchronous=FULL). The
other side is `save` alone, a whole `run` (async body agents; the event loop, the executor and the creation of the run
included), and the resume of a finished run against a `SELECT` and `json.loads` of the same rows.

Each is measured twice: on files that each round makes anew, as a process finds them that begins to work (SQLite
removes its log with the last process that closes the file, and lets it grow again), and on files with a log that has
its full length already, where a commit costs least, which is as a worker finds them after a thousand commits. Making
the tables is not in the time.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from n00dles import Agent, Pipeline, SQLiteStateStore, resume, run
from n00dles.events import CheckpointSaved, Event

from .figure import Figure, alternated, ratio

__all__ = ["figures"]

PAYLOAD = "x" * 1000
STORED = json.dumps(PAYLOAD)
EDGE = 100
LENGTHS = {10: 100, 100: 30, 1000: 6, 3000: 4}
"""How many rounds are measured of a run of so many nodes."""
LONGEST_LOG = 1000
"""Commits after which SQLite has begun its log anew."""

T = TypeVar("T")


def figures() -> Iterator[Figure]:
    """Measure, and yield each figure as soon as it is known."""
    yield _compared("save, 1 KB, fresh file", 60, _fresh(_raw, _inserts(EDGE)), _fresh(_store, _saves), 1.3)
    for nodes, rounds in LENGTHS.items():
        raw, ours = _inserts(max(nodes, EDGE)), _whole_run(nodes)
        yield _compared(f"run of {nodes} nodes, fresh file", rounds, _fresh(_raw, raw), _fresh(_store, ours), 1.6)
    with tempfile.TemporaryDirectory(dir=".") as folder, _raw(folder) as used, _store(folder) as store:
        _inserts(LONGEST_LOG)(used)
        _whole_run(LONGEST_LOG)(store)
        yield _compared("save, 1 KB, file in use", 60, lambda: _inserts(EDGE)(used), lambda: _saves(store), 1.3)
        for nodes, rounds in LENGTHS.items():
            yield _in_use(nodes, rounds, used, store)
        yield _flatness(store)
        yield _resume(store, used)


def _in_use(nodes: int, rounds: int, used: sqlite3.Connection, store: SQLiteStateStore) -> Figure:
    raw, ours = _inserts(max(nodes, EDGE)), _whole_run(nodes)
    return _compared(f"run of {nodes} nodes, file in use", rounds, lambda: raw(used), lambda: ours(store), 1.6)


def _compared(name: str, rounds: int, raw: Callable[[], float], ours: Callable[[], float], at_most: float) -> Figure:
    limit, measured = alternated(rounds, raw, ours)
    return Figure(name, ratio(measured, limit), "× raw", _milliseconds(measured, limit), at_most=at_most)


def _fresh(opened: Callable[[str], AbstractContextManager[T]], measure: Callable[[T], float]) -> Callable[[], float]:
    """Return what measures on a file of its own each time."""

    def measured() -> float:
        with tempfile.TemporaryDirectory(dir=".") as folder, opened(folder) as subject:
            return measure(subject)

    return measured


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


def _inserts(nodes: int) -> Callable[[sqlite3.Connection], float]:
    """Return what measures the seconds a commit, over so many."""

    def inserted(raw: sqlite3.Connection) -> float:
        started = time.perf_counter()
        for _ in range(nodes):
            raw.execute("BEGIN IMMEDIATE")
            raw.execute("INSERT INTO outputs (output) VALUES (?)", (STORED,))
            raw.execute("COMMIT")
        return (time.perf_counter() - started) / nodes

    return inserted


def _saves(store: SQLiteStateStore) -> float:
    """Return the seconds a save."""

    async def saved() -> float:
        context = await store.load_or_create(f"save-{time.perf_counter_ns()}", {})
        started = time.perf_counter()
        for number in range(EDGE):
            context.checkpoint(f"n{number}", PAYLOAD)
            await store.save(context.run_id, context)
        return (time.perf_counter() - started) / EDGE

    return asyncio.run(saved())


def _whole_run(nodes: int) -> Callable[[SQLiteStateStore], float]:
    """Return what measures the seconds a node, over a run of so many."""
    chain = _chain(nodes)

    def measured(store: SQLiteStateStore) -> float:
        started = time.perf_counter()
        run(chain, store=store, text="x")
        return (time.perf_counter() - started) / nodes

    return measured


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
