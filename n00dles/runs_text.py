"""How runs are put into words and columns for a terminal."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from .context import PipelineContext
from .records import NodeRecord
from .stores.base import RunSummary
from .stores.leases import Lease

__all__ = ["holding_of", "one_line", "story_of", "table_of", "time_text"]

_PREVIEW_CHARACTERS = 60
_LONGEST_CELL = 60


def table_of(runs: Sequence[RunSummary], leases: Mapping[str, Lease]) -> str:
    """Return the list of runs as a table; if any is held (`leases`, by run), it says by whom."""
    rows: list[tuple[str, ...]] = [("RUN ID", "PIPELINE", "STATUS", "NODES", "STARTED", "UPDATED")]
    for run in runs:
        started, updated = time_text(run.created_at), _age(run.updated_at)
        rows.append(
            (one_line(run.run_id), one_line(run.pipeline or "-"), run.status, str(run.completed), started, updated)
        )
    if leases:
        held = ("HELD BY", *(one_line(leases[run.run_id].holder) if run.run_id in leases else "" for run in runs))
        rows = [(*row, cell) for row, cell in zip(rows, held, strict=True)]
    return _columns(rows)


def holding_of(lease: Lease) -> str:
    """Return who holds a run, and for how long."""
    return f"{one_line(lease.holder)} since {time_text(lease.since)}, until {time_text(lease.expires_at)} or a renewal"


def story_of(ctx: PipelineContext, lease: Lease | None) -> str:
    """Return what happened to a run: its inputs, its nodes as they completed, the last error, and who holds it now."""
    tokens_in = sum(record.input_tokens for record in ctx.nodes.values())
    tokens_out = sum(record.output_tokens for record in ctx.nodes.values())
    facts = [
        ("run", one_line(ctx.run_id)),
        ("pipeline", one_line(ctx.pipeline or "(not recorded)")),
        ("status", ctx.status),
        *([("held by", holding_of(lease))] if lease else []),
        ("started", time_text(ctx.created_at)),
        ("updated", f"{time_text(ctx.updated_at)} ({_age(ctx.updated_at)})"),
        ("lives", f"{ctx.lives} (revision {ctx.revision}, {ctx.elapsed_ms / 1000:.1f} s in all)"),
        ("tokens", f"{tokens_in} in, {tokens_out} out"),
        *((f"input {name}", _preview(value)) for name, value in ctx.inputs.items()),
    ]
    width = max(len(name) for name, _ in facts)
    parts = ["\n".join(f"{name:<{width}}  {value}" for name, value in facts), _columns(_node_rows(ctx))]
    if ctx.error:
        parts.append(f"last error: {one_line(ctx.error)}")
    if ctx.status != "finished" and lease is None:
        parts.append(f"to continue: n00dles runs resume {_shell(ctx.run_id)} PIPELINE")
    return "\n\n".join(parts)


def _node_rows(ctx: PipelineContext) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("", "NODE", "ATTEMPTS", "TOKENS", "TIME", "OUTPUT")]
    for position, node in enumerate(ctx.order, 1):
        rows.append((str(position), one_line(node), *_costs(ctx.nodes.get(node)), _preview(ctx.completed[node])))
    for node, record in ctx.nodes.items():
        if not ctx.is_complete(node):
            why = f": {one_line(record.error)}" if record.error else ""
            rows.append(("-", one_line(node), *_costs(record), f"(not complete{why})"))
    if len(rows) == 1:
        rows.append(("-", "(no node was started)", "", "", "", ""))
    return rows


def _costs(record: NodeRecord | None) -> tuple[str, str, str]:
    if record is None:
        return "-", "-", "-"
    return str(record.attempts), f"{record.input_tokens}+{record.output_tokens}", f"{record.duration_ms / 1000:.2f} s"


def one_line(text: str) -> str:
    """Return `text` on one line, without characters that a terminal would obey.

    It is made to be read: what would break the line becomes a space. (The harness shows the same texts as evidence, so
    its `report.escape` keeps every character, as an escape.)
    """
    return "".join(
        char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}" for char in text
    )


def time_text(seconds: float) -> str:
    """Return a time, in seconds since the epoch, in UTC."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return "-"


def _age(seconds: float) -> str:
    age = time.time() - seconds
    if age < 0:
        return "in the future, by this clock"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if age >= 2 * length:
            return f"{int(age // length)} {unit} ago"
    return f"{int(age)} s ago"


def _preview(value: Any) -> str:
    text = one_line(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _PREVIEW_CHARACTERS else text[: _PREVIEW_CHARACTERS - 1] + "…"


def _shell(run_id: str) -> str:
    return shlex.quote(one_line(run_id))


def _columns(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [min(max(map(len, column)), _LONGEST_CELL) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
