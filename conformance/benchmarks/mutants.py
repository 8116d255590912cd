"""How many generated scenarios it takes to catch each broken executor, and how small the pipeline is that shows it.

`python -m conformance.benchmarks.mutants [--seeds N] [NAME …]` prints a table: for each mutant the median and the worst
over the seeds, the size of the shrunk pipeline, and the clauses that were broken beside its own and those that follow
from it. The target is a median of at most 200 scenarios, and at most 3 nodes. It takes minutes, and times nothing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from n00dles_testing.campaign.families import FAMILIES, SCOUTS
from n00dles_testing.campaign.family import Family
from n00dles_testing.campaign.search import Search
from n00dles_testing.campaign.stage import Stage
from n00dles_testing.crash.clauses import related
from tests.n00dles_testing.crash.mutants import MUTANTS, Executor, WholeStore

__all__ = ["MOST_NODES", "MOST_SCENARIOS", "Caught", "catch"]

MOST_SCENARIOS = 200
MOST_NODES = 3
SEEDS = 10
_SHRINK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Caught:
    """What came of one mutant under one seed.

    `scenarios` were tried until its own clause was broken, None if it was not within twice the target; `nodes` the
    simplest pipeline has; `unrelated` are other clauses that were broken on the way.
    """

    mutant: Executor
    seed: int
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
            nodes = len(search.shrink(mutant.breaks, seconds=_SHRINK_SECONDS).trial.spec.nodes())
        allowed = {mutant.breaks, *getattr(mutant, "also", ())}
        unrelated = {each for each in search.tally.found if not any(related(each, other) for other in allowed)}
        return Caught(mutant, seed, None if found is None else found.number, nodes, frozenset(unrelated))


def _family(clause: str) -> Family:
    """Return the family that is about a clause: one of its own, or that of disturbed lives."""
    return next((family for family in FAMILIES if family.clauses == {clause}), SCOUTS)


def main() -> int:
    """Measure, and print the table as it grows."""
    parser = argparse.ArgumentParser(prog="python -m conformance.benchmarks.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="classes of mutants; all by default")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"how many seeds; {SEEDS} by default")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if not options.names or type(mutant).__name__ in options.names]
    table = Table("mutant", "breaks", "median", "worst", "nodes", "unrelated", "target")
    reached = True
    for mutant in chosen:
        tried = list(_tried(mutant, options.seeds))
        counts = [2 * MOST_SCENARIOS if each.scenarios is None else each.scenarios for each in tried]
        nodes = [each.nodes for each in tried if each.nodes is not None]
        unrelated = sorted(frozenset[str]().union(*(each.unrelated for each in tried)))
        ok = statistics.median(counts) <= MOST_SCENARIOS and max(nodes, default=99) <= MOST_NODES and not unrelated
        reached = reached and ok
        row = (
            *(type(mutant).__name__, mutant.breaks, f"{statistics.median(counts):g}", str(max(counts))),
            *(str(max(nodes, default=0) or "-"), ", ".join(unrelated), "reached" if ok else "missed"),
        )
        table.add_row(*row)
        print("  ".join(row), file=sys.stderr, flush=True)
    Console().print(table)
    return 0 if reached and chosen else 1


def _tried(mutant: Executor, seeds: int) -> Iterator[Caught]:
    for seed in range(seeds):
        yield catch(mutant, seed)


if __name__ == "__main__":
    sys.exit(main())
