"""What the command `powerloss` shows: its progress, a table of the models, and a story of each kind of fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .conformance.losing_power import PowerLossOfStore
from .conformance.power_safe import REQUIRED, STRICTEST
from .conformance.traced import token_of
from .powerloss.models import MODELS
from .report.escape import one_line
from .report.terminal import StepDisplay, print_line, print_notes, print_table

__all__ = ["PowerLossProgress", "print_report"]

_SHOWN_LOSSES = 6


class PowerLossProgress:
    """Shows how it goes on."""

    def __init__(self, target: str, display: StepDisplay) -> None:
        self._display = display
        display.say(Text(f"losing the power of {one_line(target)}", "bold"))

    def on_state(self, model: str, tried: int) -> None:
        """A state was judged."""
        self._display.at(f"{model}: {tried} states of the disk tried")


def print_report(console: Console, found: PowerLossOfStore) -> None:
    """Print the table, the story of each kind of fault under each model, and what follows, last."""
    if found.note:
        print_notes(console, [one_line(found.note)])
    if found.reason:
        print_line(console, Text(f"not tried: {one_line(found.reason)}", "bold yellow"))
        return
    print_table(console, _table(found))
    for report in found.models:
        for finding in report["findings"]:
            _print_story(console, found.workload, report, finding, "")
    for each in found.failed_syncs:
        for report in each["models"]:
            for finding in report["findings"]:
                _print_story(console, found.again, report, finding, f", {each['sync']} having failed with EIO")
    print_notes(
        console,
        [
            f"{len(found.workload)} calls of the store made {found.operations} changes and {found.syncs} syncs; "
            f"required are {', '.join(REQUIRED)}; {STRICTEST} is a grade above",
        ],
    )
    tried = sum(report["tried"] for report in found.models)
    tried += sum(report["tried"] for each in found.failed_syncs for report in each["models"])
    count = len({finding["kind"] for _, finding in found.findings})
    said = f"{count} kind{'' if count == 1 else 's'} of fault" if count else "no fault found"
    style = "bold green" if found.ok else "bold red"
    print_line(console, Text(f"{said}: {tried} states of the disk tried in {found.seconds:.1f} s", style))
    print_notes(console, ["the clauses P01, P02 and P03, of level 3 (power-safe)"])


def _table(found: PowerLossOfStore) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("model", no_wrap=True)
    table.add_column("of a disk", ratio=1)
    table.add_column("states tried", justify="right")
    table.add_column("findings")
    for name, about, tried, findings in _rows(found):
        said = ", ".join(findings) or "none"
        table.add_row(Text(name), Text(about), tried, Text(said, "bold red" if findings else "green"))
    return table


def _rows(found: PowerLossOfStore) -> Iterator[tuple[str, str, str, list[str]]]:
    for report in found.models:
        findings = [f"{finding['kind']} in {finding['count']}" for finding in report["findings"]]
        at_least = f" of at least {report['at_least']}" if report["at_least"] is not None else ""
        yield report["model"], MODELS[report["model"]].about, f"{report['tried']}{at_least}", findings
    if found.failed_syncs:
        reports = [report for each in found.failed_syncs for report in each["models"]]
        kinds = [finding["kind"] for report in reports for finding in report["findings"]]
        findings = [f"{kind} after {kinds.count(kind)}" for kind in dict.fromkeys(kinds)]
        about = f"{len(found.failed_syncs)} syncs fail, one after the other"
        yield "failed sync", about, str(sum(report["tried"] for report in reports)), findings


def _print_story(
    console: Console, workload: tuple[str, ...], report: dict[str, Any], finding: dict[str, Any], after: str
) -> None:
    print_line(console, Text(f"\n{finding['kind']}  {report['model']}{one_line(after)}", "bold red"))
    lines = []
    for number, title in enumerate(workload):
        token = token_of(number)
        if token in finding["invoked"]:
            end = "acknowledged" if token in finding["acknowledged"] else "not acknowledged"
            lines.append(f"call {token}   {title} → {end}")
    lines += [f"lost     {words}" for words in finding["lost"][:_SHOWN_LOSSES]]
    lines.append(f"on disk  {', '.join(finding['on_disk']) or 'no file'}")
    lines += [f"found    {finding['message']}", f"why      {finding['words']}"]
    print_notes(console, [f"  {one_line(line)}" for line in lines])
