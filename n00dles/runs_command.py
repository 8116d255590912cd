"""The commands `n00dles runs …`: each takes its parsed options and returns an exit code."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, TypeVar

from pydantic_core import to_jsonable_python

from .api import aresume
from .errors import ConfigurationError, CorruptCheckpointError, RunNotFoundError
from .events import CheckpointSaved, Event, NodeFailed, NodeRetried, NodeStarted, RunFinished, RunStarted
from .pipeline import Step
from .result import RunResult
from .runs_text import holding_of, one_line, story_of, table_of, time_text
from .stores.base import Closable, ListsRuns, Loads, MadeAtFirstUse, Prunes, RunSummary, StateStore, TellsTime
from .stores.leases import Lease, ListsLeases
from .stores.urls import open_store
from .targets import load_target

__all__ = ["delete_run", "list_runs", "prune_runs", "resume_run", "show_run"]

T = TypeVar("T")


def list_runs(options: argparse.Namespace) -> int:
    """Print a table, or JSON, of the stored runs."""

    async def found(store: StateStore) -> tuple[list[RunSummary], dict[str, Lease] | None]:
        runs = await _listed(store, options.status, options.limit)
        return runs, await _leases(store, *(run.run_id for run in runs)) if isinstance(store, ListsLeases) else None

    runs, leases = _with_store(options.store, found)
    if options.json:
        holders = {run_id: lease.holder for run_id, lease in (leases or {}).items()}
        _print_json([{**asdict(run), "held_by": holders.get(run.run_id)} for run in runs])
    elif runs:
        print(table_of(runs, leases))
    else:
        print("no runs" + (f" of status {options.status}" if options.status else ""), file=sys.stderr)
    return 0


def show_run(options: argparse.Namespace) -> int:
    """Print the story of one run, or its whole record as JSON."""

    async def found(store: StateStore) -> tuple[Any, Lease | None, bool]:
        ctx = await _loaded(store, options.run_id)
        return ctx, (await _leases(store, options.run_id)).get(options.run_id), isinstance(store, ListsLeases)

    ctx, lease, tells_leases = _with_store(options.store, found)
    if options.json:
        _print_json(ctx.to_dict())
    else:
        print(story_of(ctx, lease, tells_leases=tells_leases))
    return 0


def resume_run(options: argparse.Namespace) -> int:
    """Continue a run and print its result."""
    pipeline = load_target(options.pipeline, Step)
    observers = () if options.quiet else (_print_progress,)

    async def resumed(store: StateStore) -> RunResult:
        if options.wait and not options.quiet:
            await _say_who_is_waited_for(store, options.run_id)
        return await aresume(pipeline, options.run_id, store=store, observers=observers, wait=options.wait)

    result = _with_store(options.store, resumed)
    _print_json(
        {
            "run_id": result.run_id,
            "output": to_jsonable_python(result.output, by_alias=False),
            "duration_ms": result.duration_ms,
            "total_tokens": result.total_tokens,
            "tags": list(result.tags),
            "agent_traces": [asdict(trace) for trace in result.agent_traces],
        }
    )
    return 0


def delete_run(options: argparse.Namespace) -> int:
    """Remove one run, after asking."""
    run_id = options.run_id
    what = _with_store(options.store, lambda store: _described(store, run_id))
    if not options.yes:
        if not sys.stdin.isatty():
            raise ConfigurationError(f"run {run_id!r} is not deleted: there is no terminal to ask on. Pass --yes.")
        print(f"Delete {what}? It cannot be brought back. [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
        if answer.strip().lower() not in ("y", "yes"):
            print("nothing is deleted", file=sys.stderr)
            return 1
    _with_store(options.store, lambda store: store.delete(run_id))
    print(f"deleted {what}")
    return 0


def prune_runs(options: argparse.Namespace) -> int:
    """Remove old finished runs, or say which would be."""
    runs = _with_store(options.store, lambda store: _prune(store, options.older_than, dry=options.dry_run))
    for run_id in runs:
        print(one_line(run_id))
    verb = "would be removed" if options.dry_run else "removed"
    print(f"{len(runs)} finished run{'' if len(runs) == 1 else 's'} {verb}", file=sys.stderr)
    return 0


def _with_store(url: str, work: Callable[[StateStore], Awaitable[T]]) -> T:
    """Open the store, let `work` use it, and close it, in an event loop of its own."""

    async def session() -> T:
        store = open_store(url)
        try:
            await _check_made(store)
            return await work(store)
        finally:
            if isinstance(store, Closable):
                await store.aclose()

    return asyncio.run(session())


async def _check_made(store: StateStore) -> None:
    """Refuse a store that asking would make: every question would be answered with "no runs"."""
    lacking = await store.unmade() if isinstance(store, MadeAtFirstUse) else None
    if lacking is not None:
        raise ConfigurationError(
            f"{lacking}, and none was made. Name the store of your runs with --store or N00DLES_STORE."
        )


async def _listed(store: StateStore, status: Any, limit: int | None) -> list[RunSummary]:
    if not isinstance(store, ListsRuns):
        raise ConfigurationError(f"{type(store).__name__} cannot list its runs: it has no list_runs().")
    return await store.list_runs(status=status, limit=limit)


async def _loaded(store: StateStore, run_id: str) -> Any:
    if not isinstance(store, Loads):
        raise ConfigurationError(f"{type(store).__name__} cannot read a run without creating it: it has no load().")
    ctx = await store.load(run_id)
    if ctx is None:
        raise RunNotFoundError(f"there is no run {run_id!r} in this store; `n00dles runs list` shows those that are.")
    return ctx


async def _described(store: StateStore, run_id: str) -> str:
    """Say what would be deleted, as far as the store can read a run without creating it.

    A damaged record may be deleted, too: there is no other way to be rid of it.
    """
    if not isinstance(store, Loads):
        return f"run {run_id!r}"
    try:
        ctx = await _loaded(store, run_id)
    except CorruptCheckpointError:
        return f"run {run_id!r} (its record is damaged)"
    count = len(ctx.order)
    lease = (await _leases(store, run_id)).get(run_id)
    held = f"; held by {holding_of(lease)}: its worker will be refused, and stops" if lease else ""
    return (
        f"run {run_id!r} ({ctx.pipeline or 'unnamed pipeline'}, {ctx.status}, {count} completed "
        f"node{'' if count == 1 else 's'}, last updated {time_text(ctx.updated_at)}{held})"
    )


async def _leases(store: StateStore, *run_ids: str) -> dict[str, Lease]:
    """Return who holds which of these runs, as far as the store can say."""
    found = await store.list_leases(run_ids) if isinstance(store, ListsLeases) else []
    return {lease.run_id: lease for lease in found}


async def _say_who_is_waited_for(store: StateStore, run_id: str) -> None:
    lease = (await _leases(store, run_id)).get(run_id)
    if lease is not None:
        print(f"waiting for {one_line(lease.holder)}", file=sys.stderr, flush=True)


async def _prune(store: StateStore, older_than: float, *, dry: bool) -> list[str]:
    if not isinstance(store, Prunes):
        raise ConfigurationError(f"{type(store).__name__} cannot prune: it has no prune().")
    if not dry:
        return await store.prune(older_than=older_than)
    now = await store.server_time() if isinstance(store, TellsTime) else time.time()
    return [run.run_id for run in await _listed(store, "finished", None) if run.updated_at < now - older_than]


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def _print_progress(event: Event) -> None:
    line = _progress_line(event)
    if line is not None:
        print(line, file=sys.stderr, flush=True)


def _progress_line(event: Event) -> str | None:
    match event:
        case RunStarted(life=life, completed=completed):
            done = ", ".join(completed) or "nothing"
            return f"life {life}; already complete: {done}"
        case RunFinished(calls=0):
            return "finished already; nothing was called"
        case NodeStarted(node=node, attempt=attempt):
            return f"{node} started" + (f" (attempt {attempt})" if attempt > 1 else "")
        case NodeRetried(node=node, error=error, delay=delay):
            return f"{node} failed and is tried again in {delay:.1f} s: {one_line(error)}"
        case NodeFailed(node=node, error=error, fallback=fallback):
            follow = f"; its fallback {fallback} is tried" if fallback else ""
            return f"{node} failed: {one_line(error)}{follow}"
        case CheckpointSaved(nodes=nodes) if nodes:
            return f"{', '.join(nodes)} saved"
    return None
