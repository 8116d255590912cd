"""How one run lies in the tables of the SQLite store, and how it is read, created, saved and deleted.

The rows of a run lie side by side in `n00dles_records`: its outputs in completion order, and after them its head, which
says how many there are. A save writes its first output over the head and puts a new head behind, so it touches one
page, however long the run is; and whatever takes the last rows away, a flipped bit or a lost page, takes the head, and
is seen. The head is also the fence: it is only written over by who has read, or written, exactly this one.

Every row carries a checksum over its content and its run, so that a flipped bit or a row of another run is found at
load, not used. Records of the published 0.3 release (table `runs`) are read as they are, and take the new form with
their first save.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ..context import PipelineContext
from ..errors import CorruptCheckpointError, StaleContextError
from ..records import NodeRecord, RunHead, SaveBatch, Status, StoredOutput, StoredRevision
from ..serialization import dumps, loads, quoted
from .base import RunSummary
from .claims import OPEN, Candidate
from .fencing import check_fence, check_whole
from .head_text import head_text
from .legacy import has_legacy_table, is_outdated, legacy_context, legacy_summaries
from .sealed_text import damaged

__all__ = ["candidates", "delete", "is_open", "read", "read_or_create", "save", "summaries"]

_POSITIONS = 2**32

_FIND = "SELECT * FROM n00dles_runs INDEXED BY n00dles_run_ids WHERE run_id = ?"

Row = tuple[Any, ...]


class _Head(NamedTuple):
    """A stored head: its row's id, and its content, JSON of incarnation, revision, save id, and a `RunHead`."""

    id: int
    content: str

    @property
    def key(self) -> int:
        return self.id // _POSITIONS

    @property
    def position(self) -> int:
        """Where it lies: after so many outputs."""
        return self.id % _POSITIONS

    def stored_revision(self) -> StoredRevision:
        return StoredRevision(*loads(self.content)[:3])


def read(connection: sqlite3.Connection, run_id: str) -> PipelineContext | None:
    """Return the stored run, or None. Raises `CorruptCheckpointError` if a part of it is damaged or missing."""
    try:
        return _read(connection, run_id)
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise damaged(run_id, f"{type(error).__name__}: {error}") from error


def _read(connection: sqlite3.Connection, run_id: str) -> PipelineContext | None:
    row = connection.execute(_FIND, (run_id,)).fetchone()
    if row is None:
        if _keys(connection, run_id):
            raise damaged(run_id, "it is in an index and has no row")
        return legacy_context(connection, run_id)
    key, _, _, signature, _ = row
    inputs = _inputs(run_id, row)
    rows = connection.execute(
        "SELECT * FROM n00dles_records WHERE id >= ? AND id < ? ORDER BY id", _ids(key)
    ).fetchall()
    head = _head(run_id, key, rows.pop() if rows else None)
    if head.position != len(rows):
        raise damaged(run_id, f"it has {len(rows)} outputs where {head.position} were acknowledged")
    incarnation, revision, _, *parts = loads(head.content)
    context = PipelineContext.assemble(
        run_id,
        loads(inputs),
        (_output(run_id, position, row, key) for position, row in enumerate(rows)),
        RunHead(*parts),
        signature=loads(signature),
        revision=revision,
        incarnation=incarnation,
    )
    context.handle = head
    return context


