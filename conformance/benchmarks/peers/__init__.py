"""What a durable checkpoint costs here and elsewhere: side by side in one run, against the raw limit beside each.

A pipeline of N nodes, one after the other, each returning 1000 characters that must be durable before the next starts.
Every subject is used as its own documentation shows, in an environment and a process of its own, at equal durability
(SQLite: write-ahead log and synchronous=FULL) and with the outputs of all nodes kept. `programs/` has one file each.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...executors.environments import ROOT
from ..figure import Figure
from .page import write
from .results import Result, Results
from .subjects import Subject, subjects
from .trial import Trial

__all__ = ["RESULTS", "Comparison", "figures"]

RESULTS = ROOT / "conformance" / "results"
_AT_LEAST = {1000: 2.5}
"""How many times as fast as the fastest other we mean to be, by the number of nodes; elsewhere, faster."""


@dataclass(frozen=True)
class Comparison:
    """What is measured: `lengths` has the rounds by the number of nodes, `limit` the seconds that a run may take."""

    lengths: Mapping[int, int] = field(default_factory=lambda: {10: 20, 100: 7, 1000: 5, 3000: 2})
    limit: float = 60.0
    resume_nodes: int = 1000
    resume_rounds: int = 5
    counts_syncs: bool = True

    def figures(self, chosen: Sequence[Subject], results: Path) -> Iterator[Figure]:
        """Measure, yield each figure as soon as it is known, and write the page into the folder `results`."""
        scratch = ROOT / "build"
        scratch.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=scratch) as work, Trial(list(chosen), Path(work), self.limit) as trial:
            found = Results(_machine(), list(self.lengths), self.resume_nodes, list(trial.results.values()))
            for result in trial.installed():
                if result.error:
                    yield Figure(result.title, None, "", result.error)
            if self.counts_syncs:
                trial.count_syncs()
            for nodes, rounds in self.lengths.items():
                trial.run(nodes, rounds)
                yield from _of_length(found, nodes)
                write(found, results)  # so that what is known is not lost with a later one
            trial.resume(self.resume_nodes, self.resume_rounds)
        yield from _resumed(found)
        write(found, results)


def figures() -> Iterator[Figure]:
    """Measure everything; takes half an hour."""
    return Comparison().figures(subjects(), RESULTS)


def _of_length(results: Results, nodes: int) -> Iterator[Figure]:
    for result in results.subjects:
        series = result.runs.get(nodes)
        if series is not None:
            detail = series.why
            if series.median is not None:
                detail = f"{series.median * 1000:.3f} ms a node; {_promise(result, nodes)}"
            yield Figure(f"{result.title}, {nodes} nodes", series.ratio, "× raw", detail)
    yield from _against_the_fastest(results, nodes)


def _promise(result: Result, nodes: int) -> str:
    syncs = "syncs not counted" if result.syncs is None else f"{result.syncs:.1f} syncs a node"
    return f"{syncs}, {result.runs[nodes].kept} outputs kept"


def _against_the_fastest(results: Results, nodes: int) -> Iterator[Figure]:
    if (found := results.fastest_other(nodes)) is not None:
        detail = f"{found.ours:.2f} × raw against {found.cost:.2f}, {found.title}"
        target = _AT_LEAST.get(nodes, 1.0)
        yield Figure(f"ours, {nodes} nodes", found.times, "× as fast as others", detail, at_least=target)


def _resumed(found: Results) -> Iterator[Figure]:
    for result in found.subjects:
        median = result.resumed.median
        value = None if median is None else median * 1000
        detail = result.resumed.why or f"nodes called: {result.resumed.called}"
        yield Figure(f"{result.title}, resume of {found.resume_nodes}", value, "ms", detail)


def _machine() -> dict[str, str]:
    return {
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
        "processors": str(os.cpu_count()),
    }
