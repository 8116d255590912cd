"""Run the benchmarks: `python -m conformance.benchmarks [checkpoint | scenarios | imports | mocks | shared | …]`.

Prints one line a figure, with its target, and ends with 1 if one was missed. Read the ratios, not the milliseconds.
"""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from . import checkpoint, imports, mocked_calls, peers, scenarios, shared_stores, workers
from .figure import Figure

BENCHMARKS: dict[str, Callable[[], Iterator[Figure]]] = {
    "checkpoint": checkpoint.figures,
    "scenarios": scenarios.figures,
    "imports": imports.figures,
    "mocks": mocked_calls.figures,
    "shared": shared_stores.figures,
    "workers": workers.figures,
    "peers": peers.figures,
}


def main() -> int:
    """Measure what was asked for, and print it as it comes."""
    parser = argparse.ArgumentParser(prog="python -m conformance.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    options = parser.parse_args()
    unknown = set(options.names) - BENCHMARKS.keys()
    if unknown:
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    console, found = Console(), list[Figure]()
    console.print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}")
    for name in options.names or BENCHMARKS:
        for figure in BENCHMARKS[name]():
            found.append(figure)
            console.print(figure.line, soft_wrap=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(figure) for figure in found], indent=2) + "\n")
    return 0 if all(figure.reached for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
