"""`n00dles-testing faults`: from what is typed to what is shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from n00dles.errors import ConfigurationError

from .command_report import write_reports
from .conformance.disturbing import deeds_of, disturb_store
from .exits import FAILED, INTERRUPTED, PASSED, UnusableError
from .report.terminal import StepDisplay, console_for, print_notes
from .show_faults import FaultsProgress, print_report
from .terminated import cleaning_up_at_sigterm

__all__ = ["run_faults"]

_CLEANED_UP = "the store's processes are ended and the temporary folder is removed"


def run_faults(
    target: str,
    how: str,
    options: Mapping[str, Any],
    json_file: Path | None = None,
    html_file: Path | None = None,
) -> int:
    """Disturb a store, show what came, and return the exit code; `options` are those of `disturb_store`.

    Raises `click.ClickException` for a target that cannot be used.
    """
    console = console_for()
    try:
        with cleaning_up_at_sigterm(_CLEANED_UP), StepDisplay(console, "calls of the store") as display:
            progress = FaultsProgress(target, display, deeds_of(how))
            report = disturb_store(target, how=how, progress=progress, on_tally=progress.tally, **options)
    except ConfigurationError as error:
        raise UnusableError(str(error)) from error
    except KeyboardInterrupt:
        click.echo(f"interrupted; {_CLEANED_UP}", err=True)
        return INTERRUPTED
    print_report(console, report)
    are_written, said = write_reports("faults", report.to_dict(), json_file, html_file)
    print_notes(console, said)
    return PASSED if report.ok and are_written else FAILED
