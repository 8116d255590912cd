"""How one run lies in the tables of the SQLite store, and how it is read, created, saved and deleted.

Every row carries a checksum over its content and its run, so that a flipped bit or a row of another run is found at
load, not used. Records of the published 0.3 release (table `runs`) are read as they are, and take the new form with
their first save.
"""

from __future__ import annotations

import sqlite3
import zlib
from typing import Any

from ..context import PipelineContext
from ..errors import CorruptCheckpointError, StaleContextError
from ..records import NodeRecord, RunHead, SaveBatch, Status, StoredOutput, StoredRevision
from ..serialization import dumps, loads
from .base import RunSummary
from .fencing import check_fence
from .legacy import has_legacy_table, is_outdated, legacy_context, legacy_summaries

__all__ = ["delete", "read", "read_or_create", "save", "summaries"]

_POSITIONS = 2**32

Row = tuple[Any, ...]


def read(connection: sqlite3.Connection, run_id: str) -> PipelineContext | None:
    """Return the stored run, or None. Raises `CorruptCheckpointError` if a part of it is damaged or missing."""
    try:
        return _read(connection, run_id)
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise _damaged(run_id, f"{type(error).__name__}: {error}") from error


def _read(connection: sqlite3.Connection, run_id: str) -> PipelineContext | None:
    row = connection.execute("SELECT * FROM n00dles_runs WHERE run_id = ?", (run_id,)).fetchone()
    if row is None:
        if connection.execute("SELECT run_key FROM n00dles_runs WHERE run_id = ?", (run_id,)).fetchone() is not None:
            raise _damaged(run_id, "it is in the index and has no row")
        if _definition_key(connection, run_id) is not None:
            raise _damaged(run_id, "its head is missing")
        return legacy_context(connection, run_id)
    key, _, incarnation, revision, save_id, completed, *head, checksum = row
    _verify(run_id, "its head", checksum, (run_id, incarnation, revision, save_id, completed, *head))
    inputs, signature = _definition(connection, run_id, key)
    rows = connection.execute(
        "SELECT * FROM n00dles_outputs WHERE id >= ? AND id < ? ORDER BY id", _ids(key)
    ).fetchall()
    if len(rows) != completed:
        raise _damaged(run_id, f"it has {len(rows)} outputs where {completed} were acknowledged")
    return PipelineContext.assemble(
        run_id,
        loads(inputs),
        (_output(run_id, position, row, key) for position, row in enumerate(rows)),
        RunHead(*head),
        signature=loads(signature),
        revision=revision,
        incarnation=incarnation,
    )


def read_or_create(connection: sqlite3.Connection, context: PipelineContext) -> PipelineContext:
    """Return the stored run of `context`'s id, or insert `context`, acknowledge it, and return it."""
    existing = read(connection, context.run_id)
    if existing is not None:
        return existing
    context.begin_life(is_first=True)
    context.acknowledge(_create(connection, context))
    return context


def save(connection: sqlite3.Connection, context: PipelineContext, snapshot: SaveBatch) -> SaveBatch | None:
    """Write `snapshot` of `context`, if the stored revision is its own; return the batch to acknowledge.

    None means that there is nothing to write, since a save that was called later has overtaken this one. A save whose
    reply was lost is recognised and not counted as somebody else's. Raises `StaleContextError` and writes nothing if
    the run has gone on, or is gone.
    """
    key: int | None = context.handle if context.in_doubt is None else None
    if key is None:
        key = _fenced_key(connection, context)
        if key is None:
            return _create(connection, context, snapshot)
    if snapshot.number < context.saved_snapshot:
        return None
    batch = context.begin_save(snapshot)
    if not _update_head(connection, key, context, batch):
        _fenced_key(connection, context)
        raise _damaged(context.run_id, "its row does not answer to its own key")
    if batch.signature is not None:
        _update_signature(connection, key, context.run_id, batch.signature)
    _insert_outputs(connection, key, context.run_id, batch)
    return batch


def delete(connection: sqlite3.Connection, run_id: str) -> bool:
    """Remove all rows of a run; return whether there were any."""
    keys = {key for (key,) in connection.execute("SELECT run_key FROM n00dles_runs WHERE run_id = ?", (run_id,))}
    # Of a damaged run, one of the two rows may be all that is left.
    keys |= {_definition_key(connection, run_id)} - {None}
    for key in keys:
        connection.execute("DELETE FROM n00dles_outputs WHERE id >= ? AND id < ?", _ids(key))
        connection.execute("DELETE FROM n00dles_definitions WHERE run_key = ?", (key,))
        connection.execute("DELETE FROM n00dles_runs WHERE run_key = ?", (key,))
    removed = len(keys)
    if has_legacy_table(connection):
        removed += connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,)).rowcount
    return removed > 0


def summaries(connection: sqlite3.Connection, status: Status | None = None) -> list[RunSummary]:
    """Return one summary a run, the last updated first, those of the 0.3 release included; outputs are not read."""
    rows = connection.execute("SELECT run_id, pipeline, status, completed, created_at, updated_at FROM n00dles_runs")
    runs = [*(RunSummary(*row) for row in rows), *legacy_summaries(connection)]
    return sorted((run for run in runs if status in (None, run.status)), key=lambda run: run.updated_at, reverse=True)


