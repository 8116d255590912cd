"""`n00dles-testing report`, and the `--html` of `check`, `powerloss` and `faults`: from reports to one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from .conformance import implemented
from .conformance.contract import LEVELS, level_title
from .conformance.grade import grade
from .conformance.sentences import SENTENCES
from .exits import FAILED, PASSED
from .report.check_report import CheckReport, UnreadableReportError, parse_check_report, read_check_report
from .report.json_file import enveloped, json_text, written_whole
from .report.page_view import ClauseText
from .verdicts import ClauseResult

__all__ = ["contract", "page_of", "run_report", "write_reports"]


def run_report(files: Sequence[Path], html_file: Path) -> int:
    """Merge the JSON reports of several stores into one page, and return the exit code.

    Raises `click.UsageError` for a file that is no report of `check`, `powerloss` or `faults`, or of another format
    version, or named twice.
    """
    from .report.html_page import render_page

    places = [file.resolve() for file in files]
    for number, file in enumerate(files):
        if places[number] in places[:number]:
            raise click.UsageError(f"{file} is named twice; each report is one row of the page, so name it once")
    try:
        reports = [_read(file) for file in files]
    except UnreadableReportError as error:
        raise click.UsageError(str(error)) from error
    is_written, said = written_whole(html_file, render_page(reports, contract()))
    click.echo(said, err=not is_written)
    return PASSED if is_written else FAILED


def _read(file: Path) -> CheckReport:
    """Read a report whose level follows from its results. Raises `UnreadableReportError`."""
    report = read_check_report(file)
    results = [
        ClauseResult(each.clause, each.title, each.verdict, each.reason, each.scenarios, each.seconds or 0.0)
        for each in report.results
    ]
    level = grade(results).level
    if report.level is not None and report.level > (level or 0):
        shown = "no level" if level is None else f"level {level}"
        raise UnreadableReportError(
            f"{file} says level {report.level}, and its results show {shown}: it was changed, or is of a release with "
            "another contract. Check the store again"
        )
    return report


def page_of(content: Mapping[str, Any], kind: str = "check") -> str:
    """Return the page about one check (`StoreReport.to_dict`), or one report of `powerloss` or `faults`."""
    from .report.html_page import render_page

    return render_page([parse_check_report(enveloped(kind, content))], contract())


def write_reports(
    kind: str, content: Mapping[str, Any], json_file: Path | None, html_file: Path | None
) -> tuple[bool, list[str]]:
    """Write what is asked for; return whether all of it could be written, and a sentence about each."""
    reports = []
    if json_file is not None:
        reports.append(written_whole(json_file, json_text(kind, content)))
    if html_file is not None:
        reports.append(written_whole(html_file, page_of(content, kind)))
    return all(is_written for is_written, _ in reports), [said for _, said in reports]


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
