"""How one run lies in the tables of the PostgreSQL store, and how it is read, created, saved and deleted.

A run is a row of `runs` (inputs, signature, status) and one row of `saves` for each save: its head, and the outputs
that were new. The head of the last one is the run's, and the fence: a save is put behind exactly the one that its
context has read, or written. Each text carries a checksum over itself, its run and what it is; revisions without a gap
and a head that counts the outputs show whether any is missing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, NamedTuple

from psycopg import adapters
from psycopg.sql import SQL, Identifier

from ..context import PipelineContext
from ..errors import StateStoreError
from ..records import NodeRecord, RunHead, SaveBatch, Status, StoredRevision
from ..serialization import dumps, loads
from .base import RunSummary
from .fencing import check_fence, check_whole
from .head_text import head_text, record_text
from .postgres_pool import Connection
from .postgres_schema import read_committed
from .postgres_wire import ask
from .sealed_text import damaged, opened, sealed, unsealed

__all__ = ["PostgresRecords", "run_hash"]

_LARGEST = 1_000_000_000
"""Bytes that a value and a message to the server may have, nearly; its own limit is 1 GB."""

_TRIES = 3


_Row = tuple[bytes, bytes, bytes]
"""What a save puts into its row: its id, its head and its outputs; the server adds the time."""


class _Last(NamedTuple):
    """What a context remembers of the save that its next one continues."""

    stored: StoredRevision
    completed: int
    status: Status
    pipeline: str | None

    @classmethod
    def of(cls, batch: SaveBatch) -> _Last:
        return cls(batch.stored_revision, batch.completed, batch.head.status, batch.head.pipeline)


class PostgresRecords:
    """The statements on the runs of one schema. Each method is one call on a connection, and may be called again."""

    def __init__(self, schema: str) -> None:
        def query(text: str) -> bytes:
            return SQL(text).format(s=Identifier(schema)).as_bytes()

        self._read = query(_READ)
        self._last = query(_LAST)
        self._append = query(_APPEND)
        self._save = query(_SAVE)
        self._create = query(_CREATE)
        self._delete = query("SELECT {s}.delete_run(%s::bytea)")
        self._prune = query(f"SELECT {{s}}.prune_runs({_NOW} - %s::double precision)")
        self._list = query(_LIST)

    async def read(self, connection: Connection, run_id: str) -> PipelineContext | None:
        """Return the stored run, or None. Raises `CorruptCheckpointError` if a part of it is damaged or missing."""
        rows = await (await connection.execute(self._read, {"hash": run_hash(run_id)}, binary=True)).fetchall()
        if not rows:
            return None
        try:
            return _context(run_id, rows)
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            raise damaged(run_id, f"{type(error).__name__}: {error}") from error

    async def read_or_create(self, connection: Connection, created: PipelineContext) -> PipelineContext:
        """Return the stored run of `created`'s id, or store `created` in its first life, and return it."""
        while True:
            existing = await self.read(connection, created.run_id)
            if existing is not None and existing.incarnation != created.incarnation:
                return existing
            in_doubt = created.in_doubt
            if existing is not None and in_doubt is not None:
                _acknowledge(created, in_doubt)  # the reply was lost
                return created
            if not created.is_new:
                created.begin_life(is_first=True)
            batch = created.begin_save()
            if await self._could_create(connection, created, batch):
                _acknowledge(created, batch)
                return created

    async def save(
        self, connection: Connection, context: PipelineContext, snapshot: SaveBatch, tried: list[SaveBatch]
    ) -> None:
        """Write `snapshot` of `context`, if the last save is the one that it continues.

        `tried` are the saves of this context whose outcome is unknown; one that the store holds is acknowledged.
        Raises `StaleContextError` and writes nothing if the run has gone on, or is gone.
        """
        for _ in range(_TRIES):
            last = context.handle if isinstance(context.handle, _Last) else None
            if last is None or tried or context.in_doubt is not None or last.stored.revision != context.revision:
                last = await self._fenced(connection, context, tried)
            if snapshot.number <= context.saved_snapshot:
                return  # its reply was lost, or a save that was called later has overtaken it
            batch = context.begin_save(snapshot)
            check_whole(context.run_id, batch, 0 if last is None else last.completed)
            tried.append(batch)
            if last is None:
                is_done = await self._could_create(connection, context, batch)
            else:
                is_done = await self._could_save(connection, context, batch, last)
            if is_done:
                _acknowledge(context, batch)
                tried.clear()
                return
            # Another save of this context had landed before, or somebody has gone on: the fence tells.
            context.handle = None
        raise damaged(context.run_id, "its last save is there, and another cannot be put behind it")

    async def delete(self, connection: Connection, run_id: str) -> None:
        """Remove the run, and its lease."""
        async with connection.transaction():
            await read_committed(connection)
            await connection.execute(self._delete, (run_hash(run_id),))

    async def prune(self, connection: Connection, older_than: float) -> list[str]:
        """Delete finished runs that were last saved so many seconds ago; return their ids."""
        async with connection.transaction():
            await read_committed(connection)
            rows = await (await connection.execute(self._prune, (older_than,), binary=True)).fetchall()
        return [bytes(run_id).decode() for (run_id,) in rows]

    async def now(self, connection: Connection) -> float:
        """Return the time by the server's clock, in seconds since the epoch."""
        rows = await (await connection.execute(f"SELECT {_NOW}")).fetchall()
        return float(rows[0][0])

    async def summaries(self, connection: Connection, status: Status | None, limit: int | None) -> list[RunSummary]:
        """Return one summary a run, the last updated first; outputs are not read."""
        rows = await connection.execute(self._list, {"status": status, "limit": limit}, binary=True)
        return [_summary(bytes(run_id), *row) for run_id, *row in await rows.fetchall()]

    async def _fenced(self, connection: Connection, context: PipelineContext, tried: list[SaveBatch]) -> _Last | None:
        """Return the save that `context` may continue, or None if the run is to be created."""
        run_id = context.run_id
        row = await (await connection.execute(self._last, (run_hash(run_id),), binary=True)).fetchone()
        last = None if row is None else _last(run_id, *row)
        for batch in tried:
            if last is not None and last.stored == batch.stored_revision:
                context.acknowledge(batch)
                break
        check_fence(context, None if last is None else last.stored)
        context.handle = last
        # One of this revision may still be on its way, and be what the next write meets.
        tried[:] = [batch for batch in tried if batch.revision >= context.revision]
        return last

    async def _could_create(self, connection: Connection, context: PipelineContext, batch: SaveBatch) -> bool:
        run_id = context.run_id
        signature = batch.signature if batch.signature is not None else dumps(list(context.signature))
        values = (
            run_hash(run_id),
            run_id.encode(),
            sealed(run_id, "inputs", dumps(context.inputs)),
            *_row(run_id, batch),
            batch.head.status,
            _encoded(batch.head.pipeline),
            sealed(run_id, "signature", signature),
        )
        return await _is_true(connection, self._create, values)

    async def _could_save(
        self, connection: Connection, context: PipelineContext, batch: SaveBatch, last: _Last
    ) -> bool:
        run_id, head = context.run_id, batch.head
        where = (run_hash(run_id), batch.revision, last.stored.save_id.encode())
        row = _row(run_id, batch)
        if batch.signature is None and (head.status, head.pipeline) == (last.status, last.pipeline):
            values = [where[0], _INTEGER.pack(where[1]), where[2], *row]
            answer = await ask(connection, self._append, values, _APPEND_TYPES)
            if answer is not None:
                return answer == _TRUE
            # It has failed; the next one, which does the same and more, tells why.
        signature = None if batch.signature is None else sealed(run_id, "signature", batch.signature)
        more = head.status, _encoded(head.pipeline), signature
        return await _is_true(connection, self._save, (*where, *row, *more))