def read_or_create(connection: sqlite3.Connection, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
    """Return the stored run, or insert one with these inputs, acknowledge it, and return it."""
    existing = read(connection, run_id)
    if existing is not None:
        return existing
    context = PipelineContext(run_id, inputs)
    context.begin_life(is_first=True)
    context.acknowledge(_create(connection, context, context.snapshot()))
    return context


def save(connection: sqlite3.Connection, context: PipelineContext, snapshot: SaveBatch) -> SaveBatch | None:
    """Write `snapshot` of `context`, if the stored head is the one it continues; return the batch to acknowledge.

    None means that there is nothing to write, since a save that was called later has overtaken this one. A save whose
    reply was lost is recognised and not counted as somebody else's. Raises `StaleContextError` and writes nothing if
    the run has gone on, or is gone.
    """
    head = context.handle if context.in_doubt is None else None
    if not isinstance(head, _Head):  # or what another store has put there
        head = _fenced_head(connection, context)
        if head is None:
            return _create(connection, context, snapshot)
    if snapshot.number < context.saved_snapshot:
        return None
    batch = context.begin_save(snapshot)
    if not _write_over(connection, head, context, batch):
        _fenced_head(connection, context)
        raise damaged(context.run_id, "its head is not where it belongs")
    if batch.signature is not None:
        _update_signature(connection, head.key, context.run_id, batch.signature)
    return batch


def delete(connection: sqlite3.Connection, run_id: str) -> bool:
    """Remove all rows of a run; return whether there were any."""
    keys = _keys(connection, run_id)
    for key in keys:
        connection.execute("DELETE FROM n00dles_records WHERE id >= ? AND id < ?", _ids(key))
        connection.execute("DELETE FROM n00dles_runs WHERE run_key = ?", (key,))
    removed = len(keys)
    if has_legacy_table(connection):
        removed += connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,)).rowcount
    return removed > 0


def summaries(connection: sqlite3.Connection, status: Status | None = None) -> list[RunSummary]:
    """Return one summary a run, the last updated first, those of the 0.3 release included; outputs are not read."""
    rows = connection.execute("SELECT run_key, run_id FROM n00dles_runs").fetchall()
    runs = [*(_summary(connection, *row) for row in rows), *legacy_summaries(connection)]
    return sorted((run for run in runs if status in (None, run.status)), key=lambda run: run.updated_at, reverse=True)


def candidates(connection: sqlite3.Connection, pipelines: Collection[str], skip: Collection[str]) -> list[Candidate]:
    """Return the runs of these pipelines that are to be worked on, the one that was last updated longest ago first."""
    rows = connection.execute(
        "SELECT run_id, content FROM (SELECT run_id, (SELECT content FROM n00dles_records WHERE id >= run_key * ?1 "
        "AND id < (run_key + 1) * ?1 ORDER BY id DESC LIMIT 1) AS content FROM n00dles_runs) "
        # Most runs have ended long ago; SQLite leaves them out in a third of the time that it takes to parse them.
        "WHERE instr(content, ?2) OR instr(content, ?3)",
        (_POSITIONS, *(f'"{status}"' for status in OPEN)),
    )
    found: list[tuple[float, str, str]] = []
    for run_id, content in rows:
        try:
            head = RunHead(*loads(content)[3:])
        except (ValueError, TypeError):
            continue  # damaged; whoever lists or loads it is told
        if head.status in OPEN and head.pipeline is not None and head.pipeline in pipelines and run_id not in skip:
            found.append((head.updated_at, run_id, head.pipeline))
    return [(run_id, pipeline) for _, run_id, pipeline in sorted(found)]


def is_open(connection: sqlite3.Connection, run_id: str) -> bool:
    """Return whether a run is stored and is to be worked on; one that is damaged counts, so that its worker says so."""
    row = connection.execute(_FIND, (run_id,)).fetchone()
    return row is not None and _summary(connection, row[0], run_id).status in OPEN


def _summary(connection: sqlite3.Connection, key: int, run_id: str) -> RunSummary:
    try:
        head = _last_head(connection, run_id, key)
        parts = RunHead(*loads(head.content)[3:])
    except (CorruptCheckpointError, ValueError, TypeError):
        return RunSummary(run_id, None, "running", 0, 0.0, 0.0)  # whoever loads it is told
    return RunSummary(run_id, parts.pipeline, parts.status, head.position, parts.created_at, parts.updated_at)


