"""The three methods of a state store over whatever keeps one record under one key."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from n00dles import PipelineContext, StaleContextError
from n00dles.records import SaveBatch

__all__ = ["Record", "RecordStore", "TransactionalStore"]

Record = dict[str, Any]


class RecordStore(ABC):
    """A store that can read, write and remove a record, and nothing more: the last writer wins."""

    _creating = threading.Lock()
    """Of two threads that create a run, one waits. What processes do at once is left to the subject."""

    def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        """Return the run, or store a new one."""
        with self._creating:
            record = self.read(run_id)
            if record is not None:
                return PipelineContext.from_dict(record)
            ctx = PipelineContext(run_id, inputs)
            self.put(ctx)
            return ctx

    def save(self, run_id: str, ctx: PipelineContext) -> None:
        """Write the run as it is."""
        self.put(ctx)

    def delete(self, run_id: str) -> None:
        """Remove the run, if it is there."""
        self.remove(run_id)

    def put(self, ctx: PipelineContext) -> None:
        """Write a context as a record."""
        self.write(ctx.run_id, ctx.to_dict())

    @abstractmethod
    def read(self, run_id: str) -> Record | None:
        """Return the record, or None if there is none."""

    @abstractmethod
    def write(self, run_id: str, record: Record) -> None:
        """Write the record over the one that is there, if any."""

    @abstractmethod
    def remove(self, run_id: str) -> None:
        """Remove the record, if it is there."""


class TransactionalStore(RecordStore):
    """A store whose transactions make reading, comparing and writing one step: it refuses a save that is behind."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """Begin a transaction that no other one overlaps; commit it at the end, roll it back on an error."""

    def save(self, run_id: str, ctx: PipelineContext) -> None:
        """Write the run, if it is still as it was loaded."""
        with self.transaction():
            record = self.read(run_id)
            if record and ctx.in_doubt and record["save_id"] == ctx.in_doubt.save_id:
                # The last save raised, and had been committed already.
                ctx.acknowledge(ctx.in_doubt)
            stored = (record["incarnation"], record["revision"]) if record else (ctx.incarnation, 0)
            if stored != (ctx.incarnation, ctx.revision):
                raise StaleContextError(
                    f"run {run_id!r} was saved by another, deleted or created anew since it was loaded; nothing was "
                    "written. Load it again.",
                    run_id=run_id,
                )
            batch = self.write_next(ctx)
        ctx.acknowledge(batch)

    def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        """Return the run, or store a new one."""
        with self.transaction():
            record = self.read(run_id)
            if record is not None:
                return PipelineContext.from_dict(record)
            ctx = PipelineContext(run_id, inputs)
            batch = self.write_next(ctx)
        ctx.acknowledge(batch)
        return ctx

    def delete(self, run_id: str) -> None:
        """Remove the run, if it is there."""
        with self.transaction():
            self.remove(run_id)

    def write_next(self, ctx: PipelineContext) -> SaveBatch:
        """Write the next revision, and return what is to be acknowledged once it is committed."""
        batch = ctx.begin_save()
        self.write(ctx.run_id, {**ctx.to_dict(), "revision": batch.revision + 1, "save_id": batch.save_id})
        return batch