# The kinds of rows that make up a run.
_DEFINITION, _HEAD, _OUTPUTS = 0, 1, 2

_READ = f"""
SELECT {_DEFINITION}, 0::bigint, run_id, inputs, signature, pipeline, status FROM {{s}}.runs
WHERE run_hash = %(hash)s::bytea
UNION ALL (
    SELECT {_HEAD}, revision, save_id, head, NULL, NULL, NULL FROM {{s}}.saves
    WHERE run_hash = %(hash)s::bytea ORDER BY revision DESC LIMIT 1)
UNION ALL
SELECT {_OUTPUTS}, revision, outputs, NULL, NULL, NULL, NULL FROM {{s}}.saves WHERE run_hash = %(hash)s::bytea
ORDER BY 1, 2"""  # noqa: S608 - numbers of ours

_LAST = "SELECT revision, save_id, head FROM {s}.saves WHERE run_hash = %s::bytea ORDER BY revision DESC LIMIT 1"

# Whose turn it is and what is old goes by one clock, that of the server: those of its clients do not agree.
_NOW = "extract(epoch FROM clock_timestamp())::double precision"

_APPEND = f"SELECT {{s}}.append_save($1, $2, $3, $4, {_NOW}, $5, $6)"

_APPEND_TYPES = [adapters.types[name].oid for name in ("bytea", "int8", "bytea", "bytea", "bytea", "bytea")]
_TRUE = b"\1"

_SAVE = f"SELECT {{s}}.save_run(%s, %s::bigint, %s, %s, {_NOW}, %s, %s, %s, %s::bytea, %s::bytea)"

_CREATE = f"SELECT {{s}}.create_run(%s, %s, %s, %s, {_NOW}, %s, %s, %s, %s::bytea, %s)"

_LIST = """
SELECT run_id, head, saved_at FROM {s}.runs AS r
LEFT JOIN LATERAL (
    SELECT head, saved_at FROM {s}.saves AS s WHERE s.run_hash = r.run_hash ORDER BY revision DESC LIMIT 1) AS l ON true
WHERE %(status)s::text IS NULL OR status = %(status)s::text
ORDER BY saved_at DESC NULLS LAST LIMIT %(limit)s::bigint"""


