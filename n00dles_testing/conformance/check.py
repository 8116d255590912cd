"""The check of a store: every clause, by this process or by several, and one report."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Executor
from pathlib import Path

from n00dles.errors import ConfigurationError

from ..on_executors import Home, no_workers
from .by_workers import Order, check_by_workers
from .claims import Claims
from .progress import Progress, nobody
from .registry import select
from .report import StoreReport
from .runner import DEFAULT_LIMIT

__all__ = ["check_store"]


def check_store(
    target: str,
    *,
    clauses: Iterable[str] = (),
    seed: int = 0,
    limit: float = DEFAULT_LIMIT,
    claims: Path | None = None,
    reader: str | None = None,
    server: str | None = None,
    progress: Progress | None = None,
    workers: int | Executor = 1,
) -> StoreReport:
    """Check a store and return what became of each clause, and what was not tried.

    `target` is a URL, `module:factory`, `path/to/file.py:factory`, or the name of an entry point; `clauses` are ids,
    all if empty, and only then the capabilities are probed. A call of the store that takes longer than `limit` seconds
    is killed, and its clause FAILs; a clause that takes ten times as long is NOT RUN, unless it has found a fault by
    then. The seed decides the values that are drawn. `claims`
    is a TOML file (see `claims`), `reader` the `module:function` of an out-of-band reader. With `server`, "postgres" or
    "valkey", a throw-away server is started: a factory gets the URL of a fresh database on it as its location, and
    `postgresql://` and `redis://` without a host are opened on it. `workers` is how many clauses are checked at a time,
    or an executor of `concurrent.futures` whose workers check them, as a process pool or Dask have it; the report is
    the same, and what a worker had that was lost is checked again here. Raises `ConfigurationError`
    if the target cannot be opened at all, or the claims or the reader mean nothing, and `KeyError` for an unknown
    clause.
    """
    if refused := no_workers(workers):
        raise ConfigurationError(refused)
    asked = tuple(clauses)
    selected = select(asked)
    watcher = progress or nobody()
    said = Claims() if claims is None else Claims.from_file(claims)
    order = Order(target, Home.here(), seed=seed, limit=limit, claims=said, reader=reader, server=server)
    started = time.monotonic()
    with order.open(progress=watcher) as runner:
        results = runner.run(selected) if workers == 1 else check_by_workers(runner, order, selected, workers, watcher)
        capabilities = () if asked else runner.run_probes()
        return runner.report(results, capabilities, time.monotonic() - started)
