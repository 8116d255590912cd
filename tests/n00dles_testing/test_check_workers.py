"""A check by several processes tells what one process tells, also when one of them is lost."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence
from typing import Any

import pytest

from n00dles.errors import ConfigurationError
from n00dles_testing.check_workers import _read, check_store_by_workers
from n00dles_testing.conformance import ReaderReport
from n00dles_testing.verdicts import ClauseResult, Verdict

STORE = "docs/examples/my_store.py:open_store"


class Watcher:
    """Hears what a check says, and kills all of its processes as the first scenario begins."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.count = 0
        self._has_killed = False

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None

    def started(self, clauses: Sequence[tuple[str, str]], note: str) -> None:
        self.count = len(clauses)

    def clause_started(self, clause: str) -> None:
        self.begun.append(clause)

    def scenario(self, number: int, title: str) -> None:
        if not self._has_killed:
            self._has_killed = True
            for process in multiprocessing.active_children():
                os.kill(process.pid or 0, signal.SIGKILL)

    def clause_ended(self, result: ClauseResult) -> None:
        self.ended.append(result.clause)


def test_what_lost_processes_had_in_hand_is_checked_again_and_told_in_the_order_of_the_contract() -> None:
    watcher = Watcher()

    report = check_store_by_workers(
        STORE, 2, clauses=["S05", "S04", "S12"], progress=watcher, work={"S12": 4.0, "S05": 2.0}
    )

    assert [(result.clause, result.verdict) for result in report.results] == [
        ("S04", Verdict.PASS),
        ("S05", Verdict.PASS),
        ("S12", Verdict.PASS),
    ]
    assert watcher.count == 3
    assert watcher.begun[0] == "S12"  # the longest first
    assert sorted(watcher.ended) == ["S04", "S05", "S12"]
    assert watcher.begun.count("S12") == 2
    assert "the process that checked S12 was lost (exit code -9); it was checked again" in report.notes
    assert multiprocessing.active_children() == []


def test_a_store_that_does_not_open_is_told_as_by_one_process() -> None:
    with pytest.raises(ConfigurationError, match="no_such_store"):
        check_store_by_workers("docs/examples/my_store.py:no_such_store", 2, clauses=["S05"])

    assert multiprocessing.active_children() == []


def test_what_the_processes_have_compared_is_added_up() -> None:
    nothing = ReaderReport("mine:read", 0, "nothing was compared")

    assert _read(None, []) is None
    assert _read(nothing, [ReaderReport("mine:read", 0)]) == nothing
    assert _read(nothing, [ReaderReport("mine:read", 2), ReaderReport("mine:read", 3)]) == ReaderReport("mine:read", 5)
    assert _read(nothing, [ReaderReport("mine:read", 1), ReaderReport("mine:read", 0, "it raised")]) == ReaderReport(
        "mine:read", 1, "it raised"
    )
