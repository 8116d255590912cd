"""`n00dles-testing report`: what can be typed."""

from __future__ import annotations

from pathlib import Path

import click

from .option_types import ReportFile

__all__ = ["report"]


@click.command(
    epilog="""\b
Examples:
  n00dles-testing report sqlite.json mine.json --html stores.html

The page is one file: it loads nothing and runs no script, and whatever came from a store is shown and not interpreted.
The same reports give the same page.

\b
Exit codes:
  0    the page was written, whatever it says
  1    it could not be written
  2    a file is no report of check, powerloss or faults, or of another format version
"""
)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--html", "html_file", type=ReportFile(), required=True, metavar="FILE", help="Write the page to this file."
)
def report(files: tuple[Path, ...], html_file: Path) -> None:
    """Merge JSON reports of checked stores into one page.

    FILES are what check, powerloss or faults has written with --json: a column each, in this order.
    """
    from ..command_report import run_report

    raise SystemExit(run_report(files, html_file))
