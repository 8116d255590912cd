"""`n00dles-testing report`, and `check --html`: from reports to one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from .conformance import implemented
from .conformance.contract import LEVELS, level_title
from .conformance.sentences import SENTENCES
from .report.check_report import UnreadableReportError, parse_check_report, read_check_report
from .report.html_page import render_page
from .report.json_file import enveloped, written_whole
from .report.page_view import ClauseText

__all__ = ["contract", "run_report", "written_page"]


def run_report(files: Sequence[Path], html_file: Path) -> int:
    """Merge the JSON reports of several stores into one page, and return the exit code.

    Raises `click.UsageError` for a file that is no report of a check, or of another format version.
    """
    try:
        reports = [read_check_report(file) for file in files]
    except UnreadableReportError as error:
        raise click.UsageError(str(error)) from error
    is_written, said = written_whole(html_file, render_page(reports, contract()))
    click.echo(said, err=not is_written)
    return 0 if is_written else 1


def written_page(path: Path, content: Mapping[str, Any]) -> str:
    """Write the page about one check (`StoreReport.to_dict`), and return a sentence that says so, or why not."""
    report = parse_check_report(enveloped("check", content))
    return written_whole(path, render_page([report], contract()))[1]


def contract() -> list[ClauseText]:
    """Return every clause of the contract for stores; those without a check have no documentation."""
    checks = {clause.id: clause for clause in implemented()}
    return [
        ClauseText(
            id_,
            level_title(level),
            checks[id_].title if id_ in checks else SENTENCES[id_],
            SENTENCES[id_],
            checks[id_].documentation if id_ in checks else "",
        )
        for level, (_, ids) in LEVELS.items()
        for id_ in ids
    ]
