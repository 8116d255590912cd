"""The report for a person: progress while it goes, tables at the end, and the story of every failure.

On a terminal the progress line is redrawn, with the time left. Elsewhere (a CI log, a pipe, TERM=dumb) each step is one
line and nothing is redrawn. NO_COLOR is honoured, and COLUMNS.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import IO, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.table import Table
from rich.text import Text

from ..verdicts import ClauseResult, Finding, Verdict
from .escape import escaped, one_line
from .rows import ReportRow

__all__ = [
    "StepDisplay",
    "clause_line",
    "clause_table",
    "console_for",
    "exploration_line",
    "exploration_table",
    "print_findings",
    "print_line",
    "print_notes",
    "print_table",
]

_STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.VACUOUS: "bold magenta",
    Verdict.UNKNOWN: "yellow",
    Verdict.NOT_RUN: "yellow",
    Verdict.NOT_APPLICABLE: "dim",
}
_WIDEST_VERDICT = max(len(verdict.value) for verdict in Verdict)
_PLAIN_WIDTH = 120
_LEAST_WIDTH, _MOST_WIDTH = 60, 1000
"""Whatever COLUMNS says: in less no table says which clause has which verdict, and nobody reads more."""
_BROKEN_PIPE = 141


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """End with the status of a program that SIGPIPE has ended: what was to be shown has not failed."""
        try:
            super().on_broken_pipe()
        except SystemExit:
            raise SystemExit(_BROKEN_PIPE) from None


def console_for(stream: IO[str] | None = None) -> Console:
    """Return the console of a stream (stdout). It interprets no markup, emoji names or highlights in what it prints."""
    stream = stream or sys.stdout
    console = _Console(file=stream, markup=False, emoji=False, highlight=False)
    if not console.is_terminal and "COLUMNS" not in _environment(console):
        console.width = _PLAIN_WIDTH  # a log has no width, and the default of 80 would break every story
    if not _LEAST_WIDTH <= console.width <= _MOST_WIDTH:
        console.width = min(max(console.width, _LEAST_WIDTH), _MOST_WIDTH)
    return console


class _Counted(ProgressColumn):
    """How many have ended; nothing before it is known how many there are."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        super().__init__()

    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{task.fields['ended']}/{task.fields['of']} {self._unit}")


