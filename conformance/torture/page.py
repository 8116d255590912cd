"""What came of a torture, as a table in the terminal and as a page of Markdown."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.table import Table

from n00dles_testing.verdicts import Verdict

from .judge import Judge
from .torment import Plan

__all__ = ["Row", "page", "table"]

_COLUMNS = (
    "store",
    "verdict",
    "runs finished",
    "workers killed",
    "in a node",
    "before a save",
    "server killed",
    "calls",
    "made again",
    "faults",
    "seconds",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One store."""

    name: str
    plan: Plan
    judge: Judge
    seconds: float
    verdict: Verdict

    def cells(self) -> tuple[str, ...]:
        """Return what stands in each column."""
        judge = self.judge
        return (
            self.name,
            self.verdict.value,
            f"{len(judge.finished)} of {self.plan.runs}",
            str(judge.kills),
            str(judge.kills_in_a_node),
            str(judge.kills_before_a_save),
            str(judge.server_kills) if self.name != "sqlite" else "has none",
            str(judge.calls),
            str(judge.repeated),
            str(len(judge.faults)),
            f"{self.seconds:.1f}",
        )


def table(rows: Sequence[Row]) -> Table:
    """Return the table for the terminal."""
    shown = Table(*_COLUMNS, box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        shown.add_row(*row.cells())
    return shown


def page(rows: Sequence[Row]) -> str:
    """Return the page."""
    plan = rows[0].plan
    return "\n".join(
        [
            "# What is left when workers and servers are killed again and again",
            "",
            f"Made by `make torture` with seed {plan.seed}, Python {platform.python_version()}, SQLite",
            f"{sqlite3.sqlite_version}. {plan.runs} runs are submitted, {plan.workers} processes `n00dles worker` with",
            f"`--concurrency {plan.concurrency}` work on them, one of these is killed by SIGKILL every",
            f"{plan.kill_every:g} s and replaced, and the server is killed twice, until every run has ended.",
            "",
            "Proven is, by the order of a ledger that no kill reaches and by the records in the end: every run is",
            "finished with the right outputs, none is lost, none was worked on by two living processes at a time, and",
            "no node was called again after the store had acknowledged its save. Calls that a kill has met before that",
            "are made again; there is no other way.",
            "",
            f"| {' | '.join(_COLUMNS)} |",
            f"|{'---|' * len(_COLUMNS)}",
            *(f"| {' | '.join(row.cells())} |" for row in rows),
            "",
            "*In a node*: kills that met a call, which its next worker makes again. *Before a save*: kills that met a",
            "node that had returned and whose save was not acknowledged yet; it is called again if the store does not",
            "have it. *Made again*: the calls that have come of both.",
            "",
        ]
    )
