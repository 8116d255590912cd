"""Recording a history on a scenario's location by several processes, and judging it: for the clauses W01 to W03."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..histories import RULES, Call, History, Judgement, diagram, judge, write_history
from ..histories.assumptions import violated_premise
from ..histories.recording import gather
from ..histories.traffic import Traffic
from .elsewhere import Elsewhere
from .expect import BrokenClause, VacuousCheck
from .recorded_traffic import load_last
from .scenario import Scenario
from .served import password_hidden

__all__ = ["Recording", "expect_no_violation", "share_of_time", "told_by_calls"]

_WHY = "no order of these calls, each within its time, is what a store would do that does one call after the other"


class Recording:
    """The journals of one history; `arguments` are what each process is told, `history` is what came in the end."""

    def __init__(self, s: Scenario, traffic: Traffic) -> None:
        self.traffic = traffic
        self._s = s
        self._folder = s.subject.fresh_folder(f"journals-{s.subject.clause}")
        self._journals: list[Path] = []

    def arguments(self, process: int, **more: Any) -> dict[str, Any]:
        """Return what a procedure of `recorded_traffic` is told in the process of this number."""
        return {"traffic": asdict(self.traffic), "process": process, "journal": self._journal(), **more}

    async def history(self, last: Elsewhere, runs: Sequence[str] = ()) -> History:
        """Have a process that has not opened the store before load every run, and return the history."""
        runs = runs or self.traffic.runs
        text = f"load_or_create() of {len(runs)} runs, when all has ended"
        await last.perform(load_last, text, runs=runs, journal=self._journal(), revisions=self.traffic.revisions)
        subject = self._s.subject
        about = {
            "store": password_hidden(subject.target.text),
            "clause": subject.clause,
            "scenario": self._s.title,
            "seed": subject.seed,
        }
        return gather(self._journals, starts_empty=True, about=about)

    def _journal(self) -> str:
        self._journals.append(self._folder / f"{len(self._journals) + 1}.jsonl")
        return str(self._journals[-1])


def expect_no_violation(s: Scenario, history: History) -> Judgement:
    """Judge a history. Raises `BrokenClause` for a violation, told by its calls, with the file that it is kept in.

    Raises `VacuousCheck` if a premise does not hold; whether it covers enough is for the caller to judge.
    """
    judgement = judge(history)
    if judgement.violations:
        violation = judgement.violations[0]
        message = f"{violation.kind.replace('_', ' ').lower()}: {violation.sentence}"
        said = (("allowed", RULES[violation.rule]), ("came", violation.kind), ("why", _WHY))
        raise told_by_calls(s, history, violation.calls, message, said)
    if (premise := violated_premise(history, history.by_run())) is not None:
        raise VacuousCheck(f"the history cannot be judged: {premise}")
    s.judged()
    return judgement


def told_by_calls(
    s: Scenario, history: History, calls: Sequence[Call], message: str, said: tuple[tuple[str, str], ...]
) -> BrokenClause:
    """Return a finding told by these calls of a history, as a diagram, with the file that holds the whole history.

    `said` is what was allowed, what came, and why.
    """
    s.judged()
    path = _kept(s.subject.clause, history)
    lines = diagram(calls, origin=min(call.invoked for call in history.calls))
    return BrokenClause(
        message,
        (
            *(("" if number else "calls", line) for number, line in enumerate(lines)),
            ("history", f"{path} holds all {len(history.calls)} calls"),
            ("again", f"n00dles-testing history {path}"),
            *said,
        ),
    )


def share_of_time(history: History) -> float:
    """Return for which part of the time in which calls were going on there were calls of two processes at once."""
    changes = []
    for call in history.calls:
        if call.returned is not None and call.client != "last":
            changes += [(call.invoked, 1, call.client), (call.returned, -1, call.client)]
    going_on: dict[str, int] = {}
    any_seconds = two_seconds = before = 0
    for at, change, client in sorted(changes):
        busy = {name for name, count in going_on.items() if count}
        any_seconds += (at - before) * bool(busy)
        two_seconds += (at - before) * (len(busy) > 1)
        process = client.partition("c")[0]
        going_on[process] = going_on.get(process, 0) + change
        before = at
    return two_seconds / any_seconds if any_seconds else 0.0


def _kept(clause: str, history: History) -> Path:
    """Write a history where it is found when the check is over: in the folder that N00DLES_HISTORIES names, if any."""
    folder = os.environ.get("N00DLES_HISTORIES") or None
    if folder is not None:
        os.makedirs(folder, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f"n00dles-history-{clause}-", suffix=".jsonl", dir=folder)
    os.close(descriptor)
    write_history(Path(name), history)
    return Path(name)
