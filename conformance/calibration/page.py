"""The table of the calibration as a page of Markdown."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version

from n00dles_testing.powerloss.calibration import ROWS, Calibrated
from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.powerloss.protocols import PROTOCOLS, SaveProtocol

__all__ = ["page"]


def page(rows: Sequence[Calibrated], *, seed: int) -> str:
    """Return the page."""
    deviations = [line for row in rows for line in row.deviations]
    excuses = [f"{each.title}: `{', '.join(each.excused)}` is left out, since {each.excuse}." for each in _excused()]
    return "\n".join(
        [
            "# What the power-loss explorer finds in ways of saving whose faults are known",
            "",
            f"Made by `make calibration` (`python -m conformance.calibration`) with seed {seed}: "
            f"{', '.join(_made_with())}.",
            "",
            "Each workload saves three times. `clean` means that nothing was found in any state. A fault where `clean`",
            "is required would say that the explorer makes up states; a missing one that it tries too few.",
            "[What a disk may hold after a power loss](../../docs/explanation/power-loss.md) explains the models.",
            "",
            *(f"**Deviates**: {line}" for line in deviations),
            *([] if deviations else ["Nothing deviates from what is required."]),
            "",
            *_table(("way of saving", *MODELS), [(row.title, *(str(cell) for cell in row.cells)) for row in rows]),
            "",
            "LMDB and DuckDB are further subjects, at first from their creation on. It is required that what they load",
            "is never older than what was acknowledged, but under `strict`: they never sync the names of their files.",
            "What does not open there is told, and not required, for nobody vouches for it.",
            *excuses,
            "",
            "## How many states",
            "",
            "`n of m` is a sample: there are at least m different ones.",
            "",
            *_table(("way of saving", "operations", *MODELS), [_counts(row) for row in rows]),
            "",
            "## The smallest case of each",
            "",
            "What was lost, and what came of it, in the state with the fewest losses that shows it.",
            "",
            *(line for row in rows for line in _stories(row)),
        ]
    )


def _made_with() -> list[str]:
    told = [
        f"Python {'.'.join(platform.python_version_tuple()[:2])}",
        f"SQLite {sqlite3.sqlite_version}",
    ]
    for module in dict.fromkeys(row.protocol.needs for row in ROWS if row.protocol.needs):
        try:
            told.append(f"{module} {version(module)}")
        except PackageNotFoundError:
            told.append(f"no {module}")
    return told


def _excused() -> list[SaveProtocol]:
    return [each for each in PROTOCOLS.values() if each.excused]


def _counts(row: Calibrated) -> tuple[str, ...]:
    counts = [f"{cell.tried}{'' if cell.at_least is None else f' of {cell.at_least}'}" for cell in row.cells]
    return (row.title, str(row.operations), *counts)


def _stories(row: Calibrated) -> Iterable[str]:
    told = [f"- {cell.model}: {story}" for cell in row.cells for story in cell.stories]
    return [f"### {row.title}", "", *told, ""] if told else []


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings), *(f"| {' | '.join(row)} |" for row in rows)]
