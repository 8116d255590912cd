"""The tables as a page of Markdown and as JSON."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .figures import MutantRow, StoreRow, Tables
from .results import Sources

__all__ = ["NAME", "write"]

NAME = "mutants-stores"
_COMMAND = "make tables"


def write(folder: Path, tables: Tables, sources: Sources) -> tuple[Path, Path]:
    """Write both files, and return their paths."""
    made_with = {
        "version": version("n00dles-testing"),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "sources": sources.shared,
    }
    page, form = folder / f"{NAME}.md", folder / f"{NAME}.json"
    folder.mkdir(parents=True, exist_ok=True)
    page.write_text(_page(tables, made_with))
    form.write_text(json.dumps({**made_with, **tables.to_dict()}, indent=1) + "\n")
    return page, form


def _page(tables: Tables, made_with: dict[str, Any]) -> str:
    return "\n".join(
        [
            "# What the suite catches, and what it lets pass",
            "",
            f"n00dles-testing {made_with['version']}, Python {made_with['python']}, {tables.seeds} seeds. Made by "
            f"`{_COMMAND}` (`python -m conformance.tables`); a test fails when a store or a clause is missing here.",
            "",
            *_summary(tables),
            "",
            "## Broken stores",
            "",
            "`caught` counts the runs in which the clause that the store breaks failed, each with another seed.",
            "`also` has the clauses that are said to see the fault too, with theirs. `unrelated` are the others",
            "that did not let it pass; each meets each of them once. S17 does what all others do, and may see",
            "what they see; it meets its own broken stores only.",
            "",
            *_table(("store", "breaks", "caught", "also", "unrelated"), [_mutant(row) for row in tables.mutants]),
            "",
            "## Correct stores",
            "",
            "`clean` counts the runs of all clauses in which none was broken, vacuous or unknown. `left out` are the",
            "clauses that do not apply, proven by a probe, or could not be run.",
            "",
            *_table(("store", "clean", "passed", "left out", "alarms"), [_store(row) for row in tables.stores]),
            "",
            "## Clauses",
            "",
            "How many broken stores each is to catch, how many others it has to let pass, and what it costs on a",
            "correct store: the median and the most, in seconds. Two stores are checked at a time.",
            "",
            *_table(
                ("clause", "catches", "lets pass", "median", "most"),
                [
                    (row.clause, str(row.mutants), str(row.others), f"{row.seconds:.2f}", f"{row.slowest:.2f}")
                    for row in tables.clauses
                ],
            ),
            "",
        ]
    )


def _summary(tables: Tables) -> list[str]:
    caught = sum(row.caught == row.runs for row in tables.mutants)
    unrelated = sum(len(row.unrelated) for row in tables.mutants)
    clean = sum(row.clean == row.runs for row in tables.stores)
    pairs = sum(row.others for row in tables.clauses)
    return [
        f"- {caught} of {len(tables.mutants)} broken stores were caught by their clause in each of {tables.seeds} "
        "runs.",
        f"- {unrelated} of {pairs} pairs of a broken store and an unrelated clause gave an alarm.",
        f"- {clean} of {len(tables.stores)} correct stores were clean in each of {tables.seeds} runs of "
        f"{len(tables.clauses)} clauses.",
    ]


def _mutant(row: MutantRow) -> tuple[str, ...]:
    also = ", ".join(f"{clause} {count} of {row.runs}" for clause, count in row.also.items())
    return (row.mutant, row.breaks, f"{row.caught} of {row.runs}", also or "-", ", ".join(row.unrelated) or "-")


def _store(row: StoreRow) -> tuple[str, ...]:
    alarms = "; ".join(alarm.replace("|", "/").replace("\n", " ") for alarm in row.alarms)
    clean = f"{row.clean} of {row.runs}"
    return (row.store, clean, str(row.passed), ", ".join(row.left_out) or "-", alarms or "-")


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings), *(f"| {' | '.join(row)} |" for row in rows)]
