"""The default store: one SQLite file, durable at every acknowledged save."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Collection, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Literal, TypeVar

from ..context import PipelineContext
from ..errors import ConfigurationError, StateStoreError
from ..records import Status
from ..threads import call_in_thread
from . import sqlite_records
from .base import RunSummary, StateStore, check_run_id
from .claims import Claim, lease_candidates
from .lease_lines import OthersTurnError
from .leases import Lease
from .sqlite_leases import lease_file, wait_for_turn
from .sqlite_session import SQLiteSession, WouldWaitError

__all__ = ["SQLiteStateStore"]

T = TypeVar("T")


class SQLiteStateStore(StateStore):
    """Keeps runs in a SQLite database at `path`, in write-ahead-log mode with synchronous=FULL.

    A save writes only what is new, in one transaction that checks the revision. `busy_timeout` (seconds) bounds the
    wait for another process that is writing. The file is opened at the first use, and again after `aclose` or a fork.
    One store object may be used from several tasks, event loops and threads.

    As long as the disk answers within a millisecond and nobody else holds the lock, SQLite is called on the event loop:
    handing such a call to a thread would take half as long again. Otherwise it is called in a thread.
    """

    def __init__(self, path: str | os.PathLike[str] = "n00dles_state.db", *, busy_timeout: float = 10.0) -> None:
        self.path = os.fspath(path)
        self.busy_timeout = busy_timeout
        if self.path == ":memory:":
            raise ConfigurationError("a SQLite database in memory cannot be resumed from; use InMemoryStateStore().")
        # Absolute, so that the store stays where it is when the process changes its folder.
        self._session = SQLiteSession(os.path.abspath(self.path), busy_timeout)
        self._leases = lease_file(self._session.path)
        self._thread: tuple[int, ThreadPoolExecutor] | None = None
        weakref.finalize(self, self._session.close)

    def __repr__(self) -> str:
        return f"SQLiteStateStore({self.path!r})"

    @property
    def place(self) -> Hashable:
        """The file, however its path is written."""
        return "sqlite", os.path.realpath(self._session.path)

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        """Return the stored run, or store a new one with these inputs: one caller creates it, all see the same."""
        check_run_id(run_id)

        def work(connection: sqlite3.Connection) -> PipelineContext:
            return sqlite_records.read_or_create(connection, run_id, inputs)

        if self._session.is_fast:
            with suppress(WouldWaitError):
                return self._session.transaction("BEGIN IMMEDIATE", work, run_id=run_id, wait=False)
        # Whoever only reads does not wait for who writes.
        existing = await self.load(run_id)
        if existing is not None:
            return existing
        return await self._call("BEGIN IMMEDIATE", work, run_id)

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        """Write what is new in `ctx`, if nobody else has saved the run since it was loaded."""
        if run_id != ctx.run_id:
            raise StateStoreError(f"the context of run {ctx.run_id!r} was to be saved as run {run_id!r}", run_id=run_id)
        check_run_id(run_id)
        snapshot = ctx.snapshot()
        await self._call(
            "BEGIN IMMEDIATE", lambda c: sqlite_records.save(c, ctx, snapshot), run_id, committed=ctx.acknowledge
        )

    async def delete(self, run_id: str) -> None:
        """Remove the run and every byte of it.

        The write-ahead log is emptied too, unless another process is reading or writing at that moment; then what was
        in it goes when the log is next emptied.
        """
        check_run_id(run_id)
        if await self._call("BEGIN IMMEDIATE", lambda c: sqlite_records.delete(c, run_id), run_id):
            await self._in_thread(self._session.empty_log)
        with suppress(StateStoreError):  # the run is gone; so is its lease, when it expires
            await self._in_turn(lambda: self._leases.end(run_id))

    async def load(self, run_id: str) -> PipelineContext | None:
        """Return the run, or None if it is not stored; nothing is created."""
        check_run_id(run_id)
        return await self._call("BEGIN", lambda c: sqlite_records.read(c, run_id), run_id)

    async def list_runs(self, *, status: Status | None = None, limit: int | None = None) -> list[RunSummary]:
        """Return stored runs, the last updated first, those of the 0.3 release included."""
        return await self._call("BEGIN", lambda c: sqlite_records.summaries(c, status)[:limit], None)

    async def prune(self, *, older_than: float) -> list[str]:
        """Delete finished runs that were last updated more than `older_than` seconds ago; return their ids."""
        limit = time.time() - older_than

        def work(connection: sqlite3.Connection) -> list[str]:
            finished = sqlite_records.summaries(connection, "finished")
            return [
                run.run_id
                for run in finished
                if run.updated_at < limit and sqlite_records.delete(connection, run.run_id)
            ]

        removed = await self._call("BEGIN IMMEDIATE", work, None)
        if removed:
            await self._in_thread(self._session.empty_log)
        return removed

    async def unmade(self) -> str | None:
        """Say that there is no such file; None if there is one."""
        if os.path.exists(self._session.path):  # noqa: ASYNC240 - as fast as SQLite itself, which is called here, too
            return None
        return f"there is no database {self.path!r} (from {os.getcwd()!r})"

    async def acquire(self, run_id: str, holder: str, ttl: float) -> Lease:
        """Return a lease of the run. Raises `RunLockedError` if another worker holds it, here or in another process."""
        check_run_id(run_id)
        acquired: list[Lease] = []
        try:
            await self._in_turn(lambda: acquired.append(self._leases.acquire(run_id, holder, ttl)))
        except asyncio.CancelledError:
            for lease in acquired:
                self._leases.release(lease)
            raise
        return acquired[0]

    async def renew(self, lease: Lease, ttl: float) -> Lease:
        """Return the lease, to last `ttl` seconds from now. Raises `RunLockedError` if it is held no longer."""
        return await self._in_turn(lambda: self._leases.renew(lease, ttl))

    async def release(self, lease: Lease) -> None:
        """Free the run, if the lease still holds it."""
        self._leases.release(lease)

    async def list_leases(self, run_ids: Collection[str]) -> list[Lease]:
        """Return the leases that are held now of any of these runs."""
        return await self._in_turn(lambda: self._leases.held(run_ids))

    async def claim(
        self, pipelines: Collection[str], holder: str, ttl: float, *, limit: int = 1, skip: Collection[str] = ()
    ) -> list[Claim]:
        """Lease runs of these pipelines that are to be worked on and that nobody holds; see `Claims`."""

        async def is_open(run_id: str) -> bool:
            return await self._call("BEGIN", lambda c: sqlite_records.is_open(c, run_id), run_id)

        # All heads are looked at, which may take longer than an event loop should wait.
        found = await self._in_thread(
            lambda: self._session.transaction("BEGIN", lambda c: sqlite_records.candidates(c, pipelines, skip))
        )
        return await lease_candidates(self, found, is_open, holder=holder, ttl=ttl, limit=limit)

    async def aclose(self) -> None:
        """Close the file; the next call opens it again."""
        await self._in_thread(self._session.close)
        with suppress(OthersTurnError, StateStoreError):
            self._leases.remove()
        if self._thread is not None:
            self._thread[1].shutdown()
            self._thread = None

    async def _call(
        self,
        kind: Literal["BEGIN", "BEGIN IMMEDIATE"],
        work: Callable[[sqlite3.Connection], T],
        run_id: str | None,
        *,
        committed: Callable[[Any], None] | None = None,
    ) -> T:
        try:
            if not self._session.is_fast:
                raise WouldWaitError
            return self._session.transaction(kind, work, run_id=run_id, wait=False, committed=committed)
        except WouldWaitError:
            return await self._in_thread(
                lambda: self._session.transaction(kind, work, run_id=run_id, committed=committed)
            )

    async def _in_turn(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, which uses the file of leases, as soon as no other process is at it."""
        try:
            return work()
        except OthersTurnError:
            return await self._in_thread(lambda: wait_for_turn(work, self.busy_timeout))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await call_in_thread(self._executor(), work)

    def _executor(self) -> ThreadPoolExecutor:
        # Threads do not survive a fork.
        if self._thread is None or self._thread[0] != os.getpid():
            self._thread = (os.getpid(), ThreadPoolExecutor(1, thread_name_prefix="n00dles-sqlite"))
        return self._thread[1]
