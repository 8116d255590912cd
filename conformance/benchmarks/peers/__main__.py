"""Measure a part of it, or in small: `python -m conformance.benchmarks.peers --nodes 10 --subject burr`.

The whole is `python -m conformance.benchmarks peers`. The page goes into --results, which is not where the kept one is.
`--page-only` writes the page and the plot of kept results anew, and measures nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from . import RESULTS, Comparison
from .page import write
from .results import Results
from .subjects import OURS, RAW, subjects


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for."""
    options = _options(arguments)
    if options.page_only:
        write(Results.read(RESULTS / "peers.json"), RESULTS)
        return 0
    known = {subject.name: subject for subject in subjects()}
    if strange := sorted(set(options.subject) - known.keys()):
        print(f"there is no subject {strange[0]}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = [each for name, each in known.items() if not options.subject or name in {RAW, OURS, *options.subject}]
    options.results.mkdir(parents=True, exist_ok=True)
    comparison = Comparison(
        lengths=dict.fromkeys(options.nodes, options.rounds),
        limit=options.limit,
        resume_nodes=max(options.nodes),
        resume_rounds=options.rounds,
        counts_syncs=not options.no_syncs,
    )
    console, missed = Console(), False
    for figure in comparison.figures(chosen, options.results):
        console.print(figure.line, soft_wrap=True)
        missed = missed or not figure.reached
    return 1 if missed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--subject", action="append", default=[], metavar="NAME", help="only this one beside ours")
    parser.add_argument("--nodes", nargs="+", type=int, default=[10], metavar="N", help="lengths of the pipeline")
    parser.add_argument("--rounds", type=int, default=2, metavar="N", help="how often each is measured")
    parser.add_argument("--limit", type=float, default=60.0, metavar="SECONDS", help="a longer run is ended")
    parser.add_argument("--no-syncs", action="store_true", help="do not count how often each waits for the disk")
    parser.add_argument("--results", type=Path, default=Path("build/peers"), metavar="FOLDER")
    parser.add_argument("--page-only", action="store_true", help="write the page of the kept results anew")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
