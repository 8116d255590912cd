"""`n00dles-testing explore`: from what is typed to what is shown."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from n00dles.errors import N00dlesError

from .crash import ExplorationError, ExplorationReport, ExplorationRow, Progress, explore
from .crash.points import How
from .crash.telling import CLAUSES_PAGE
from .crash.tokens import BadTokenError, Token
from .exits import FAILED, INTERRUPTED, PASSED, UnusableError
from .findings import few
from .llm import LLMServer
from .report.escape import one_line
from .report.json_file import json_text, written_whole
from .report.rows import ReportRow
from .report.terminal import (
    StepDisplay,
    clause_table,
    console_for,
    exploration_line,
    exploration_table,
    print_findings,
    print_notes,
)
from .terminated import ENDING

__all__ = ["run_explore", "run_replay"]

_SIGKILL = 9
_AGENTS = {How.INTERRUPT: "SIGINT", How.CANCEL: "cancel", How.TIMEOUT: "timeout"}
_WITHOUT_FAKE_LLM = "explore with --llm off, if the pipeline calls no model or calls one that answers everywhere"
_AGAIN = "Re-called: completed nodes that were called again, which must be 0."
_PAID = f"Paid calls: what the LLM server was paid for over all lives. {_AGAIN}"
_CALLED = f"Calls: of all nodes, over all lives. {_AGAIN}"


def run_explore(
    target: str,
    inputs: dict[str, Any],
    fake_llm: bool,
    json_file: Path | None,
    options: Mapping[str, Any],
    *,
    show_all: bool,
) -> int:
    """Explore a pipeline, show what came, and return the exit code. Raises `UnusableError`."""
    console = console_for()
    report = _explored(console, f"exploring {target}", fake_llm, {"target": target, "inputs": inputs, **options})
    if report is None:
        return INTERRUPTED
    _show(console, report, show_all=show_all)
    is_written = True
    if json_file is not None:
        is_written, said = written_whole(json_file, json_text("explore", report.to_dict()))
        print_notes(console, [said])
    return PASSED if report.ok and is_written else FAILED


def run_replay(text: str, fake_llm: bool) -> int:
    """Live the scenario of a token again, tell its story, and return the exit code. Raises `UnusableError`."""
    try:
        token = Token.decode(text)
    except BadTokenError as error:
        raise UnusableError(str(error)) from error
    console = console_for()
    where = ", then ".join(point.label for point in token.plan) or "undisturbed"
    # An undisturbed run is judged in every exploration; the least of them has one kill.
    what = {"plans": [token.plan]} if token.plan else {"budget": 1}
    scenario = {"target": token.target, "inputs": token.inputs, "store": token.store, "mode": token.mode, **what}
    title = f"replaying {token.target} {json.dumps(token.inputs, ensure_ascii=False)}: {where}"
    folders = token.import_from_its_folders()
    try:
        report = _explored(console, title, fake_llm, scenario)
    except UnusableError as error:
        raise UnusableError(
            f"{error.message}\nIt was looked for from {' and '.join(folders)}. A token works in the folder in which it "
            "was printed, in any checkout of the same code; PYTHONPATH=src adds a folder to import from."
        ) from error
    if report is None:
        return INTERRUPTED
    _show(console, report, show_all=True)
    for row in report.rows:
        console.print(Text(f"\n{row.verdict}  {row.label}{f': {row.reason}' if row.reason else ''}", "bold"))
        print_notes(console, [f"  {line}" for line in row.story])
    return PASSED if report.ok else FAILED


def _explored(console: Console, title: str, fake_llm: bool, options: Mapping[str, Any]) -> ExplorationReport | None:
    """Explore with progress on the console; None if it was interrupted. Raises `UnusableError`."""
    try:
        with ExitStack() as stack:
            stack.enter_context(_ended_by_sigterm())
            display = stack.enter_context(StepDisplay(console, "crash points"))
            display.say(Text(one_line(title), "bold"))
            display.at("running it undisturbed")
            wiring: dict[str, Any] = {}
            if fake_llm:
                server = stack.enter_context(LLMServer())
                wiring = {
                    "environment": server.environment_of,
                    "paid": lambda scenario: len(server.journal(scenario)),
                }
            given = {name: value for name, value in options.items() if value not in (None, ())}
            if (address := given.pop("dask", None)) is not None:
                from .on_dask import workers_of

                needed = "the fake LLM server" if fake_llm else ""
                given["workers"] = stack.enter_context(
                    workers_of(address, needs_this_host=needed, instead=_WITHOUT_FAKE_LLM)
                )
            return explore(**given, **wiring, on_progress=_Shown(display))
    except (ExplorationError, N00dlesError) as error:
        raise UnusableError(str(error)) from error
    except KeyboardInterrupt:
        click.echo("interrupted; every process that was started is ended", err=True)
        return None


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Have what ends this process do so as an exception does, so that processes and folders are cleared away."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # One that is ignored, as by nohup, stays so.
    before = {number: signal.getsignal(number) for number in ENDING if signal.getsignal(number) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show(console: Console, report: ExplorationReport, *, show_all: bool) -> None:
    paying = bool(report.paid)
    labels = Counter(row.label for row in report.rows)
    rows = [_row(row, paying, row.label if labels[row.label] == 1 else row.path) for row in report.rows]
    console.print(exploration_table(rows, calls="paid calls" if paying else "calls"))
    print_notes(console, [_PAID if paying else _CALLED])
    console.print(clause_table(report.clauses))
    for clause in report.clauses:
        shown, left = (clause.findings, 0) if show_all else few(clause.findings)
        print_findings(console, shown)
        if left:
            print_notes(
                console, [f"\n  … and {left} more like {'it' if len(shown) == 1 else 'these'} (--all shows them)"]
            )
    console.print()
    if report.findings:
        print_notes(console, [f"{CLAUSES_PAGE}\n"])
    console.print(_summary(report))
    if report.unknown:
        console.print(Text(one_line(f"{report.unknown}."), "yellow"))
    print_notes(console, report.notes)


class _Shown:
    """Shows the progress of an exploration."""

    def __init__(self, display: StepDisplay) -> None:
        self._display = display
        self._total = 0

    def __call__(self, progress: Progress) -> None:
        if progress.row is None:
            return
        if progress.total != self._total:  # what a resumed run shows may be killed as well
            self._total = progress.total
            self._display.start(progress.total)
        row = _row(progress.row, bool(progress.row.paid), progress.row.label)
        self._display.at(row.point)
        self._display.done(exploration_line(row), important=not row.verdict.ok)


def _row(row: ExplorationRow, paying: bool, label: str) -> ReportRow:
    """Where no model is paid, the calls of nodes are counted instead."""
    return ReportRow(
        point=label,
        killed_by=_death(row),
        on_disk=row.on_disk,
        disk_note=row.disk_note,
        paid_calls=row.paid if paying and row.paid is not None else row.calls,
        re_calls=len(row.recalled),
        same_output=row.same_output,
        verdict=row.verdict,
    )


def _death(row: ExplorationRow) -> str:
    if row.point.how is not How.KILL:
        return _AGENTS.get(row.point.how, "store") if row.disturbed else ""
    if row.simulated:
        return "exception"
    return "" if row.killed_by is None else signal.Signals(row.killed_by).name


def _summary(report: ExplorationReport) -> Text:
    kills = [row for row in report.rows if row.point.how is How.KILL]
    others = [row for row in report.rows if row.point.how is not How.KILL]
    killed = sum(row.killed_by == _SIGKILL or row.simulated for row in kills)
    recalled = sum(len(row.recalled) for row in report.rows)
    how = "ended by a simulated death" if report.mode == "in-process" else "killed by SIGKILL"
    parts = [f"{killed} of {len(kills)} crash points {how}"] if kills or not others else []
    if others:
        kinds = Counter(str(row.point.how) for row in others)
        told = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        parts.append(f"{sum(row.disturbed for row in others)} of {len(others)} disturbed otherwise ({told})")
    left_out = f"; {report.left_out} of {report.points} points were not tried" if report.left_out else ""
    count = report.paid or report.calls
    counted = f"{'pays for' if report.paid else 'makes'} {count} call{'' if count == 1 else 's'}"
    moment = "the kill" if kills else "that moment"
    ran = f"; bodies ran {report.bodies} times" if report.bodies else ""
    usual = f"undisturbed it {counted}; a call that is in flight at {moment} is made again{ran}{left_out}"
    return Text(
        f"{', '.join(parts)}, {recalled} re-calls in {report.seconds:.1f} s "
        f"(store: {report.store}, mode: {report.mode})\n{usual}",
        "bold green" if report.ok else "bold red",
    )
