"""How many generated scenarios it takes to catch each broken executor, and how small the pipeline is that shows it.

`python -m conformance.benchmarks.mutants [--seeds N] [--jobs N] [--write FILE] [NAME …]` prints a table: for each
mutant the median and the worst over the seeds, the size of the shrunk pipeline, and the clauses that were broken beside
its own and those that follow from it. The target is a median of at most 200 scenarios, and at most 3 nodes. It takes
minutes, and times nothing: the shrinking, too, ends after so many scenarios, so a slow machine gives the same table.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table

from n00dles_testing.campaign.families import FAMILIES, SCOUTS
from n00dles_testing.campaign.family import Family
from n00dles_testing.campaign.search import Search
from n00dles_testing.campaign.stage import Stage
from n00dles_testing.crash.clauses import related
from tests.n00dles_testing.crash.mutants import MUTANTS, Executor, WholeStore

__all__ = ["MOST_NODES", "MOST_SCENARIOS", "Caught", "Row", "catch"]

MOST_SCENARIOS = 200
MOST_NODES = 3
SEEDS = 10
_SHRINK_SCENARIOS = 500
"""What the shrinking of one fault may take; it ends where the target is reached."""


@dataclass(frozen=True, slots=True)
class Caught:
    """What came of one mutant under one seed.

    `scenarios` were tried until its own clause was broken, None if it was not within twice the target; `nodes` the
    simplest pipeline has; `unrelated` are other clauses that were broken on the way.
    """

    mutant: str
    breaks: str
    scenarios: int | None
    nodes: int | None
    unrelated: frozenset[str]


def catch(mutant: Executor, seed: int, *, shrink: bool = True) -> Caught:
    """Search until the clause that `mutant` breaks is broken, at most twice the target."""
    with Stage(mutant, make_store=WholeStore) as stage:
        search: Search = Search(_family(mutant.breaks), stage, seed=seed)
        search.until = lambda: mutant.breaks in search.tally.found
        search.run(2 * MOST_SCENARIOS)
        found = search.tally.found.get(mutant.breaks)
        nodes = None
        if found is not None and shrink:
            shrunk = search.shrink(mutant.breaks, scenarios=_SHRINK_SCENARIOS, enough=MOST_NODES)
            nodes = len(shrunk.trial.spec.nodes())
        allowed = {mutant.breaks, *getattr(mutant, "also", ())}
        unrelated = {each for each in search.tally.found if not any(related(each, other) for other in allowed)}
        number = None if found is None else found.number
        return Caught(type(mutant).__name__, mutant.breaks, number, nodes, frozenset(unrelated))


def _family(clause: str) -> Family:
    """Return the family that is about a clause: one of its own, or that of disturbed lives."""
    return next((family for family in FAMILIES if family.clauses == {clause}), SCOUTS)


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one mutant under all seeds. `nodes` is the largest of the pipelines, None if nothing was caught."""

    mutant: str
    breaks: str
    seeds: int
    median: float
    worst: int
    nodes: int | None
    unrelated: tuple[str, ...]

    @classmethod
    def of(cls, tried: list[Caught]) -> Row:
        """Sum up; what was not caught counts as twice the target."""
        counts = [2 * MOST_SCENARIOS if each.scenarios is None else each.scenarios for each in tried]
        return cls(
            tried[0].mutant,
            tried[0].breaks,
            len(tried),
            statistics.median(counts),
            max(counts),
            max((each.nodes for each in tried if each.nodes is not None), default=None),
            tuple(sorted(frozenset[str]().union(*(each.unrelated for each in tried)))),
        )

    @property
    def ok(self) -> bool:
        """Whether the target is reached."""
        is_small = self.nodes is not None and self.nodes <= MOST_NODES
        return self.median <= MOST_SCENARIOS and is_small and not self.unrelated

    def cells(self) -> tuple[str, ...]:
        """Return it as a row of a table."""
        counts = (str(self.seeds), f"{self.median:g}", str(self.worst), str(self.nodes or "-"))
        return (self.mutant, self.breaks, *counts, ", ".join(self.unrelated) or "-", "reached" if self.ok else "missed")


_HEADINGS = ("mutant", "breaks", "seeds", "median", "worst", "nodes", "unrelated", "target")


def main() -> int:
    """Measure, and print the table as it grows."""
    parser = argparse.ArgumentParser(prog="python -m conformance.benchmarks.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="classes of mutants; all by default")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"how many seeds; {SEEDS} by default")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes; the table is the same")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table to FILE too, as Markdown")
    options = parser.parse_args()
    names = [type(mutant).__name__ for mutant in MUTANTS]
    if unknown := set(options.names) - set(names):
        parser.error(f"no mutant is called {', '.join(sorted(unknown))}")
    # Those that were asked for first come first.
    chosen = sorted(
        (number for number, name in enumerate(names) if not options.names or name in options.names),
        key=lambda number: (options.names or names).index(names[number]),
    )
    table, rows = Table(*_HEADINGS), list[Row]()
    for row in _rows(chosen, options.seeds, options.jobs):
        rows.append(row)
        table.add_row(*row.cells())
        print("  ".join(row.cells()), file=sys.stderr, flush=True)
        if options.write is not None:
            options.write.parent.mkdir(parents=True, exist_ok=True)
            options.write.write_text(_page(rows, options.seeds))
    Console().print(table)
    return 0 if rows and all(row.ok for row in rows) else 1


def _rows(chosen: list[int], seeds: int, jobs: int) -> Iterator[Row]:
    wanted = [(number, seed) for number in chosen for seed in range(seeds)]
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        pairs = zip(wanted, pool.map(_caught, wanted), strict=True)
        for _, of_one in groupby(pairs, key=lambda pair: pair[0][0]):
            yield Row.of([caught for _, caught in of_one])


def _caught(wanted: tuple[int, int]) -> Caught:
    number, seed = wanted
    return catch(MUTANTS[number], seed)


def _page(rows: list[Row], seeds: int) -> str:
    told = [
        "# How soon the search catches broken executors",
        "",
        f"{len(rows)} of {len(MUTANTS)} mutants, {seeds} seeds each. Made by "
        f"`python -m conformance.benchmarks.mutants --seeds {seeds} --write FILE`.",
        "",
        "`median` and `worst` count the scenarios until the clause that the mutant breaks was broken; `nodes` is the",
        f"size of the shrunk pipeline, the largest over the seeds: the shrinking ends at {MOST_NODES} nodes, or after",
        f"{_SHRINK_SCENARIOS} scenarios. `unrelated` are clauses that were broken beside it and do not follow from it.",
        f"The target is a median of at most {MOST_SCENARIOS} scenarios, at most {MOST_NODES} nodes, nothing unrelated.",
        f"A search ends after {2 * MOST_SCENARIOS} scenarios: that as the worst means not caught under some seed.",
        "",
        f"| {' | '.join(_HEADINGS)} |",
        f"|{'---|' * len(_HEADINGS)}",
        *(f"| {' | '.join(row.cells())} |" for row in rows),
    ]
    return "\n".join(told) + "\n"


if __name__ == "__main__":
    sys.exit(main())
