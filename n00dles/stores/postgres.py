"""The shared store: a schema of a PostgreSQL database, in which any worker finds any run."""

from __future__ import annotations

import asyncio
import secrets
import weakref
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from ..context import PipelineContext
from ..errors import ConfigurationError, StateStoreError
from ..records import SaveBatch, Status
from ..threads import wait_out
from .alive import ALIVE
from .base import RunSummary, StateStore, check_run_id
from .claims import Claim
from .leases import Lease

if TYPE_CHECKING:
    from .postgres_pool import Connection

__all__ = ["PostgresStateStore"]


class PostgresStateStore(StateStore):
    """Keeps runs in a schema of a PostgreSQL database (14 or later), durable at every acknowledged save.

    `url` is a URL of libpq, with three more options that may be passed as well: `schema` (made if it is missing),
    `pool_size` (connections an event loop), and `timeout` (seconds, bounds every call, its retries included).

    A save is one statement that writes what is new, if the revision is the one that it continues. No connection is held
    between two calls, so one is enough, and so is a transaction pooler. One store object may be used from several
    tasks, event loops and threads, and in a forked child. Needs the extra `postgres`. Raises `ConfigurationError` for
    a URL that means nothing; the server is asked at the first use.
    """

    def __init__(
        self, url: str, *, schema: str | None = None, pool_size: int | None = None, timeout: float | None = None
    ) -> None:
        # With psycopg, which may be missing; whoever only names this class need not have it.
        try:
            from .postgres_claims import PostgresClaims
            from .postgres_leases import PostgresLeases
            from .postgres_records import PostgresRecords
            from .postgres_session import PostgresSession
            from .postgres_target import parse_target
        except ImportError as error:
            raise ConfigurationError(
                f"a PostgreSQL store needs psycopg 3: pip install 'n00dles-testing[postgres]' ({error})."
            ) from error
        self._target = parse_target(url, schema=schema, pool_size=pool_size, timeout=timeout)
        self._session = PostgresSession(self._target)
        self._records = PostgresRecords(self._target.schema)
        self._leases = PostgresLeases(self._target.schema)
        self._claims = PostgresClaims(self._target.schema)
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[str, asyncio.Lock]]
        self._locks = WeakKeyDictionary()
        self._tried: WeakKeyDictionary[PipelineContext, list[SaveBatch]] = WeakKeyDictionary()
        weakref.finalize(self, self._session.close)

    def __repr__(self) -> str:
        return f"PostgresStateStore({self._target.name!r})"

    @property
    def place(self) -> Hashable:
        """The schema, as far as the URL says which."""
        return self._target.place

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        """Return the stored run, or store a new one with these inputs: one caller creates it, all see the same."""
        check_run_id(run_id)
        created = PipelineContext(run_id, inputs)
        return await self._session.call(lambda c: self._records.read_or_create(c, created), run_id)

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        """Write what is new in `ctx`, if nobody else has saved the run since it was loaded."""
        if run_id != ctx.run_id:
            raise StateStoreError(f"the context of run {ctx.run_id!r} was to be saved as run {run_id!r}", run_id=run_id)
        check_run_id(run_id)
        snapshot = ctx.snapshot()
        tried = self._tried.setdefault(ctx, [])
        async with self._lock(run_id):
            await self._session.call(lambda c: self._records.save(c, ctx, snapshot, tried), run_id)

    async def delete(self, run_id: str) -> None:
        """Remove the run and its lease. Old versions of its rows stay on the server's disk until it vacuums them."""
        check_run_id(run_id)
        await self._session.call(lambda c: self._records.delete(c, run_id), run_id)

    async def load(self, run_id: str) -> PipelineContext | None:
        """Return the run, or None if it is not stored; nothing is created."""
        check_run_id(run_id)
        return await self._session.call(lambda c: self._records.read(c, run_id), run_id)

    async def list_runs(self, *, status: Status | None = None, limit: int | None = None) -> list[RunSummary]:
        """Return stored runs, the last updated first."""
        return await self._session.call(lambda c: self._records.summaries(c, status, limit), None)

    async def prune(self, *, older_than: float) -> list[str]:
        """Delete finished runs that were last saved more than `older_than` seconds ago; return their ids.

        The server's clock decides. It is not tried again when the connection breaks: which runs were deleted would
        then not be known.
        """
        return await self._session.call(lambda c: self._records.prune(c, older_than), None, again=False)

    async def server_time(self) -> float:
        """Return the seconds since the epoch by the server's clock, which decides what `prune` removes."""
        return await self._session.call(self._records.now, None)

    async def unmade(self) -> str | None:
        """Say that the schema is not there, or that it holds no tables of a store; None if it does."""
        if await self._session.is_made():
            return None
        target = self._target
        return f"there is no store in the schema {target.schema!r} (?schema=) of the database {target.database!r}"

    async def acquire(self, run_id: str, holder: str, ttl: float) -> Lease:
        """Return a lease of the run. Raises `RunLockedError` if another worker holds it, on whatever host."""
        check_run_id(run_id)
        token = secrets.token_hex(8)
        try:
            return await self._session.call(lambda c: self._leases.acquire(c, run_id, holder, token, ttl), run_id)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                undo = self._let_go(lambda c: self._leases.release(c, run_id, token), run_id)
                await wait_out(asyncio.create_task(undo))
            ALIVE.drop(token)
            raise

    async def renew(self, lease: Lease, ttl: float) -> Lease:
        """Return the lease, to last `ttl` seconds from now. Raises `RunLockedError` if it is held no longer."""
        return await self._session.call(lambda c: self._leases.renew(c, lease, ttl), lease.run_id)

    async def release(self, lease: Lease) -> None:
        """Free the run, if the lease still holds it."""
        await self._session.call(lambda c: self._leases.release(c, lease.run_id, lease.token), lease.run_id)

    async def list_leases(self, run_ids: Collection[str]) -> list[Lease]:
        """Return the leases that are held now of any of these runs."""
        return await self._session.call(lambda c: self._leases.held(c, run_ids), None)

    async def claim(
        self, pipelines: Collection[str], holder: str, ttl: float, *, limit: int = 1, skip: Collection[str] = ()
    ) -> list[Claim]:
        """Lease runs of these pipelines that are to be worked on and that nobody holds; see `Claims`."""
        try:
            return await self._session.call(
                lambda c: self._claims.claim(c, pipelines, holder, ttl, limit=limit, skip=skip), None
            )
        except asyncio.CancelledError:
            await wait_out(asyncio.create_task(self._let_go(self._claims.release, None)))
            raise

    async def aclose(self) -> None:
        """Close all connections; the next call opens one again."""
        self._session.close()

    async def _let_go(self, work: Callable[[Connection], Awaitable[None]], run_id: str | None) -> None:
        with suppress(StateStoreError):  # the lease then has to expire
            await self._session.call(work, run_id, again=False)

    def _lock(self, run_id: str) -> asyncio.Lock:
        """Return the lock that lets the saves of one run go one after another."""
        locks = self._locks.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
        lock = locks.get(run_id)
        if lock is None:
            lock = locks[run_id] = asyncio.Lock()
        return lock