def _create(connection: sqlite3.Connection, context: PipelineContext, snapshot: SaveBatch | None = None) -> SaveBatch:
    batch = context.begin_save(snapshot)
    key = connection.execute(
        "INSERT INTO n00dles_runs VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (context.run_id, *_head(context, batch)),
    ).lastrowid
    assert key is not None  # noqa: S101 - an INSERT has one
    inputs, signature = dumps(context.inputs), dumps(list(context.signature))
    checksum = _checksum((context.run_id, inputs, signature))
    connection.execute(
        "INSERT INTO n00dles_definitions VALUES (?, ?, ?, ?, ?)", (key, context.run_id, inputs, signature, checksum)
    )
    _insert_outputs(connection, key, context.run_id, batch)
    if has_legacy_table(connection):
        connection.execute("DELETE FROM runs WHERE run_id = ?", (context.run_id,))
    return batch


def _fenced_key(connection: sqlite3.Connection, context: PipelineContext) -> int | None:
    """Return the key of the run that `context` may be saved over, or None if it is to be created."""
    row = connection.execute(
        "SELECT run_key, incarnation, revision, save_id FROM n00dles_runs WHERE run_id = ?", (context.run_id,)
    ).fetchone()
    check_fence(context, StoredRevision(*row[1:]) if row else None)
    if row is None and is_outdated(connection, context):
        raise StaleContextError(
            f"run {context.run_id!r} was not saved: it was deleted or changed after it was read as a record of the 0.3 "
            "release. Nothing was written; load the run again, or start a new one.",
            run_id=context.run_id,
        )
    key: int | None = row[0] if row else None
    context.handle = key
    return key


def _update_head(connection: sqlite3.Connection, key: int, context: PipelineContext, batch: SaveBatch) -> bool:
    """Write the head over the revision that `batch` continues; return whether that is the stored one."""
    cursor = connection.execute(
        "UPDATE n00dles_runs SET incarnation = ?, revision = ?, save_id = ?, completed = ?, status = ?, pipeline = ?, "
        "lives = ?, stalled = ?, elapsed_ms = ?, error = ?, created_at = ?, updated_at = ?, unfinished = ?, "
        "checksum = ? WHERE run_key = ? AND run_id = ? AND incarnation = ? AND revision = ?",
        (*_head(context, batch), key, context.run_id, batch.incarnation, batch.revision),
    )
    return cursor.rowcount == 1


def _update_signature(connection: sqlite3.Connection, key: int, run_id: str, signature: str) -> None:
    inputs, _ = _definition(connection, run_id, key)
    connection.execute(
        "UPDATE n00dles_definitions SET signature = ?, checksum = ? WHERE run_key = ?",
        (signature, _checksum((run_id, inputs, signature)), key),
    )


def _head(context: PipelineContext, batch: SaveBatch) -> Row:
    head = (batch.incarnation, batch.revision + 1, batch.save_id, batch.completed, *batch.head)
    return (*head, _checksum((context.run_id, *head)))


def _definition(connection: sqlite3.Connection, run_id: str, key: int) -> tuple[str, str]:
    row = connection.execute("SELECT * FROM n00dles_definitions WHERE run_key = ?", (key,)).fetchone()
    if row is None:
        raise _damaged(run_id, "its inputs are missing")
    _, owner, inputs, signature, checksum = row
    _verify(run_id, "its inputs", checksum, (owner, inputs, signature))
    if owner != run_id:
        raise _damaged(run_id, f"its inputs are those of run {owner!r}")
    return inputs, signature


def _definition_key(connection: sqlite3.Connection, run_id: str) -> int | None:
    row = connection.execute("SELECT run_key FROM n00dles_definitions WHERE run_id = ?", (run_id,)).fetchone()
    return row[0] if row else None


def _insert_outputs(connection: sqlite3.Connection, key: int, run_id: str, batch: SaveBatch) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO n00dles_outputs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_output_row(run_id, key, output) for output in batch.outputs],
    )


def _output_row(run_id: str, key: int, stored: StoredOutput) -> Row:
    record = stored.record
    row = (
        key * _POSITIONS + stored.position,
        stored.node,
        stored.output,
        record.attempts,
        record.input_tokens,
        record.output_tokens,
        float(record.duration_ms),
        record.error,
    )
    return (*row, _output_checksum(run_id, row))


def _output(run_id: str, position: int, row: Row, key: int) -> tuple[str, Any, NodeRecord]:
    if row[0] != key * _POSITIONS + position:
        raise _damaged(run_id, f"its output {position} is missing")
    if row[8] != _output_checksum(run_id, row[:8]):
        raise _damaged(run_id, f"the output of node {row[1]!r} does not match its checksum")
    return row[1], loads(row[2]), NodeRecord(*row[3:8])


def _ids(key: int) -> tuple[int, int]:
    """Return the range of a run's ids in the table of outputs."""
    return key * _POSITIONS, (key + 1) * _POSITIONS


def _checksum(fields: Row) -> int:
    return zlib.crc32(repr(fields).encode("utf-8", "surrogatepass"))


def _output_checksum(run_id: str, row: Row) -> int:
    # Much of a load is spent here, so neither a repr nor a copy of the output is made.
    row_id, node, output, attempts, input_tokens, output_tokens, duration_ms, error = row
    rest = f"{run_id}|{row_id}|{node}|{attempts}|{input_tokens}|{output_tokens}|{duration_ms}|{error}"
    return zlib.crc32(rest.encode("utf-8", "surrogatepass"), zlib.crc32(output.encode()))


def _verify(run_id: str, part: str, checksum: int, fields: Row) -> None:
    if checksum != _checksum(fields):
        raise _damaged(run_id, f"{part} does not match its checksum")


def _damaged(run_id: str, what: str) -> CorruptCheckpointError:
    return CorruptCheckpointError(
        f"the stored record of run {run_id!r} is damaged: {what}. It is left as it is; restore it from a backup, or "
        f"delete the run and start it anew (n00dles runs delete {run_id}).",
        run_id=run_id,
    )
