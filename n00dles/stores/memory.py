"""Runs in the memory of this process: for tests, and for scripts that need no resume."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..context import PipelineContext
from ..errors import StateStoreError
from ..records import SaveBatch, Status, StoredOutput
from ..serialization import dumps, loads
from .base import RunSummary, StateStore, check_run_id
from .fencing import check_fence
from .leases import Lease, LeaseTable

__all__ = ["InMemoryStateStore"]


@dataclass(slots=True)
class _Record:
    inputs: str
    batch: SaveBatch
    signature: str = "[]"
    outputs: dict[str, StoredOutput] = field(default_factory=dict)


class InMemoryStateStore(StateStore):
    """Keeps runs in the form that a durable store writes, as JSON text, so that tests see what a disk would give back.

    All users of one object share its runs; nothing outlives the process.
    """

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}
        self._lock = threading.Lock()
        self._leases = LeaseTable()

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        """Return the stored run, or store a new one with these inputs."""
        check_run_id(run_id)
        created = PipelineContext(run_id, inputs)
        with self._lock:
            record = self._records.get(run_id)
            if record is not None:
                return _context(run_id, record)
            created.begin_life(is_first=True)
            self._write(created)
            return created

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        """Keep what is new in `ctx`, if nobody else has saved the run since it was loaded."""
        check_run_id(run_id)
        if run_id != ctx.run_id:
            raise StateStoreError(f"the context of run {ctx.run_id!r} was to be saved as run {run_id!r}", run_id=run_id)
        with self._lock:
            record = self._records.get(run_id)
            check_fence(ctx, record.batch.stored_revision if record else None)
            self._write(ctx)

    async def delete(self, run_id: str) -> None:
        """Forget the run."""
        check_run_id(run_id)
        with self._lock:
            self._records.pop(run_id, None)
        self._leases.end(run_id)

    async def load(self, run_id: str) -> PipelineContext | None:
        """Return the run, or None if it is not stored."""
        check_run_id(run_id)
        with self._lock:
            record = self._records.get(run_id)
            return _context(run_id, record) if record else None

    async def list_runs(self, *, status: Status | None = None, limit: int | None = None) -> list[RunSummary]:
        """Return stored runs, the last updated first."""
        with self._lock:
            runs = [_summary(run_id, record) for run_id, record in self._records.items()]
        found = [run for run in runs if status in (None, run.status)]
        return sorted(found, key=lambda run: run.updated_at, reverse=True)[:limit]

    async def prune(self, *, older_than: float) -> list[str]:
        """Delete finished runs that were last updated more than `older_than` seconds ago; return their ids."""
        limit = time.time() - older_than
        with self._lock:
            runs = [_summary(run_id, record) for run_id, record in self._records.items()]
            old = [run.run_id for run in runs if run.status == "finished" and run.updated_at < limit]
            for run_id in old:
                del self._records[run_id]
        return old

    async def acquire(self, run_id: str, holder: str, ttl: float) -> Lease:
        """Return a lease of the run. Raises `RunLockedError` if another task or thread holds it."""
        check_run_id(run_id)
        return self._leases.acquire(run_id, holder, ttl)

    async def renew(self, lease: Lease, ttl: float) -> Lease:
        """Return the lease, to last `ttl` seconds from now. Raises `RunLockedError` if it is held no longer."""
        return self._leases.renew(lease, ttl)

    async def release(self, lease: Lease) -> None:
        """Free the run, if the lease still holds it."""
        self._leases.release(lease)

    async def list_leases(self, run_ids: Collection[str]) -> list[Lease]:
        """Return the leases that are held now of any of these runs."""
        return self._leases.held(run_ids)

    def _write(self, context: PipelineContext) -> None:
        batch = context.begin_save()
        record = self._records.setdefault(context.run_id, _Record(dumps(context.inputs), batch))
        record.batch = batch
        record.signature = batch.signature or record.signature
        record.outputs.update((output.node, output) for output in batch.outputs)
        context.acknowledge(batch)


def _context(run_id: str, record: _Record) -> PipelineContext:
    return PipelineContext.assemble(
        run_id,
        loads(record.inputs),
        ((stored.node, loads(stored.output), stored.record.copy()) for stored in record.outputs.values()),
        record.batch.head,
        signature=loads(record.signature),
        revision=record.batch.revision + 1,
        incarnation=record.batch.incarnation,
    )


def _summary(run_id: str, record: _Record) -> RunSummary:
    head = record.batch.head
    return RunSummary(run_id, head.pipeline, head.status, len(record.outputs), head.created_at, head.updated_at)
