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


def table_of(runs: Sequence[RunSummary], leases: Mapping[str, Lease] | None) -> str:
    """Return the list of runs as a table, and who holds them (`leases`, by run; None if the store does not say).

    A run that is under way and that nobody holds was interrupted.
    """
    rows: list[tuple[str, ...]] = [("RUN ID", "PIPELINE", "STATUS", "NODES", "STARTED", "UPDATED")]
    for run in runs:
        started, updated = time_text(run.created_at), _age(run.updated_at)
        rows.append(
            (one_line(run.run_id), one_line(run.pipeline or "-"), run.status, str(run.completed), started, updated)
        )
    holders = [] if leases is None else [_holder(run, leases.get(run.run_id)) for run in runs]
    if any(holders):
        rows = [(*row, cell) for row, cell in zip(rows, ("HELD BY", *holders), strict=True)]
    return _columns(rows)


def _holder(run: RunSummary, lease: Lease | None) -> str:
    if lease is not None:
        return one_line(lease.holder)
    return "(nobody)" if run.status == "running" else ""


def holding_of(lease: Lease) -> str:
    """Return who holds a run, and for how long."""
    return f"{one_line(lease.holder)} since {time_text(lease.since)}, until {time_text(lease.expires_at)} or a renewal"


def story_of(ctx: PipelineContext, lease: Lease | None, *, tells_leases: bool) -> str:
    """Return what happened to a run: its inputs, its nodes as they completed, what failed, and who holds it now.

    `tells_leases` says that without a `lease` nobody holds it, rather than that the store does not know.
    """
    tokens_in = sum(record.input_tokens for record in ctx.nodes.values())
    tokens_out = sum(record.output_tokens for record in ctx.nodes.values())
    facts = [
        ("run", one_line(ctx.run_id)),
        ("pipeline", one_line(ctx.pipeline or "(not recorded)")),
        ("status", ctx.status),
        *_held_by(ctx, lease, tells_leases),
        ("started", time_text(ctx.created_at)),
        ("updated", f"{time_text(ctx.updated_at)} ({_age(ctx.updated_at)})"),
        ("lives", _lives(ctx)),
        ("tokens", f"{tokens_in} in, {tokens_out} out"),
        *((f"input {name}", _preview(value)) for name, value in ctx.inputs.items()),
    ]
    width = max(len(name) for name, _ in facts)
    parts = ["\n".join(f"{name:<{width}}  {value}" for name, value in facts), _columns(_node_rows(ctx))]
    overcome = [f"  {one_line(node)}: {one_line(error)}" for node, error in _overcome(ctx)]
    if overcome:
        parts.append("\n".join(["errors of attempts before the one that completed:", *overcome]))
    if ctx.error:
        parts.append(f"last error: {one_line(ctx.error)}")
    if ctx.status == "waiting" and lease is None:
        parts.append("it waits for a worker: n00dles worker PIPELINE")
    elif ctx.status != "finished" and lease is None:
        parts.append(f"to continue: n00dles runs resume {_shell(ctx.run_id)} PIPELINE")
    return "\n\n".join(parts)


def _held_by(ctx: PipelineContext, lease: Lease | None, tells_leases: bool) -> list[tuple[str, str]]:
    if lease is not None:
        return [("held by", holding_of(lease))]
    return [("held by", "nobody: it was interrupted")] if tells_leases and ctx.status == "running" else []


def _lives(ctx: PipelineContext) -> str:
    facts = [f"revision {ctx.revision}", f"{ctx.elapsed_ms / 1000:.1f} s in all"]
    if ctx.stalled > 1:
        facts.append(f"{ctx.stalled} in a row without a completed node")
    return f"{ctx.lives} ({', '.join(facts)})"


def _overcome(ctx: PipelineContext) -> list[tuple[str, str]]:
    """Return the nodes that completed after an attempt had failed, and the last error of each."""
    found = ((node, ctx.nodes.get(node)) for node in ctx.order)
    return [(node, record.error) for node, record in found if record is not None and record.error]


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