def run_hash(run_id: str) -> bytes:
    """Return what stands for a run id in an index, which takes no long ones. The row holds the id itself."""
    return sha256(run_id.encode()).digest()


_INTEGER = struct.Struct("!q")


async def _is_true(connection: Connection, query: bytes, values: tuple[Any, ...]) -> bool:
    row = await (await connection.execute(query, values, binary=True)).fetchone()
    return row is not None and row[0] is True


def _acknowledge(context: PipelineContext, batch: SaveBatch) -> None:
    context.acknowledge(batch)
    context.handle = _Last.of(batch)


def _row(run_id: str, batch: SaveBatch) -> _Row:
    """Return what a save puts into its row: its id, its head and its outputs."""
    revision = batch.revision + 1
    head = f"[{dumps(batch.incarnation)},{batch.completed},{head_text(batch.head)}]"
    lines = list[str]()
    for node, position, output, record in batch.outputs:
        lines += [f"[{position},{dumps(node)},{record_text(record)}]", output]
    outputs = sealed(run_id, f"outputs {revision}", "\n".join(lines))
    if len(outputs) > _LARGEST:
        raise StateStoreError(
            f"run {run_id!r} was not saved: the outputs of this save have {len(outputs):,} bytes, and a PostgreSQL "
            f"server takes at most {_LARGEST:,}. Keep what is so large elsewhere, and return where it is.",
            run_id=run_id,
        )
    sealed_head = sealed(run_id, f"head {revision} {batch.save_id}", head)
    return batch.save_id.encode(), sealed_head, outputs


def _context(run_id: str, rows: list[tuple[Any, ...]]) -> PipelineContext:
    kind, _, stored_id, inputs, signature, pipeline, status = rows[0]
    if kind != _DEFINITION or bytes(stored_id) != run_id.encode():
        raise damaged(run_id, "its inputs are missing, or it is another run")
    if len(rows) == 1 or rows[1][0] != _HEAD:
        raise damaged(run_id, "it has no save")
    (stored, completed, *_), head = _read_head(run_id, *rows[1][1:4])
    if (head.status, _encoded(head.pipeline)) != (status, None if pipeline is None else bytes(pipeline)):
        raise damaged(run_id, "its last save is not the one that the list of runs tells of")
    saves = rows[2:]
    if [row[1] for row in saves] != list(range(1, stored.revision + 1)):
        raise damaged(run_id, f"it has {len(saves)} saves where {stored.revision} were acknowledged")
    outputs = dict[int, tuple[str, Any, NodeRecord]]()
    for _, revision, lines, *_ in saves:
        outputs.update(_read_outputs(run_id, revision, lines))
    if sorted(outputs) != list(range(completed)):
        raise damaged(run_id, f"it has {len(outputs)} outputs where {completed} were acknowledged")
    context = PipelineContext.assemble(
        run_id,
        loads(opened(run_id, "inputs", inputs)),
        (outputs[position] for position in range(completed)),
        head,
        signature=loads(opened(run_id, "signature", signature)),
        revision=stored.revision,
        incarnation=stored.incarnation,
    )
    context.handle = _Last(stored, completed, head.status, head.pipeline)
    return context


def _last(run_id: str, revision: int, save_id: bytes, head: bytes) -> _Last:
    try:
        return _read_head(run_id, revision, save_id, head)[0]
    except (ValueError, TypeError, LookupError) as error:
        raise damaged(run_id, f"{type(error).__name__}: {error}") from error


def _read_head(run_id: str, revision: int, save_id: bytes, text: bytes) -> tuple[_Last, RunHead]:
    name = bytes(save_id).decode()
    incarnation, completed, *parts = loads(opened(run_id, f"head {revision} {name}", text))
    head = RunHead(*parts)
    return _Last(StoredRevision(incarnation, revision, name), completed, head.status, head.pipeline), head


def _read_outputs(run_id: str, revision: int, text: bytes) -> Iterable[tuple[int, tuple[str, Any, NodeRecord]]]:
    # Not splitlines: JSON text may hold other characters that end a line.
    lines = opened(run_id, f"outputs {revision}", text).split("\n")
    for about, output in zip(lines[::2], lines[1::2], strict=False):
        position, node, *record = loads(about)
        yield position, (node, loads(output), NodeRecord(*record))


def _summary(run_id: bytes, text: bytes | None, saved_at: float | None) -> RunSummary:
    name = run_id.decode(errors="replace")
    try:
        _, completed, *parts = loads(unsealed(text or b"").decode())
        head = RunHead(*parts)
    except (ValueError, TypeError):
        return RunSummary(name, None, "running", 0, 0.0, 0.0)  # whoever loads it is told
    return RunSummary(name, head.pipeline, head.status, completed, head.created_at, saved_at or 0.0)


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
