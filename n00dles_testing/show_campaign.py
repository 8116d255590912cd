"""What `n00dles-testing executor` shows: progress, the table of all clauses, and the story of every fault."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.text import Text

from .campaign import CampaignError, CampaignProgress, CampaignReport, CampaignToken, prove, replay
from .crash.tokens import BadTokenError
from .exits import FAILED, INTERRUPTED, PASSED, UnusableError
from .report.json_file import json_text, written_whole
from .report.terminal import StepDisplay, clause_table, console_for, print_findings, print_notes
from .verdicts import Verdict
from .watched import SilentEndError, can_watch, watched

__all__ = ["run_campaign_replay", "run_executor"]

_LOG_SECONDS = 10.0
"""How often a log that is no terminal gets a line."""
_MOST_REASONS = 3
_MOST_SECONDS_OF_SILENCE = 180.0
"""Longer than any scenario, import or confirmation takes."""


def run_executor(
    target: str | None,
    *,
    examples: int | None,
    seed: int,
    budget: float | None,
    only: tuple[str, ...],
    confirm: bool,
    json_file: Path | None,
    told: Callable[[], None] = lambda: None,
) -> int:
    """Prove an executor, show what came, and return the exit code. `told` is called at each progress.

    Raises `UnusableError`.
    """
    console = console_for()
    try:
        with _asked_to_stop() as stopped, StepDisplay(console, "scenarios") as display:
            report = prove(
                target,
                examples=examples,
                seed=seed,
                budget=budget,
                only=only,
                confirm=confirm,
                on_progress=_Shown(display, stopped, told),
            )
    except CampaignError as error:
        raise UnusableError(str(error)) from error
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    return _end(report, json_file)


def run_watched(target: str | None, **options: Any) -> int:
    """Like `run_executor`, for an executor of somebody's own: it may end its process, or block it."""
    if not can_watch():
        return run_executor(target, **options)

    def work(told: Callable[[], None]) -> int:
        try:
            return run_executor(target, **options, told=told)
        except click.ClickException as error:
            error.show()
            return error.exit_code

    try:
        return watched(work, silence=_MOST_SECONDS_OF_SILENCE)
    except SilentEndError as error:
        message = f"{target} cannot be judged: {error}"
        if not error.has_begun:
            raise UnusableError(message) from error
        click.echo(f"FAIL  {message}", err=True)
        return FAILED


def run_campaign_replay(text: str) -> int:
    """Live the scenario of a campaign's token again, tell its story, and return the exit code."""
    try:
        token = CampaignToken.decode(text)
        report = replay(token)
    except (BadTokenError, CampaignError) as error:
        raise UnusableError(str(error)) from error
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    return _end(report, None)


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """Have Ctrl-C end the campaign between two scenarios: in one, an executor could take it for a part of the test."""
    stopped = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        if stopped.is_set():  # twice is impatience
            os._exit(INTERRUPTED)
        stopped.set()

    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)


def _end(report: CampaignReport, json_file: Path | None) -> int:
    console = console_for()
    console.print(clause_table(clause for clause in report.clauses if clause.verdict is not Verdict.NOT_RUN))
    print_findings(console, report.findings)
    console.print()
    console.print(_summary(report))
    print_notes(console, [*_about(report), *report.notes])
    is_written = True
    if json_file is not None:
        is_written, said = written_whole(json_file, json_text("executor", report.to_dict()))
        print_notes(console, [said])
    return PASSED if report.ok and is_written else FAILED


def _summary(report: CampaignReport) -> Text:
    return Text(report.summary, "bold green" if report.ok else "bold red")


def _about(report: CampaignReport) -> list[str]:
    told = []
    left_out = sum(clause.verdict is Verdict.NOT_RUN for clause in report.clauses)
    if left_out:
        told.append(f"clauses that were not asked for: {left_out}")
    if report.disturbances:
        counts = ", ".join(f"{how} {count}" for how, count in report.disturbances.items())
        told.append(f"lives were disturbed: {counts}")
    if report.vacuous:
        reasons = ", ".join(list(report.vacuous)[:_MOST_REASONS])
        more = ", …" if len(report.vacuous) > _MOST_REASONS else ""
        told.append(f"{sum(report.vacuous.values())} scenarios tried nothing, and do not count: {reasons}{more}")
    return told


class _Shown:
    """Shows the progress of a campaign: a bar on a terminal, a line now and then in a log."""

    def __init__(self, display: StepDisplay, stopped: threading.Event, told: Callable[[], None]) -> None:
        self._display = display
        self._stopped = stopped
        self._told = told
        self._done = 0
        self._total: int | None = None
        self._broken: tuple[str, ...] = ()
        self._said = time.monotonic()
        self._telling = ""

    def __call__(self, progress: CampaignProgress) -> None:
        self._told()
        if self._stopped.is_set():
            raise KeyboardInterrupt
        if progress.total is not None and progress.total != self._total:
            self._total = progress.total
            self._display.start(progress.total)
        self._display.at(progress.doing)
        self._display.advance(progress.done - self._done)
        self._done = progress.done
        for clause in sorted(set(progress.broken) - set(self._broken)):
            self._display.say(Text(f"{clause} is broken, first after {progress.done} scenarios", "bold red"))
        self._broken = progress.broken
        if not self._display.is_live and progress.is_telling:
            if progress.doing != self._telling:
                self._telling = progress.doing
                self._display.say(Text(progress.doing))
            return
        if not self._display.is_live and time.monotonic() - self._said > _LOG_SECONDS:
            self._said = time.monotonic()
            of = "" if progress.total is None else f" of {progress.total}"
            self._display.say(Text(f"{progress.done}{of} scenarios, clauses broken: {len(progress.broken)}"))
