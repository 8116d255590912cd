"""Records of the published n00dles 0.3: one table `runs (run_id, state, updated_at)`, the whole run as one JSON text.

That release also stored a result for each group and branch, under names like `parallel[a,b]`; here these follow from
the nodes' own records, so they are left out.
"""

from __future__ import annotations

import sqlite3
import zlib

from ..context import PipelineContext
from ..errors import CorruptCheckpointError
from .base import RunSummary

__all__ = ["has_legacy_table", "is_outdated", "legacy_context", "legacy_summaries"]

_PREFIX = "0.3-"
_COLUMNS = ["run_id", "state", "updated_at"]


def has_legacy_table(connection: sqlite3.Connection) -> bool:
    """Whether the database has the table of the 0.3 release."""
    return [row[1] for row in connection.execute("PRAGMA table_info(runs)")] == _COLUMNS


def legacy_context(connection: sqlite3.Connection, run_id: str) -> PipelineContext | None:
    """Return a run that 0.3 has stored, as one that this store has not saved yet; None if there is none."""
    if not has_legacy_table(connection):
        return None
    row = connection.execute("SELECT state, updated_at FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    if row is None:
        return None
    state, updated_at = row
    if not isinstance(state, str) or not isinstance(updated_at, float):
        raise CorruptCheckpointError(
            f"the record stored for run {run_id!r} is no text with a time; it is left as it is.", run_id=run_id
        )
    old = PipelineContext.from_json(state)
    if old.run_id != run_id:
        raise CorruptCheckpointError(
            f"the record stored for run {run_id!r} says that it is run {old.run_id!r}; it is left as it is.",
            run_id=run_id,
        )
    nodes = {node: output for node, output in old.completed.items() if "[" not in node}
    order = [node for node in old.order if node in nodes]
    context = PipelineContext(run_id, old.inputs, nodes, order, incarnation=_incarnation(state))
    context.created_at = context.updated_at = updated_at
    return context


def is_outdated(connection: sqlite3.Connection, context: PipelineContext) -> bool:
    """Whether `context` was made from a record of 0.3 that has been removed or changed since."""
    if not context.incarnation.startswith(_PREFIX):
        return False
    row = connection.execute("SELECT state FROM runs WHERE run_id = ?", (context.run_id,)).fetchone()
    return row is None or _incarnation(row[0]) != context.incarnation


def _incarnation(state: object) -> str:
    # That release had none; this one is the same for everybody who reads the record.
    return f"{_PREFIX}{zlib.crc32(repr(state).encode()):08x}"


def legacy_summaries(connection: sqlite3.Connection) -> list[RunSummary]:
    """Return one summary for each run that 0.3 has stored; that release kept neither pipeline nor status."""
    if not has_legacy_table(connection):
        return []
    found = []
    for run_id, updated_at in connection.execute("SELECT run_id, updated_at FROM runs").fetchall():
        try:
            context = legacy_context(connection, run_id)
        except CorruptCheckpointError:
            context = None  # whoever loads it is told
        completed = len(context.completed) if context is not None else 0
        found.append(RunSummary(run_id, None, "running", completed, updated_at, updated_at))
    return found
