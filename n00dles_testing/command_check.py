"""`n00dles-testing check`: from what is typed to what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.text import Text

from n00dles.errors import ConfigurationError

from .cli import FAILED, INTERRUPTED, PASSED, UnusableError
from .conformance import Capability, StoreReport, check_store, select
from .report.escape import one_line
from .report.json_file import written
from .report.terminal import StepDisplay, clause_line, clause_table, console_for, print_findings, print_notes
from .verdicts import ClauseResult, Verdict

__all__ = ["run_check"]


def run_check(
    target: str,
    clauses: Sequence[str],
    seed: int,
    limit: float,
    *,
    json_file: Path | None = None,
    html_file: Path | None = None,
) -> int:
    """Check a store, show what came, and return the exit code. Raises `click.ClickException` for a bad target."""
    console = console_for()
    try:
        select(clauses)
    except KeyError as error:
        raise click.UsageError(error.args[0]) from error
    try:
        with StepDisplay(console, "clauses") as display:
            report = check_store(target, clauses=clauses, seed=seed, limit=limit, progress=_Shown(target, display))
    except ConfigurationError as error:
        raise UnusableError(str(error)) from error
    except KeyboardInterrupt:
        click.echo("interrupted; the store's processes are ended and the temporary folder is removed", err=True)
        return INTERRUPTED
    console.print(clause_table(report.results))
    for result in report.results:
        print_findings(console, result.findings[:1])
        print_notes(console, [f"  also: {finding.story[0]}: {finding.message}" for finding in result.findings[1:]])
    console.print()
    console.print(_grade(report))
    if report.grade.not_implemented:
        print_notes(console, [f"all that are not checked: {', '.join(report.grade.not_implemented)}"])
    # The first note was shown at the start.
    print_notes(console, report.notes[1:])
    if json_file is not None:
        print_notes(console, [written(json_file, "check", report.to_dict())])
    if html_file is not None:
        from .command_report import written_page

        print_notes(console, [written_page(html_file, report.to_dict())])
    return PASSED if report.ok else FAILED


class _Shown:
    """Shows the progress of a check."""

    def __init__(self, target: str, display: StepDisplay) -> None:
        self._target = target
        self._display = display
        self._clause = ""

    def started(self, clauses: Sequence[tuple[str, str]], note: str) -> None:
        self._display.start(len(clauses))
        self._display.say(Text(f"checking {one_line(self._target)}", "bold"))
        self._display.say(Text(one_line(note), "dim"))

    def clause_started(self, clause: str) -> None:
        self._clause = clause
        self._display.at(clause)

    def scenario(self, number: int, title: str) -> None:
        self._display.at(f"{self._clause} {number}: {title}")

    def clause_ended(self, result: ClauseResult) -> None:
        self._display.done(clause_line(result), important=not result.ok)

    def probing(self, capability: str) -> None:
        self._display.at(f"is it {capability}?")

    def probed(self, capability: Capability) -> None: ...


def _grade(report: StoreReport) -> Text:
    """Green is for a level; that some clauses found nothing is none."""
    style = "bold red" if not report.ok else "bold green" if report.grade.level else "bold"
    passed = sum(result.verdict is Verdict.PASS for result in report.results)
    tried = f"of {len(report.results)} clauses tried, {passed} passed in {report.seconds:.1f} s"
    return Text(f"{report.grade.text}\n{tried}", style)
