"""The calibration of the power-loss explorer: `python -m conformance.calibration [--seed N] [--jobs N] [ROW …]`.

Ways of saving, of which it is known what a disk may make of them, are explored under every model, and what is found is
held against what must be found. The table is printed, and written to `conformance/results/calibration.md`.

With ROW (a part of the name of a row) only those are tried, with their stories, and nothing is written.
Ends with 1 if anything deviates, or if nothing could be tried.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from n00dles_testing.exits import INTERRUPTED
from n00dles_testing.powerloss.calibration import ROWS, Calibrated, Row, calibrate_number
from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.report.terminal import StepDisplay, console_for
from n00dles_testing.tracing import why_not

from .page import page

RESULTS = Path(__file__).resolve().parents[1] / "results"
NAME = "calibration.md"
_SLOWEST_FIRST = ("duckdb", "sqlite-off", "sqlite-wal-normal", "sqlite-full", "sqlite-extra", "sqlite-wal-full")


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill the table, print it, and say what deviates."""
    options = _options(arguments)
    console = console_for()
    rows = [row for row in ROWS if not options.rows or any(word in row.title for word in options.rows)]
    if not rows:
        print(f"no row is called {', '.join(options.rows)}", file=sys.stderr)
        return 2
    if reason := why_not():
        console.print(Text(f"NOT RUN  {reason}", "yellow"))
        return 1
    tried, left_out = _those_that_can_be(rows)
    began = time.monotonic()
    try:
        done = _calibrated(console, tried, options.jobs, seed=options.seed)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    console.print(_table(done))
    if options.rows:
        _print_stories(console, done)
    for line in left_out:
        console.print(Text(f"NOT RUN  {line}", "yellow"))
    deviations = [line for row in done for line in row.deviations]
    for line in deviations:
        console.print(Text(f"DEVIATES  {line}", "bold red"), soft_wrap=True)
    if not options.rows and not left_out:
        options.results.mkdir(parents=True, exist_ok=True)
        (options.results / NAME).write_text(page(done, seed=options.seed))
        console.print(f"written to {options.results / NAME}", soft_wrap=True)
    told = "as required" if not deviations and done else "something deviates"
    style = "bold green" if not deviations and done else "bold red"
    states = sum(cell.tried for row in done for cell in row.cells)
    console.print(Text(f"calibration: {told}, {states} states in {time.monotonic() - began:.0f} s", style))
    return 0 if done and not deviations else 1


def _those_that_can_be(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    left_out = [f"{row.title}: {reason}" for row in rows if (reason := row.protocol.why_not())]
    return [row for row in rows if not row.protocol.why_not()], left_out


def _calibrated(console: Console, rows: Sequence[Row], jobs: int, *, seed: int) -> list[Calibrated]:
    """Calibrate all rows, a few at a time, and return them in their order."""
    found = dict[str, Calibrated]()
    with StepDisplay(console, "rows") as display:
        display.start(len(rows))
        display.at("recording and exploring")
        for row in _in_processes(rows, jobs, seed=seed):
            found[row.title] = row
            display.done(_line(row), important=bool(row.deviations))
            waiting = [each.title for each in rows if each.title not in found]
            display.at(waiting[0] if waiting else "")
    return [found[row.title] for row in rows]


def _in_processes(rows: Sequence[Row], jobs: int, *, seed: int) -> Iterator[Calibrated]:
    """Each row is traced by a process with one thread, and nothing of another row in it."""
    numbers = sorted((ROWS.index(row) for row in rows), key=lambda number: _cost(ROWS[number]))
    context = multiprocessing.get_context("spawn")
    work = partial(calibrate_number, seed=seed)
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        try:
            for future in as_completed([pool.submit(work, number) for number in numbers]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _cost(row: Row) -> int:
    name = row.protocol.name
    return _SLOWEST_FIRST.index(name) if name in _SLOWEST_FIRST else len(_SLOWEST_FIRST)


def _line(row: Calibrated) -> Text:
    cells = ", ".join(f"{cell.model} {cell}" for cell in row.cells)
    line = Text("deviates  " if row.deviations else "ok        ", "bold red" if row.deviations else "green")
    return line.append(f"{row.title}: {cells} ({row.seconds:.1f} s)", "")


def _table(rows: Sequence[Calibrated]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("way of saving", ratio=1)
    for model in MODELS:
        table.add_column(model)
    table.add_column("states", justify="right")
    for row in rows:
        cells = [Text(str(cell), "green" if str(cell) == "clean" else "") for cell in row.cells]
        table.add_row(Text(row.title), *cells, Text(str(sum(cell.tried for cell in row.cells))))
    return table


def _print_stories(console: Console, rows: Sequence[Calibrated]) -> None:
    for row in rows:
        for cell in row.cells:
            of = "" if cell.at_least is None else f" of at least {cell.at_least}"
            console.print(Text(f"{row.title}, {cell.model}: {cell.tried}{of} states, {cell.seconds:.1f} s", "bold"))
            for story in cell.stories:
                console.print(Text(f"  {story}"), soft_wrap=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.calibration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help="parts of the names of rows; all by default")
    parser.add_argument("--seed", type=int, default=0, help="of the random states; 0 by default")
    parser.add_argument("--jobs", type=int, default=2, help="how many rows at a time; 2 by default")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where the table is written")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs is at least 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
