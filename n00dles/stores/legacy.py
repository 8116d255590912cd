"""Records of the published n00dles 0.3: one table `runs (run_id, state, updated_at)`, the whole run as one JSON text.

That release also stored a result for each group and branch, under names like `parallel[a,b]`; here these follow from
the nodes' own records, so they are left out.
"""

from __future__ import annotations

import sqlite3

from ..context import PipelineContext
from ..errors import CorruptCheckpointError
from .base import RunSummary

__all__ = ["has_legacy_table", "legacy_context", "legacy_summaries"]

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
    old = PipelineContext.from_json(row[0])
    if old.run_id != run_id:
        raise CorruptCheckpointError(
            f"the record stored for run {run_id!r} says that it is run {old.run_id!r}; it is left as it is.",
            run_id=run_id,
        )
    nodes = {node: output for node, output in old.completed.items() if "[" not in node}
    context = PipelineContext(run_id, old.inputs, nodes, [node for node in old.order if node in nodes])
    context.created_at = context.updated_at = row[1]
    context.is_new = False
    return context


def legacy_summaries(connection: sqlite3.Connection) -> list[RunSummary]:
    """Return one summary for each run that 0.3 has stored; that release kept neither pipeline nor status."""
    if not has_legacy_table(connection):
        return []
    found = []
    for run_id, updated_at in connection.execute("SELECT run_id, updated_at FROM runs").fetchall():
        context = legacy_context(connection, run_id)
        completed = len(context.completed) if context is not None else 0
        found.append(RunSummary(run_id, None, "running", completed, updated_at, updated_at))
    return found
