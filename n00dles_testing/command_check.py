"""`n00dles-testing check`: from what is typed to what is shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from n00dles.errors import ConfigurationError

from .command_report import write_reports
from .conformance import CAPABILITIES, StoreReport, check_store, select
from .conformance.claims import Claims
from .conformance.gaps import judge_gaps
from .conformance.grade import grade
from .conformance.served import is_local, password_hidden
from .exits import FAILED, INTERRUPTED, PASSED, UnusableError
from .report.terminal import StepDisplay, console_for, print_notes
from .show_check import CheckProgress, clause_list, print_interrupted, print_report
from .terminated import ENDED, cleaning_up_at_sigterm

__all__ = ["list_clauses", "run_check"]

_BY_A_NAME = "name the server by a host that all of them can reach"
_CLEANED_UP = "the store's processes are ended and the temporary folder is removed"


def run_check(
    target: str, options: Mapping[str, Any], *, json_file: Path | None = None, html_file: Path | None = None
) -> int:
    """Check a store, show what came, and return the exit code; `options` are those of `check_store`.

    Raises `click.ClickException` for a target, a clause, claims or a reader that cannot be used.
    """
    console = console_for()
    progress = None
    try:
        select(options["clauses"])
    except KeyError as error:
        raise click.UsageError(error.args[0]) from error
    try:
        with cleaning_up_at_sigterm(_CLEANED_UP), StepDisplay(console, "checks") as display:
            progress = CheckProgress(target, display, 0 if options["clauses"] else len(CAPABILITIES))
            report = _checked(target, progress, options)
    except ConfigurationError as error:
        raise UnusableError(str(error)) from error
    except KeyboardInterrupt:
        click.echo(f"interrupted; {_CLEANED_UP}", err=True)
        _print_what_was_found(console, target, options, progress)
        return INTERRUPTED
    except SystemExit as end:
        if end.code in ENDED:
            _print_what_was_found(console, target, options, progress)
        raise
    print_report(console, report)
    are_written, said = write_reports("check", report.to_dict(), json_file, html_file)
    print_notes(console, said)
    return PASSED if report.ok and are_written else FAILED


def _checked(target: str, progress: CheckProgress, options: Mapping[str, Any]) -> StoreReport:
    given = {name: value for name, value in options.items() if value is not None}
    if (address := given.pop("dask", None)) is None:
        return check_store(target, progress=progress, **given)
    from .on_dask import workers_of

    needed = password_hidden(target) if is_local(target) and "server" not in given else ""
    with workers_of(address, needs_this_host=needed, instead=_BY_A_NAME) as workers:
        return check_store(target, progress=progress, workers=workers, **given)


def _print_what_was_found(
    console: Console, target: str, options: Mapping[str, Any], progress: CheckProgress | None
) -> None:
    """Show what the clauses have found that had ended, when the check was interrupted."""
    if progress is None or not progress.count:
        return
    results, claims = tuple(progress.results), options.get("claims")
    said = Claims() if claims is None else Claims.from_file(claims)
    gaps = judge_gaps(said.gaps, results, said.source)
    report = StoreReport(target, results, grade(results), (), options.get("seed", 0), 0.0, gaps=gaps)
    print_interrupted(console, report, progress.count)


def list_clauses() -> None:
    """Print the clauses of the contract for stores."""
    click.echo(clause_list())