def _create(connection: sqlite3.Connection, context: PipelineContext, snapshot: SaveBatch) -> SaveBatch:
    batch, run_id = context.begin_save(snapshot), context.run_id
    key = connection.execute("INSERT INTO n00dles_runs VALUES (NULL, ?, '', '', 0)", (run_id,)).lastrowid
    assert key is not None  # noqa: S101 - an INSERT has one
    _write_definition(connection, key, run_id, dumps(context.inputs), dumps(list(context.signature)))
    outputs = _by_position(context, batch, 0)
    _insert_outputs(connection, key, run_id, outputs.values())
    context.handle = _insert_head(connection, run_id, key, batch)
    if has_legacy_table(connection):
        connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
    return batch


def _fenced_head(connection: sqlite3.Connection, context: PipelineContext) -> _Head | None:
    """Return the head that `context` may write over, or None if the run is to be created."""
    run_id = context.run_id
    row = connection.execute(_FIND, (run_id,)).fetchone()
    head = None if row is None else _last_head(connection, run_id, row[0])
    check_fence(context, None if head is None else head.stored_revision())
    if row is None and is_outdated(connection, context):
        raise StaleContextError(
            f"run {run_id!r} was not saved: it was deleted or changed after it was read as a record of the 0.3 "
            "release. Nothing was written; load the run again, or start a new one.",
            run_id=run_id,
        )
    return head


def _write_over(connection: sqlite3.Connection, head: _Head, context: PipelineContext, batch: SaveBatch) -> bool:
    """Put the outputs of `batch` and its head in the place of `head`; return whether that was still there."""
    run_id = context.run_id
    key, position = divmod(head.id, _POSITIONS)
    if batch.completed == position:
        new = _Head(head.id, _head_content(batch))
        row = (None, new.content, None, None, None, None, None, _head_checksum(run_id, new))
        if not _overwrite(connection, head, row):
            return False
        _insert_outputs(connection, key, run_id, batch.outputs)
        context.handle = new
        return True
    outputs = _by_position(context, batch, position)
    if not _overwrite(connection, head, _output_fields(run_id, head.id, outputs.pop(position))):
        return False
    _insert_outputs(connection, key, run_id, outputs.values())
    context.handle = _insert_head(connection, run_id, key, batch)
    return True


def _overwrite(connection: sqlite3.Connection, head: _Head, row: Row) -> bool:
    cursor = connection.execute(
        "UPDATE n00dles_records SET node = ?, content = ?, attempts = ?, input_tokens = ?, output_tokens = ?, "
        "duration_ms = ?, error = ?, checksum = ? WHERE id = ? AND content = ? AND node IS NULL",
        (*row, *head),
    )
    return cursor.rowcount == 1


def _by_position(context: PipelineContext, batch: SaveBatch, first: int) -> dict[int, StoredOutput]:
    """Return the outputs of `batch`, which have to be all from position `first` on. Raises `StateStoreError`."""
    check_whole(context.run_id, batch, first)
    return {output.position: output for output in batch.outputs}


def _insert_outputs(connection: sqlite3.Connection, key: int, run_id: str, outputs: Iterable[StoredOutput]) -> None:
    for output in outputs:
        row_id = key * _POSITIONS + output.position
        connection.execute(
            "INSERT OR REPLACE INTO n00dles_records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (row_id, *_output_fields(run_id, row_id, output)),
        )


def _insert_head(connection: sqlite3.Connection, run_id: str, key: int, batch: SaveBatch) -> _Head:
    head = _Head(key * _POSITIONS + batch.completed, _head_content(batch))
    connection.execute(
        "INSERT INTO n00dles_records VALUES (?, NULL, ?, NULL, NULL, NULL, NULL, NULL, ?)",
        (*head, _head_checksum(run_id, head)),
    )
    return head


def _update_signature(connection: sqlite3.Connection, key: int, run_id: str, signature: str) -> None:
    row = connection.execute("SELECT * FROM n00dles_runs WHERE run_key = ?", (key,)).fetchone()
    if row is None:
        raise damaged(run_id, "its inputs are missing")
    _write_definition(connection, key, run_id, _inputs(run_id, row), signature)


