"""`n00dles-testing powerloss`: from what is typed to what is shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from n00dles.errors import ConfigurationError

from .command_report import write_reports
from .conformance.losing_power import lose_power_of
from .exits import FAILED, INTERRUPTED, PASSED, UnusableError
from .report.other_reports import verdicts_of_power_losses
from .report.terminal import StepDisplay, console_for, print_notes
from .show_powerloss import PowerLossProgress, conclusion, print_report
from .terminated import cleaning_up_at_sigterm

__all__ = ["run_powerloss"]

_CLEANED_UP = "the store's processes are ended and the temporary folder is removed"


def run_powerloss(
    target: str, options: Mapping[str, Any], json_file: Path | None = None, html_file: Path | None = None
) -> int:
    """Lose a store's power, show what came, and return the exit code; `options` are those of `lose_power_of`.

    Raises `click.ClickException` for a target that cannot be used.
    """
    console = console_for()
    try:
        with cleaning_up_at_sigterm(_CLEANED_UP), StepDisplay(console, "states of the disk") as display:
            progress = PowerLossProgress(target, display, options["models"], options["budget"])
            found = lose_power_of(target, on_state=progress.on_state, **options)
    except ConfigurationError as error:
        raise UnusableError(str(error)) from error
    except KeyboardInterrupt:
        click.echo(f"interrupted; {_CLEANED_UP}", err=True)
        return INTERRUPTED
    clauses = verdicts_of_power_losses(found.to_dict())
    print_report(console, found, clauses)
    content = {**found.to_dict(), "clauses": clauses, "conclusion": conclusion(found)}
    are_written, said = write_reports("powerloss", content, json_file, html_file)
    print_notes(console, said)
    return PASSED if found.ok and are_written else FAILED
