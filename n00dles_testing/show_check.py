"""What a check of a store shows to a person: its progress, the clauses, what was claimed, and the level."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .conformance import Capability, Outcome, StoreReport, implemented
from .conformance.by_workers import WORK
from .conformance.contract import LEVELS, level_title
from .conformance.gaps import GapState
from .conformance.grade import spans
from .conformance.sentences import SENTENCES
from .conformance.served import password_hidden
from .report.escape import one_line
from .report.terminal import (
    StepDisplay,
    clause_line,
    clause_table,
    print_findings,
    print_line,
    print_notes,
    print_table,
)
from .verdicts import ClauseResult, Finding, Verdict

__all__ = ["CheckProgress", "clause_list", "print_interrupted", "print_report"]

_OUTCOME_STYLES = {
    Outcome.FOUND: "green",
    Outcome.ABSENT: "dim",
    Outcome.BROKEN: "yellow",
    Outcome.UNUSABLE: "yellow",
    Outcome.UNTOLD: "yellow",
}


_A_PROBE = 0.3
_CHANGING = re.compile(r"0x[0-9a-f]+|run-[\w-]+|\d+")
"""Ids and numbers in the message of an error."""
_LONG_VALUE = re.compile(r"(?<!\w)('[^'…]{40})[^'…]{20,}…?")


class CheckProgress:
    """Shows how a check goes on. `results` are those of the clauses that have ended, of `count` that are asked for."""

    def __init__(self, target: str, display: StepDisplay, probes: int) -> None:
        """`probes` capabilities are probed behind the clauses."""
        self._target = password_hidden(target)
        self._display = display
        self._probes = probes
        self._at_work: list[str] = []
        self.results: list[ClauseResult] = []
        self.count = 0

    def started(self, clauses: Sequence[tuple[str, str]], note: str) -> None:
        """The store opens."""
        self.count = len(clauses)
        work = sum(WORK.get(id_, 1.0) for id_, _ in clauses) + self._probes * _A_PROBE
        self._display.start(len(clauses) + self._probes, work=work)
        self._display.say(Text(f"checking {one_line(self._target)}", "bold"))
        self._display.say(Text(one_line(note), "dim"))

    def clause_started(self, clause: str) -> None:
        """A check begins."""
        self._at_work.append(clause)
        self._display.at(", ".join(self._at_work))

    def scenario(self, number: int, title: str) -> None:
        """A scenario of it begins."""
        self._display.at(f"{', '.join(self._at_work)} {number}: {title}")

    def clause_ended(self, result: ClauseResult) -> None:
        """A check has ended."""
        self.results.append(result)
        self._at_work = [clause for clause in self._at_work if clause != result.clause]
        self._display.done(clause_line(result), important=True, work=WORK.get(result.clause, 1.0))

    def probing(self, capability: str) -> None:
        """A capability is probed."""
        self._at_work = [capability]
        self._display.at(f"probing {capability}")

    def probed(self, capability: Capability) -> None:
        """A probe has ended."""
        self._display.done(_capability_line(capability), important=not capability.ok, work=_A_PROBE)


def print_report(console: Console, report: StoreReport) -> None:
    """Print all of a report, the level last: that is where the eye is when it ends."""
    print_table(console, clause_table(_rows(report)))
    if report.capabilities:
        print_table(console, _capability_table(report.capabilities))
    _print_stories(console, report)
    console.print()
    # The first note was shown at the start.
    print_notes(console, [one_line(note) for note in [*report.notes[1:], *_said(report)]])
    print_line(console, _grade(report))
    _print_problems(console, report)


def print_interrupted(console: Console, report: StoreReport, count: int) -> None:
    """Print what was found by the clauses that have ended, of `count`: no level, since the others were not checked."""
    if report.results:
        print_table(console, clause_table(_rows(report)))
        _print_stories(console, report)
        console.print()
        print_notes(console, [gap.text for gap in report.gaps if gap.state is GapState.KNOWN])
    said = f"interrupted: {len(report.results)} of {count} clause{'' if count == 1 else 's'} checked, no level"
    print_line(console, Text(said, "bold"))


def _print_stories(console: Console, report: StoreReport) -> None:
    """Print the story of each clause that fails; of those that fail by one and the same error, the first one's.

    A store that raises at every call would else tell it twenty times.
    """
    alike: dict[str, list[str]] = {}
    for result in report.results:
        if result.findings:
            alike.setdefault(_error(result.findings[0]) or result.clause, []).append(result.clause)
    for result in report.results:
        error = _error(result.findings[0]) if result.findings else ""
        same = alike.get(error or result.clause, [])
        if result.clause not in same[:1]:
            continue
        print_findings(console, result.findings[:1])
        others = [finding for finding in result.findings[1:] if not error or _error(finding) != error]
        print_notes(console, [f"  also: {finding.story[0]}: {finding.message}" for finding in others])
        if more := len(result.findings) - 1 - len(others):
            print_notes(console, [f"  also in {more} more scenario{'' if more == 1 else 's'}, by the same error"])
        if same[1:]:
            print_notes(console, [f"  also {spans(same[1:])}, by the same error; --clause tells the story of each"])


def _error(finding: Finding) -> str:
    """Return the error that was raised, without what changes from call to call; empty if it is no error."""
    _, raised, error = finding.message.partition("raised ")
    return raised and _CHANGING.sub("…", error)


def clause_list() -> str:
    """Return every clause of the contract for stores, level by level."""
    titles = {clause.id: clause.title for clause in implemented()}
    lines = []
    for level, (_, clauses) in LEVELS.items():
        is_checked = any(id_ in titles for id_ in clauses)
        lines.append(f"{level_title(level)}{'' if is_checked else ', not checked by this release'}")
        for id_ in clauses:
            aside = "" if id_ in titles or not is_checked else " (not checked by this release)"
            lines.append(f"  {id_}  {titles.get(id_, SENTENCES[id_])}{aside}")
    return "\n".join(lines)


def _rows(report: StoreReport) -> Iterable[ClauseResult]:
    """Write the reason of a known gap in front of what a clause says, and a proof that several share once."""
    known = {gap.clause: gap.reason for gap in report.gaps if gap.state is GapState.KNOWN}
    first: dict[str, str] = {}
    for result in report.results:
        reason = _LONG_VALUE.sub(r"\1…", result.reason)
        if result.clause in known:
            reason = f"known gap: {known[result.clause]}; {reason}"
        elif result.verdict in (Verdict.NOT_APPLICABLE, Verdict.NOT_RUN) and reason in first:
            reason = f"for the same reason as {first[reason]}"
        first.setdefault(result.reason, result.clause)
        yield replace(result, reason=reason)


def _capability_table(capabilities: Sequence[Capability]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("capability")
    table.add_column("what its probe has shown", ratio=1)
    for each in capabilities:
        says = Text(each.verdict, "bold red" if not each.ok else _OUTCOME_STYLES[each.outcome])
        if each.claimed or each.outcome is not Outcome.ABSENT:
            says.append(f"\n{one_line(each.proof)}", "dim")
        table.add_row(Text(each.name), says)
    return table


def _capability_line(capability: Capability) -> Text:
    return Text(f"{capability.name:<9}  {capability.verdict}: {one_line(capability.proof)}")


def _grade(report: StoreReport) -> Text:
    """Green is for a level; that some clauses found nothing is none."""
    first, _, rest = report.grade.text.partition("\n")
    style = "bold red" if not report.ok else "bold green" if report.grade.level else "bold"
    return Text(f"{one_line(first)}\n", style).append(f"{_one_line_each(rest)}{_counted(report)}", "")


def _counted(report: StoreReport) -> str:
    """Say how many clauses were tried, and how many of them passed; what does not apply was not tried."""
    count = Counter(result.verdict for result in report.results)
    tried = len(report.results) - count[Verdict.NOT_APPLICABLE] - count[Verdict.NOT_RUN]
    said = f"of {tried} clause{'' if tried == 1 else 's'} tried, {count[Verdict.PASS]} passed in {report.seconds:.1f} s"
    aside = (
        (Verdict.NOT_APPLICABLE, "does not apply", "do not apply"),
        (Verdict.NOT_RUN, "was not run", "were not run"),
    )
    more = [f"{count[each]} {one if count[each] == 1 else many}" for each, one, many in aside if count[each]]
    return "; ".join([said, *more])


def _one_line_each(text: str) -> str:
    """Return each line of `text` made safe to show, ended by a line break."""
    return "".join(f"{one_line(line)}\n" for line in text.splitlines())


def _said(report: StoreReport) -> list[str]:
    """Return what came of what the author says, as far as it is no problem."""
    said = [gap.text for gap in report.gaps if gap.ok]
    if report.level_text and report.level_kept is not False:
        said.append(report.level_text)
    if report.unprobed:
        said.append(report.unprobed)
    if report.reader is not None and not report.reader.fault:
        records = "1 record" if report.reader.compared == 1 else f"{report.reader.compared} records"
        said.append(f"{records} compared with what the out-of-band reader {report.reader.name} saw")
    return said


def _print_problems(console: Console, report: StoreReport) -> None:
    """Say what fails the run besides the clauses, which are told already."""
    told = {f"{result.clause} {result.verdict.value}" for result in report.results}
    for problem in report.problems:
        if problem not in told:
            console.print(Text(f"fails: {one_line(problem)}", "bold red"), soft_wrap=True)
