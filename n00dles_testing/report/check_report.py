"""A report that `check --json` has written, read again: whatever a file holds, it is one, or an error says why not.

Those of `powerloss` and `faults` are read as checks of the few clauses that they try.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..verdicts import Verdict
from .json_file import FORMAT, FORMAT_VERSION
from .other_reports import OTHERS, as_check
from .power_loss import PowerLoss

__all__ = [
    "CheckReport",
    "CheckedClause",
    "ToldFinding",
    "UnreadableReportError",
    "parse_check_report",
    "read_check_report",
]

Level = Annotated[int, Field(ge=0, le=4)]


class UnreadableReportError(Exception):
    """A file is no report of a check; the message says what it is instead."""


class _Part(BaseModel):
    """Fields that a later release adds are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ToldFinding(_Part):
    """One fault, as `Finding.to_dict` gives it; with what can be drawn of it, if that is a power loss."""

    clause: str
    message: str
    story: tuple[str, ...]
    replay: str | None
    picture: PowerLoss | None = None


class CheckedClause(_Part):
    """What became of one clause, as `ClauseResult.to_dict` gives it."""

    clause: str
    title: str
    verdict: Verdict
    reason: str
    scenarios: int
    seconds: float | None
    findings: tuple[ToldFinding, ...]


class ToldClaims(_Part):
    """What the store's author says, and whether the level was kept; None if that cannot be told."""

    level: int | None = None
    capabilities: tuple[str, ...] = ()
    source: str = ""
    level_kept: bool | None = None


class ToldCapability(_Part):
    """One capability: in a few words whether it is claimed and was found, and what shows it."""

    name: str
    verdict: str
    proof: str
    ok: bool


class ToldGap(_Part):
    """One declared gap, and what became of it."""

    clause: str
    reason: str
    text: str
    state: str
    ok: bool


class ToldReader(_Part):
    """What the out-of-band reader was good for."""

    name: str
    compared: int
    fault: str = ""


class CheckReport(_Part):
    """One check of one store: the envelope of every report, and `StoreReport.to_dict`.

    `command` has written it: "check", or one of those that try only a few clauses.
    """

    kind: Literal["check"]
    command: str = "check"
    written_by: str
    written_at: str
    python: str
    platform: str
    target: str
    ok: bool
    level: Level | None
    grade: str
    not_implemented: tuple[str, ...]
    results: Annotated[tuple[CheckedClause, ...], Field(min_length=1)]
    notes: tuple[str, ...]
    seed: int
    seconds: float
    problems: tuple[str, ...] = ()
    claims: ToldClaims = ToldClaims()
    capabilities: tuple[ToldCapability, ...] = ()
    gaps: tuple[ToldGap, ...] = ()
    reader: ToldReader | None = None


def read_check_report(path: Path) -> CheckReport:
    """Read what `check`, `powerloss` or `faults` has written with `--json`. Raises `UnreadableReportError`."""
    try:
        form = json.loads(path.read_bytes())
    except OSError as error:
        raise UnreadableReportError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableReportError(f"{path} is no report: it is not JSON ({error})") from error
    try:
        return parse_check_report(form)
    except UnreadableReportError as error:
        raise UnreadableReportError(f"{path} {error}") from error


def parse_check_report(form: Any) -> CheckReport:
    """Read the JSON form of a report. Raises `UnreadableReportError`, whose message continues the name of a file."""
    if not isinstance(form, Mapping) or form.get("format") != FORMAT:
        raise UnreadableReportError(f"is no report: its format is not {FORMAT!r}; write one with check --json")
    version = form.get("version")
    if type(version) is not int or version != FORMAT_VERSION:
        raise UnreadableReportError(
            f"is a report of format version {version!r}, written by {form.get('written_by')!r}; this "
            f"release reads version {FORMAT_VERSION}. Check the store again with this release, or use that one."
        )
    if form.get("kind") not in ("check", *OTHERS):
        raise UnreadableReportError(
            f"is a report of {form.get('kind')!r}; only those of check, {' and '.join(OTHERS)} have clauses of a store"
        )
    if not form.get("clauses" if form["kind"] == "faults" else "results") and form["kind"] != "powerloss":
        raise UnreadableReportError("is an empty report: no clause was tried, so there is nothing to show")
    try:
        told = form if form["kind"] == "check" else as_check(form)
        report = CheckReport.model_validate({**told, "command": form["kind"]})
    except ValidationError as error:
        [first, *_] = error.errors(include_url=False, include_input=False)
        place = ".".join(str(step) for step in first["loc"])
        raise UnreadableReportError(f"is a damaged report: {place}: {first['msg']}") from error
    clauses = [each.clause for each in report.results]
    if twice := next((clause for clause in clauses if clauses.count(clause) > 1), None):
        raise UnreadableReportError(f"is a damaged report: it has two results of {twice}")
    return report
