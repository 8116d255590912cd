"""Runs on a Redis or Valkey server, shared by the workers of many hosts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from ..context import PipelineContext
from ..errors import ConfigurationError, StateStoreError
from ..records import SaveBatch, Status, StoredRevision
from . import redis_leases
from .base import RunSummary, StateStore, check_run_id
from .claims import Claim
from .fencing import check_fence
from .leases import Lease, new_lease
from .redis_claims import RedisClaim
from .redis_durability import Durability
from .redis_records import (
    Handle,
    Head,
    RunKeys,
    created_fields,
    index_keys,
    read_run,
    run_keys,
    saved_fields,
    summary_of,
)
from .redis_scripts import CREATE, DELETE, FIND, OLDER, SAVE
from .redis_settings import parse_url
from .sealed_text import damaged

if TYPE_CHECKING:
    from .redis_session import Connections

__all__ = ["RedisStateStore"]

_ASKED_AT_ONCE = 1_000

_GRACE = 1.0  # seconds for which a cancelled call tries to undo what it may have done


class RedisStateStore(StateStore):
    """Keeps runs on the Redis (7 or later) or Valkey server at `url`: redis://, rediss:// (TLS) or unix://.

    A save is one atomic step of the server: it writes what is new if nobody else has saved the run meanwhile. It is as
    durable as the server makes it: by default (`durability="require"`) a server is refused that does not sync each
    write (`appendonly yes`, `appendfsync always`) or may evict runs; with `"warn"` it is used, and a warning says what
    can be lost. `prefix` begins every key, so that several stores share a database. `timeout` (seconds) bounds every
    call, tries included, and `max_connections` those of one event loop; one is enough. All four may stand in the query
    of the URL.

    One store object may be used from several tasks, event loops and threads, and in forked children. Needs the extra
    `redis`. Raises `ConfigurationError` if the URL or an option means nothing; the server is asked at the first use.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str | None = None,
        durability: Durability | None = None,
        timeout: float | None = None,
        max_connections: int | None = None,
    ) -> None:
        self._settings = parse_url(
            url, prefix=prefix, durability=durability, timeout=timeout, max_connections=max_connections
        )
        # With redis-py, which may be missing; whoever only names this class need not have it.
        try:
            from .redis_session import RedisSession
        except ImportError as error:
            raise ConfigurationError(
                f"the Redis store {self._settings.shown} needs the package redis; install it with: pip install "
                f"'n00dles-testing[redis]' ({error})."
            ) from error
        self._session = RedisSession(self._settings)
        # A context may be saved from several threads at once.
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"RedisStateStore({self._settings.shown!r}, prefix={self._settings.prefix!r})"

    @property
    def place(self) -> Hashable:
        """The server, the database and the prefix, as the URL names them."""
        return self._settings.place

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        """Return the stored run, or store a new one with these inputs: one caller creates it, all see the same."""
        check_run_id(run_id)
        keys, created = self._keys(run_id), PipelineContext(run_id, inputs)
        created.begin_life(is_first=True)
        batch = created.begin_save()

        async def work(connections: Connections) -> PipelineContext:
            while True:
                found = await _load(connections, keys, run_id)
                # A creation whose answer was lost finds itself, and is sent again to be acknowledged.
                if found is not None and found.handle.head.stored != batch.stored_revision:
                    return found
                if await self._create(connections, keys, created, batch):
                    return created

        return await self._session.call(work, run_id)

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        """Write what is new in `ctx`, if nobody else has saved the run since it was loaded."""
        if run_id != ctx.run_id:
            raise StateStoreError(f"the context of run {ctx.run_id!r} was to be saved as run {run_id!r}", run_id=run_id)
        check_run_id(run_id)
        keys, snapshot = self._keys(run_id), ctx.snapshot()

        async def work(connections: Connections) -> None:
            async with connections.turn(run_id):
                await self._save(connections, keys, ctx, snapshot)

        await self._session.call(work, run_id)

    async def delete(self, run_id: str) -> None:
        """Remove the run and its lease.

        The server's append-only file holds what was written until the server rewrites it (BGREWRITEAOF).
        """
        check_run_id(run_id)
        keys = self._keys(run_id)
        await self._session.call(lambda connections: _delete(connections, keys), run_id)

    async def load(self, run_id: str) -> PipelineContext | None:
        """Return the run, or None if it is not stored; nothing is created."""
        check_run_id(run_id)
        keys = self._keys(run_id)
        return await self._session.call(lambda connections: _load(connections, keys, run_id), run_id)

    async def list_runs(self, *, status: Status | None = None, limit: int | None = None) -> list[RunSummary]:
        """Return stored runs, the last updated first."""
        found = await self._session.call(
            lambda connections: self._listed(connections, status, limit), has_many_steps=True
        )
        runs = [summary for _, _, summary in found if status in (None, summary.status)]
        return sorted(runs, key=lambda run: run.updated_at, reverse=True)[:limit]

    async def prune(self, *, older_than: float) -> list[str]:
        """Delete finished runs that were last saved more than `older_than` seconds ago; return their ids.

        The server's clock decides.
        """

        async def work(connections: Connections) -> list[str]:
            indexes, removed = list(index_keys(self._settings.prefix, "finished")), list[str]()
            older = await connections.run_all(OLDER, [([index], [repr(older_than)]) for index, _ in indexes])
            named = [
                (0.0, tag + name.decode()) for (_, tag), names in zip(indexes, older, strict=True) for name in names
            ]
            for _, head, run in await _described(connections, named):
                # One that somebody has saved since it was listed has another head, and stays.
                if run.status == "finished" and await _delete(connections, self._keys(run.run_id), head):
                    removed.append(run.run_id)
            return removed

        return await self._session.call(work, has_many_steps=True)

    async def server_time(self) -> float:
        """Return the seconds since the epoch by the server's clock, which decides what `prune` removes."""
        seconds, microseconds = await self._session.call(lambda connections: connections.client.time())
        return seconds + microseconds / 1_000_000

    async def acquire(self, run_id: str, holder: str, ttl: float) -> Lease:
        """Return a lease of the run. Raises `RunLockedError` if another worker holds it, here or on another host."""
        check_run_id(run_id)
        keys, lease = self._keys(run_id), new_lease(run_id, holder, ttl)
        try:
            return await self._session.call(
                lambda connections: redis_leases.acquire(connections, keys, lease, ttl), run_id
            )
        except BaseException as error:
            if not isinstance(error, Exception):
                with suppress(StateStoreError, TimeoutError):
                    async with asyncio.timeout(_GRACE):
                        await self.release(lease)
            redis_leases.drop(lease)
            raise

    async def renew(self, lease: Lease, ttl: float) -> Lease:
        """Return the lease, to last `ttl` seconds from now. Raises `RunLockedError` if it is held no longer."""
        keys = self._keys(lease.run_id)
        return await self._session.call(
            lambda connections: redis_leases.renew(connections, keys, lease, ttl), lease.run_id
        )

    async def release(self, lease: Lease) -> None:
        """Free the run, if the lease still holds it."""
        keys = self._keys(lease.run_id)
        await self._session.call(lambda connections: redis_leases.release(connections, keys, lease), lease.run_id)
        redis_leases.drop(lease)

    async def list_leases(self, run_ids: Collection[str]) -> list[Lease]:
        """Return the leases that are held now of any of these runs."""
        keys = {run_id: self._keys(run_id) for run_id in run_ids}
        return await self._session.call(lambda connections: redis_leases.held(connections, keys))

    async def claim(
        self, pipelines: Collection[str], holder: str, ttl: float, *, limit: int = 1, skip: Collection[str] = ()
    ) -> list[Claim]:
        """Lease runs of these pipelines that are to be worked on and that nobody holds; see `Claims`."""
        claim, claims = RedisClaim(self._settings.prefix, pipelines, holder, ttl, limit, skip), list[Claim]()
        try:
            claims = await self._session.call(claim.work, has_many_steps=True)
        except BaseException:
            if claim.may_have_leased:
                with suppress(StateStoreError, TimeoutError):  # the leases then have to expire
                    async with asyncio.timeout(_GRACE):
                        await self._session.call(claim.release, has_many_steps=True)
            raise
        finally:
            claim.drop(claims)
        return claims

    async def aclose(self) -> None:
        """Close the connections of this event loop; the next call opens one."""
        await self._session.close()

    def _keys(self, run_id: str) -> RunKeys:
        return run_keys(self._settings.prefix, run_id)

    async def _create(
        self, connections: Connections, keys: RunKeys, context: PipelineContext, batch: SaveBatch
    ) -> bool:
        """Store a new run and acknowledge it; return whether it was not there. Raises `CorruptCheckpointError`."""
        head = Head.of(context.run_id, batch)
        outcome = await connections.run(
            CREATE,
            [keys.run, *keys.indexes(batch.head.status)],
            keys.name,
            head.text,
            *created_fields(context, batch, head),
        )
        if outcome == b"damaged":
            raise damaged(context.run_id, "parts of it are missing, or the server has evicted it")
        if outcome == b"created":
            self._acknowledge(context, head, batch)
        return bool(outcome == b"created")

    async def _save(
        self, connections: Connections, keys: RunKeys, context: PipelineContext, snapshot: SaveBatch
    ) -> None:
        """Write `snapshot`, unless a later one was written. Raises `StaleContextError`.

        A save whose answer was lost is sent again by the retries, and found to be there. One whose call has ended
        without an answer may land before or after this one looks, so it is remembered until one is acknowledged.
        """
        while True:
            before = context.handle.head if isinstance(context.handle, Handle) else None
            if before is None or (context.in_doubt is not None and not _doubts(context)):
                before = await self._fenced(connections, keys, context)
            if snapshot.number <= context.saved_snapshot:
                return
            if before is None:
                batch = context.begin_save(snapshot)
                if await self._create(connections, keys, context, batch):
                    return
                continue
            sent = self._sent(context, before, snapshot)
            head, batch = sent
            indexes = dict.fromkeys(keys.index(each.head.status) for each in (head, before))
            in_the_way = await connections.run(
                SAVE,
                [keys.run, *indexes],
                keys.name,
                before.text,
                head.text,
                *saved_fields(context.run_id, batch, before),
            )
            if in_the_way is None:
                self._acknowledge(context, head, batch)
                return
            self._settle(context, in_the_way, sent)

    def _sent(self, context: PipelineContext, before: Head, snapshot: SaveBatch) -> tuple[Head, SaveBatch]:
        """Return the save to send, and remember it as one whose end is unknown."""
        with self._lock:
            batch = context.begin_save(snapshot)
            sent = Head.of(context.run_id, batch), batch
            context.handle = Handle(before, (*_doubts(context), sent))
            return sent

    def _acknowledge(self, context: PipelineContext, head: Head, batch: SaveBatch) -> None:
        with self._lock:
            if head.stored.revision > context.revision:
                context.acknowledge(batch)
                context.handle = Handle(head)

    def _settle(self, context: PipelineContext, in_the_way: bytes, sent: tuple[Head, SaveBatch]) -> None:
        """Acknowledge the earlier save that is in the way of `sent`. Raises `StaleContextError` if it is another's."""
        for head, batch in _doubts(context):
            if head.text == in_the_way:
                self._acknowledge(context, head, batch)
                return
        handle = context.handle
        if isinstance(handle, Handle):
            if handle.head.text == in_the_way:  # another thread has acknowledged it meanwhile
                return
            # This one was refused, and is in doubt no longer.
            context.handle = Handle(handle.head, tuple(doubt for doubt in handle.doubts if doubt is not sent))
        stored: StoredRevision | None = Head.read(context.run_id, in_the_way).stored if in_the_way else None
        check_fence(context, stored)
        raise damaged(context.run_id, "its head is not what was stored")

    async def _fenced(self, connections: Connections, keys: RunKeys, context: PipelineContext) -> Head | None:
        """Return the head that `context` may write over, or None if the run is to be created."""
        text = await connections.client.hget(keys.run, "head")
        head = None if text is None else Head.read(context.run_id, cast(bytes, text))
        check_fence(context, None if head is None else head.stored)
        if head is not None:
            context.handle = Handle(head)
        return head

    async def _listed(
        self, connections: Connections, status: Status | None, limit: int | None
    ) -> list[tuple[str, bytes, RunSummary]]:
        """Return key, head and summary of the runs in the indexes, the last saved first."""
        tags, most, pipeline = [], -1 if limit is None else limit, connections.client.pipeline(transaction=False)
        for index, tag in index_keys(self._settings.prefix, status):
            tags.append(tag)
            pipeline.zrange(index, "+inf", "-inf", desc=True, byscore=True, offset=0, num=most, withscores=True)
        found = zip(tags, await pipeline.execute(), strict=True)
        named = sorted(((score, tag + name.decode()) for tag, names in found for name, score in names), reverse=True)
        return await _described(connections, named[:limit])


