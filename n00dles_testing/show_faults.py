"""What the command `faults` shows: its progress, and a table of the deeds and what was done to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .conformance.disturbing import DisturbanceReport
from .conformance.served import password_hidden
from .conformance.tally import Tally
from .report.escape import one_line
from .report.terminal import StepDisplay, clause_line, print_findings, print_line, print_notes, print_table
from .verdicts import ClauseResult, Finding, Verdict, overall

__all__ = ["FaultsProgress", "print_report"]

_LONG_NAME = re.compile(r"[0-9a-f]{32,}")
"""What many stores call the file of a run: its id in hex, or a digest of it."""
_SHOWN_OF_A_NAME = 8
_VARYING = re.compile(r'"(?:[^"\\]|\\.)*"|[0-9a-f]{32,}|\d+')
_DONE = {"C03": "killed", "C04": "failed"}
_STYLES = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.VACUOUS: "bold magenta"}


class FaultsProgress:
    """Shows how it goes on: what is tried now, and a line for each deed that is done."""

    def __init__(self, target: str, display: StepDisplay, deeds: int) -> None:
        """`deeds` is how many there are at most."""
        self._target = target
        self._display = display
        self._deeds = deeds
        self._clause = ""

    def started(self, clauses: Sequence[tuple[str, str]], note: str) -> None:
        """The store opens."""
        self._display.start(self._deeds)
        self._display.say(Text(f"disturbing {one_line(password_hidden(self._target))}", "bold"))
        self._display.say(Text(one_line(note), "dim"))

    def clause_started(self, clause: str) -> None:
        """Kills, or faults, begin."""
        self._clause = clause
        self._display.at(f"{clause}: without a disturbance at first")

    def scenario(self, number: int, title: str) -> None:
        """One disturbance."""
        self._display.at(f"{self._clause} {number}: {title}")

    def tally(self, tally: Tally) -> None:
        """A deed is done."""
        line = Text(f"{one_line(tally.deed)}: {_DONE[tally.clause]} {tally.tried} of {tally.moments}  ")
        self._display.done(line.append(tally.verdict.value, _STYLES.get(tally.verdict, "yellow")))

    def clause_ended(self, result: ClauseResult) -> None:
        """The table and the last lines tell it."""

    def probing(self, capability: str) -> None:
        """No capability is probed."""

    def probed(self, capability: object) -> None:
        """No capability is probed."""


def print_report(console: Console, report: DisturbanceReport) -> None:
    """Print the table, the story of each fault, and what came of it last."""
    if report.tallies:
        print_table(console, _table(report.tallies))
    for result in report.results:
        told = _one_of_each_kind(result.findings)
        print_findings(console, map(_with_short_names, told))
        if left_out := len(result.findings) - len(told):
            print_line(console, Text(f"  and {left_out} more for the same reason; --json FILE has each of them", "dim"))
    console.print()
    print_notes(console, [one_line(note) for note in report.notes[1:]])
    for result in report.results:
        print_line(console, clause_line(result))
        if result.reason:
            print_line(console, Text(f"     {one_line(result.reason)}", "dim"))
    tried = sum(each.tried for each in report.tallies)
    style = "bold green" if report.ok else "bold red"
    said = f"{one_line(report.conclusion)} ({tried} kills and faults in {report.seconds:.1f} s)"
    print_line(console, Text(said, style))


def _one_of_each_kind(findings: Iterable[Finding]) -> list[Finding]:
    """Return the first of those that the same is wrong with, at whichever call it shows."""
    kinds: dict[str, Finding] = {}
    for finding in findings:
        why = next((line for line in finding.story if line.startswith("why ")), finding.message)
        kinds.setdefault(_VARYING.sub("*", why), finding)
    return list(kinds.values())


def _with_short_names(finding: Finding) -> Finding:
    return replace(finding, message=_short(finding.message), story=tuple(map(_short, finding.story)))


def _short(text: str) -> str:
    return _LONG_NAME.sub(lambda name: f"{name[0][:_SHOWN_OF_A_NAME]}…", text)


def _table(tallies: Iterable[Tally]) -> Table:
    rows: dict[str, dict[str, Tally]] = {}
    for tally in tallies:
        rows.setdefault(tally.deed, {})[tally.clause] = tally
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("call of the store")
    for title in ("system calls", *_DONE.values()):
        table.add_column(title, justify="right")
    table.add_column("verdict", no_wrap=True)
    for deed, found in rows.items():
        calls = [each.calls for each in found.values()]
        traced = "not traced" if calls[0] is None else str(max(each or 0 for each in calls))
        verdict = overall(each.verdict for each in found.values())
        table.add_row(
            Text(one_line(deed)),
            traced,
            *(_of(found.get(clause)) for clause in _DONE),
            Text(verdict.value, _STYLES.get(verdict, "yellow")),
        )
    return table


def _of(tally: Tally | None) -> str:
    return "-" if tally is None else f"{tally.tried} of {tally.moments}"
