"""Workers and servers are killed until every run has ended: `python -m conformance.torture [--store NAME …]`.

By default 200 runs, four workers of which one is killed every half second, and a server that is killed twice, for each
of sqlite, postgres and redis. `make torture` also writes what came of it to `conformance/results/torture.md`. Ends
with 1 if an acknowledged call was made again, a run was lost, or no kill has met any work.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from n00dles_testing.exits import INTERRUPTED
from n00dles_testing.report.terminal import StepDisplay, console_for
from n00dles_testing.verdicts import Verdict

from .judge import Judge
from .page import Row, page, table
from .places import PLACES, why_not
from .torment import Plan, torment

NAME = "torture.md"
_STORIES = 3
_SAY_EVERY = 5.0  # seconds between two lines in a log


def main(arguments: Sequence[str] | None = None) -> int:
    """Torture each store, and say what came of it."""
    options = _options(arguments)
    console, rows = console_for(), list[Row]()
    for name in options.store or PLACES:
        if reason := why_not(name):
            console.print(Text(f"NOT RUN  {name}: {reason}", "yellow"), soft_wrap=True)
            continue
        try:
            rows.append(_tortured(console, name, options))
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return INTERRUPTED
    if rows:
        console.print(table(rows))
    if options.results is not None and len(rows) == len(PLACES):
        options.results.mkdir(parents=True, exist_ok=True)
        (options.results / NAME).write_text(page(rows))
        console.print(f"written to {options.results / NAME}", soft_wrap=True)
    return 0 if rows and all(row.verdict is Verdict.PASS for row in rows) else 1


def _tortured(console: Console, name: str, options: argparse.Namespace) -> Row:
    plan = Plan(
        runs=options.runs,
        workers=options.workers,
        concurrency=options.concurrency,
        kill_every=options.kill_every,
        node_seconds=options.node_seconds,
        seed=options.seed,
        target=options.target,
    )
    console.print(f"{name}: {plan.runs} runs, {plan.workers} workers, seed {plan.seed}")
    with tempfile.TemporaryDirectory(prefix="n00dles-torture-") as folder, StepDisplay(console, "runs") as display:
        display.start(plan.runs)
        progress = _Progress(display)
        with PLACES[name](Path(folder)) as place:
            done = asyncio.run(torment(plan, place, Path(folder), progress.show))
    verdict, reason = done.judge.verdict(server_kills=done.server_kills_wanted)
    console.print(Text(f"{name}: {verdict.value}: {reason}", "green" if verdict is Verdict.PASS else "bold red"))
    for fault in done.judge.faults[:_STORIES]:
        console.print(Text(f"{'run ' + fault.run + ': ' if fault.run else ''}{fault.what}", "bold"), soft_wrap=True)
        for line in done.judge.story(fault):
            console.print(Text(f"  {line}"), soft_wrap=True)
    if done.judge.faults:
        console.print(f"again: python -m conformance.torture --store {name} --seed {plan.seed}", soft_wrap=True)
    return Row(name, plan, done.judge, done.seconds, verdict)


class _Progress:
    """On a terminal a line that is redrawn, in a log a line now and then."""

    def __init__(self, display: StepDisplay) -> None:
        self._display = display
        self._shown = 0
        self._said = time.monotonic()

    def show(self, judge: Judge) -> None:
        """Say how far it is."""
        told = (
            f"{len(judge.finished)} finished, {judge.calls} calls, {judge.kills} workers killed"
            f"{f', server killed {judge.server_kills} times' if judge.server_kills else ''}"
        )
        self._display.at(told)
        self._display.advance(len(judge.finished) - self._shown)
        self._shown = len(judge.finished)
        if not self._display.is_live and time.monotonic() - self._said > _SAY_EVERY:
            self._said = time.monotonic()
            self._display.say(Text(f"  {told}"))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    usual = Plan()
    parser = argparse.ArgumentParser(
        prog="python -m conformance.torture",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--store", action="append", choices=sorted(PLACES), help="may be repeated; all by default")
    parser.add_argument("--runs", type=int, default=usual.runs)
    parser.add_argument("--workers", type=int, default=usual.workers)
    parser.add_argument("--concurrency", type=int, default=usual.concurrency, help="runs of a worker at a time")
    parser.add_argument("--kill-every", type=float, default=usual.kill_every, metavar="SECONDS")
    parser.add_argument("--node-seconds", type=float, default=usual.node_seconds, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="of the choice of who is killed")
    parser.add_argument("--target", default=usual.target, help="another module with the pipeline, such as a mutant")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help=f"write {NAME} there, if all stores were tried")
    options = parser.parse_args(arguments)
    if min(options.runs, options.workers, options.concurrency) < 1:
        parser.error("--runs, --workers and --concurrency are at least 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