async def _described(
    connections: Connections, named: Sequence[tuple[float, str]]
) -> list[tuple[str, bytes, RunSummary]]:
    """Return key, head and summary of those of these runs that are still there; each comes with when it was saved."""
    described = []
    for some in (named[start : start + _ASKED_AT_ONCE] for start in range(0, len(named), _ASKED_AT_ONCE)):
        pipeline = connections.client.pipeline(transaction=False)
        for _, key in some:
            pipeline.hmget(key, "id", "head")
        for (saved_at, key), (run_id, head) in zip(some, await pipeline.execute(), strict=True):
            summary = summary_of(run_id, head, saved_at)
            if summary is not None:
                described.append((key, head, summary))
    return described


def _doubts(context: PipelineContext) -> tuple[tuple[Head, SaveBatch], ...]:
    return context.handle.doubts if isinstance(context.handle, Handle) else ()


async def _load(connections: Connections, keys: RunKeys, run_id: str) -> PipelineContext | None:
    fields = await connections.client.hgetall(keys.run)
    if fields:
        return read_run(run_id, cast(dict[bytes, bytes], fields))
    if await connections.run(FIND, [keys.run, *keys.indexes()], keys.name):
        raise damaged(run_id, "it is in the list of runs and has no record; the server may have evicted it")
    return None


async def _delete(connections: Connections, keys: RunKeys, head: bytes = b"") -> bool:
    return bool(await connections.run(DELETE, [keys.run, keys.lease, *keys.indexes()], keys.name, head))