def _write_definition(connection: sqlite3.Connection, key: int, run_id: str, inputs: str, signature: str) -> None:
    connection.execute(
        "UPDATE n00dles_runs SET inputs = ?, signature = ?, checksum = ? WHERE run_key = ?",
        (inputs, signature, _checksum(run_id, key, inputs, signature), key),
    )


def _inputs(run_id: str, row: Row) -> str:
    key, _, inputs, signature, checksum = row
    if checksum != _checksum(run_id, key, inputs, signature):
        raise damaged(run_id, "its inputs do not match their checksum")
    return str(inputs)


def _keys(connection: sqlite3.Connection, run_id: str) -> set[int]:
    """Return the keys that any index has for a run: of a damaged one, its row or an entry may be lost."""
    queries = (
        "SELECT run_key FROM n00dles_runs INDEXED BY n00dles_run_ids WHERE run_id = ?",
        "SELECT run_key FROM n00dles_runs INDEXED BY n00dles_run_ids_again WHERE run_id = ?",
    )
    return {key for query in queries for (key,) in connection.execute(query, (run_id,))}


def _last_head(connection: sqlite3.Connection, run_id: str, key: int) -> _Head:
    query = "SELECT * FROM n00dles_records WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1"
    return _head(run_id, key, connection.execute(query, _ids(key)).fetchone())


def _head(run_id: str, key: int, row: Row | None) -> _Head:
    """Return the head that the last row of a run is. Raises `CorruptCheckpointError` if it is none."""
    if row is None or row[1] is not None:
        raise damaged(run_id, "its last records are missing")
    head = _Head(row[0], row[2])
    if any(field is not None for field in row[3:8]) or row[8] != _head_checksum(run_id, head):
        raise damaged(run_id, "its head does not match its checksum")
    return head


def _head_content(batch: SaveBatch) -> str:
    return f'[{quoted(batch.incarnation)},{batch.revision + 1},"{batch.save_id}",{head_text(batch.head)}]'


def _output_fields(run_id: str, row_id: int, stored: StoredOutput) -> Row:
    """Return what stands behind its id in the row of an output."""
    node, _, output, record = stored
    fields = (
        node,
        output,
        record.attempts,
        record.input_tokens,
        record.output_tokens,
        float(record.duration_ms),
        record.error,
    )
    return (*fields, _output_checksum(run_id, row_id, *fields))


def _output(run_id: str, position: int, row: Row, key: int) -> tuple[str, Any, NodeRecord]:
    if row[0] != key * _POSITIONS + position:
        raise damaged(run_id, f"its output {position} is missing")
    if row[8] != _output_checksum(run_id, *row[:8]):
        raise damaged(run_id, f"the output of node {row[1]!r} does not match its checksum")
    return row[1], loads(row[2]), NodeRecord(*row[3:8])


def _ids(key: int) -> tuple[int, int]:
    """Return the range of a run's ids in the table of records."""
    return key * _POSITIONS, (key + 1) * _POSITIONS


def _checksum(*fields: Any) -> int:
    return zlib.crc32(repr(fields).encode("utf-8", "surrogatepass"))


def _head_checksum(run_id: str, head: _Head) -> int:
    return zlib.crc32(f"{run_id}|{head.id}|{head.content}".encode("utf-8", "surrogatepass"))


def _output_checksum(run_id: str, row_id: int, node: str, output: str, *rest: Any) -> int:
    # Much of a load is spent here, so neither a repr nor a copy of the output is made.
    attempts, input_tokens, output_tokens, duration_ms, error = rest
    fields = f"{run_id}|{row_id}|{node}|{attempts}|{input_tokens}|{output_tokens}|{duration_ms}|{error}"
    return zlib.crc32(fields.encode("utf-8", "surrogatepass"), zlib.crc32(output.encode()))