class _TimeLeft(ProgressColumn):
    """The time that is left, as far as it can be told."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        if task.finished or task.total is None or task.time_remaining is None:
            return Text("")
        minutes, seconds = divmod(int(task.time_remaining), 60)
        return Text(f"{minutes}:{seconds:02} left", "progress.remaining")


class StepDisplay:
    """Shows a number of steps of which one is going on: `with StepDisplay(console) as display: …`.

    `start` says how many there are, `at` what is going on, `done` that one has ended, with a line that is worth keeping
    (on a terminal only if it is `important`; in a log always).
    """

    def __init__(self, console: Console, unit: str) -> None:
        self._console = console
        self._live = console.is_terminal and not console.is_dumb_terminal
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            _Counted(unit),
            _TimeLeft(),
            console=console,
            transient=True,
            disable=not self._live,
        )
        self._ended = 0
        self._task = self._progress.add_task("starting", total=None, ended=0, of="?")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def start(self, total: int, *, work: float | None = None) -> None:
        """Say how many steps there are, once that is known, and how much work that is, if not each is as much."""
        self._progress.update(self._task, total=total if work is None else work, of=total)

    def at(self, text: str) -> None:
        """Say what is going on."""
        self._progress.update(self._task, description=one_line(text)[: max(20, self._console.width - 70)])

    def done(self, line: Text, *, important: bool = False, work: float = 1.0) -> None:
        """Count one step as done, of so much work."""
        self._count(1, work)
        if important or not self._live:
            if self._live:
                self._progress.console.print(line, no_wrap=True, overflow="ellipsis")
            else:
                self._progress.console.print(line, soft_wrap=True)

    @property
    def is_live(self) -> bool:
        """Whether the progress is redrawn; elsewhere only lines are seen."""
        return self._live

    def advance(self, steps: int) -> None:
        """Count steps as done without a line about them."""
        self._count(steps, steps)

    def say(self, line: Text) -> None:
        """Print a line above the progress."""
        print_line(self._progress.console, line)

    def _count(self, steps: int, work: float) -> None:
        self._ended += steps
        self._progress.update(self._task, advance=work, ended=self._ended)


def clause_line(result: ClauseResult) -> Text:
    """Return one line about a clause that has been checked."""
    line = Text(f"{one_line(result.clause)}  ")
    line.append(f"{result.verdict.value:<{_WIDEST_VERDICT}}", _STYLES[result.verdict])
    spent = "" if result.seconds is None else f", {result.seconds:.2f} s"
    line.append(f"  {_scenarios(result.scenarios)}{spent}  {one_line(result.title)}")
    return line


def clause_table(results: Iterable[ClauseResult]) -> Table:
    """Return the table of all clauses: verdict, title and why, scenarios, and seconds where they are known."""
    results = list(results)
    timed = any(result.seconds is not None for result in results)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("clause", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("what it says", ratio=1)
    table.add_column("scenarios", justify="right")
    if timed:
        table.add_column("seconds", justify="right")
    for result in results:
        says = Text(one_line(result.title))
        if result.reason:
            says.append(f"\n{one_line(result.reason)}", "dim")
        verdict = Text(result.verdict.value, _STYLES[result.verdict])
        spent = [] if not timed else ["-" if result.seconds is None else f"{result.seconds:.2f}"]
        table.add_row(Text(one_line(result.clause)), verdict, says, str(result.scenarios), *spent)
    return table


def exploration_line(row: ReportRow) -> Text:
    """Return one line about a crash point that has been tried."""
    line = Text(f"{row.verdict.value:<{_WIDEST_VERDICT}}", _STYLES[row.verdict])
    line.append(f"  {one_line(row.point)}: {one_line(row.killed_by) or 'not killed'}, on disk: {_on_disk(row)}, ", "")
    line.append(f"{row.paid_calls} calls, {row.re_calls} re-called")
    return line


def exploration_table(rows: Sequence[ReportRow], *, calls: str = "paid calls") -> Table:
    """Return the table of all crash points; `calls` is the heading of the calls counted."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in ("crash point", "killed by", "on disk"):
        table.add_column(title, overflow="fold")
    for title in (calls, "re-called"):
        table.add_column(title, justify="right")
    table.add_column("same output")
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        table.add_row(
            Text(one_line(row.point)),
            Text(one_line(row.killed_by) or "-"),
            Text(_on_disk(row)),
            str(row.paid_calls),
            Text(str(row.re_calls), "bold red" if row.re_calls else ""),
            _same(row.same_output),
            Text(row.verdict.value, _STYLES[row.verdict]),
        )
    return table


def print_findings(console: Console, findings: Iterable[Finding]) -> None:
    """Print the story of each failure."""
    for finding in findings:
        console.print()
        heading = Text(f"{one_line(finding.clause)}  ", "bold red")
        heading.append(one_line(finding.message), "bold")
        print_line(console, heading)
        for line in finding.story:
            _print_indented(console, escaped(line))
        if finding.replay:
            # Never broken over lines, so that it can be copied.
            console.print(Text(f"  replay   {one_line(finding.replay)}", "cyan"), soft_wrap=True)


def print_notes(console: Console, notes: Iterable[str]) -> None:
    """Print sentences, one a line."""
    for note in notes:
        print_line(console, Text(escaped(note), "dim"))


def print_line(console: Console, line: Text) -> None:
    """Print a line: broken between words on a terminal, whole in a log, where it can be searched."""
    console.print(line, soft_wrap=not console.is_terminal)


def print_table(console: Console, table: Table) -> None:
    """Print a table; in a log without the spaces that would fill its lines."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as shown:
        console.print(table)
    for line in shown.get().splitlines():
        console.print(Text.from_ansi(line.rstrip()), soft_wrap=True)


def _print_indented(console: Console, text: str) -> None:
    """Print a line of a story: broken with a hanging indent on a terminal, whole in a log, where it can be searched."""
    for line in text.splitlines():
        width = console.width - 2 if console.is_terminal else sys.maxsize
        for part in textwrap.wrap(line, width, subsequent_indent="    ", break_on_hyphens=False) or [""]:
            console.print(Text(f"  {part}"), soft_wrap=True)


def _on_disk(row: ReportRow) -> str:
    if row.on_disk is None:
        return row.disk_note or "no record"
    return one_line(", ".join(row.on_disk)) or "no outputs"


def _same(same: bool | None) -> Text:
    if same is None:
        return Text("-")
    return Text("yes") if same else Text("NO", "bold red")


def _scenarios(count: int) -> str:
    return "1 scenario" if count == 1 else f"{count} scenarios"


def _environment(console: Console) -> dict[str, str]:
    return dict(console._environ)
