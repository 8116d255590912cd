"""The tables of broken and correct stores: `python -m conformance.tables [--seeds N] [--jobs N] [NAME …]`.

Each broken store meets the clause that it breaks with every seed, and all other clauses with one; each correct store,
the one in memory and the one on SQLite meet all clauses with every seed. What was found is written to
`conformance/results/mutants-stores.md` and `.json`. It takes hours on two cores. Every result is kept in the work file
at once: an interrupted table goes on where it was, and only what the same sources gave is used again.

With NAME (a clause, or a part of a store's name) only those are tried, the figures are printed, and nothing is written.
Ends with 1 if a broken store was missed, an alarm was false, or something could not be tried.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .cells import Cell, Job, Subjects
from .figures import Tables
from .filling import fill
from .page import write
from .results import Outcome, Sources, WorkFile

SEEDS = 20
RESULTS = Path(__file__).resolve().parents[1] / "results"


def main(
    arguments: Sequence[str] | None = None, try_one: Callable[[Job], list[tuple[Cell, Outcome]]] | None = None
) -> int:
    """Fill the tables, write them, and say what is to be mended."""
    options = _options(arguments)
    subjects = Subjects.of_today()
    if options.names:
        subjects = subjects.named(options.names)
        if not (subjects.mutants or subjects.stores):
            print(f"no store and no clause is called {', '.join(options.names)}", file=sys.stderr)
            return 2
    sources = Sources.now()
    work = WorkFile(options.work, sources)
    broken = fill(work, subjects.cells(options.seeds), options.jobs, try_one)
    if broken:
        print("\n".join(["tables: not complete; these could not be tried:", *broken]))
        return 1
    return _told(Tables.of(subjects, work.outcomes, options.seeds), None if options.names else options.results, sources)


def _told(tables: Tables, folder: Path | None, sources: Sources) -> int:
    for mutant in tables.mutants:
        print(f"{'ok     ' if mutant.ok else 'TO MEND'}  {mutant}")
    for store in tables.stores:
        print(f"{'ok     ' if store.ok else 'TO MEND'}  {store}")
    if folder is not None:
        for path in write(folder, tables, sources):
            print(f"written to {path}")
    print("tables: all caught, all clean" if tables.ok else "tables: something is to be mended")
    return 0 if tables.ok else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.tables", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="clauses, or parts of the names of stores")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"how many seeds; {SEEDS} by default")
    parser.add_argument("--jobs", type=int, default=2, help="how many stores at a time; 2 by default")
    parser.add_argument("--work", type=Path, default=Path("build/tables.jsonl"), metavar="FILE", help="the work file")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where the tables are written")
    options = parser.parse_args(arguments)
    if options.seeds < 1 or options.jobs < 1:
        parser.error("--seeds and --jobs are at least 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
