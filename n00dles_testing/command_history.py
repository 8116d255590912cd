"""`n00dles-testing history`: judge a saved history again, without running anything."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from .exits import FAILED, PASSED, UnusableError
from .histories import RULES, DamagedHistoryError, History, Judgement, Violation, diagram, judge, read_history
from .report.escape import escaped, one_line
from .report.json_file import json_text, written_whole
from .report.terminal import console_for, print_line, print_notes
from .verdicts import Verdict

__all__ = ["print_judgement", "run_history"]

_SHOWN = 3
_STYLES = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.VACUOUS: "bold magenta", Verdict.UNKNOWN: "yellow"}


def run_history(file: Path, json_file: Path | None = None) -> int:
    """Judge the history in a file, show the judgement, and return the exit code.

    Raises `UnusableError` for a file that is no history, or a damaged one.
    """
    try:
        history = read_history(file)
    except DamagedHistoryError as error:
        raise UnusableError(one_line(str(error))) from error
    except OSError as error:
        raise UnusableError(f"{file} cannot be read: {error.strerror}") from error
    judgement = judge(history)
    console = console_for()
    print_judgement(console, history, judgement, file)
    is_written = True
    if json_file is not None:
        is_written, said = written_whole(json_file, json_text("history", judgement.to_dict()))
        click.echo(said, err=not is_written)
    return PASSED if judgement.verdict is Verdict.PASS and is_written else FAILED


def print_judgement(console: Console, history: History, judgement: Judgement, file: Path) -> None:
    """Print the calls that conflict on each run, what could not be judged, and the verdict, last."""
    origin = min((call.invoked for call in history.calls), default=0)
    for violation in judgement.violations[:_SHOWN]:
        _print_violation(console, violation, origin)
    if len(judgement.violations) > _SHOWN:
        print_notes(console, [f"{len(judgement.violations) - _SHOWN} more runs failed; --json tells of all of them"])
    print_notes(console, [one_line(each) for each in judgement.told])
    print_notes(console, [one_line(f"not judged: {each}") for each in judgement.not_run])
    if judgement.verdict is not Verdict.UNKNOWN:
        print_notes(console, [one_line(f"not settled: {each}") for each in judgement.unknown])
    head = f"{judgement.calls} calls on {judgement.runs} runs, {judgement.overlap:.0%} of the saves overlapped"
    print_line(console, Text(f"{judgement.kind}  {head}", _STYLES[judgement.verdict]))
    if judgement.verdict in (Verdict.VACUOUS, Verdict.UNKNOWN):
        print_line(console, Text(one_line(judgement.reason)))
    if not judgement.verdict.ok:
        click.echo(f"again: n00dles-testing history {shlex.quote(str(file))}")


def _print_violation(console: Console, violation: Violation, origin: int) -> None:
    title = f"{violation.rule} {violation.kind}  {RULES[violation.rule]}   run: {violation.run_id}"
    print_line(console, Text(one_line(title), "bold red"))
    for line in diagram(violation.calls, origin=origin):
        console.print(Text(f"  {escaped(line)}"), soft_wrap=True)
    print_line(console, Text(one_line(f"  why  {violation.sentence}\n").removesuffix("\\n")))
    console.print()
