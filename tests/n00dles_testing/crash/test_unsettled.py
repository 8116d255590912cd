"""Pipelines that differ by themselves: what can still be told is told, and chance is not taken for a fault."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from n00dles import agent, pipeline
from n00dles_testing.crash import explore
from n00dles_testing.verdicts import Verdict


@agent
def stamp(text: str) -> str:
    return f"{text} {os.urandom(8).hex()}"


@agent
def drop_the_stamp(stamped: str) -> str:
    return stamped.partition(" ")[0]


stamped_and_not = pipeline(stamp >> drop_the_stamp, name="stamped")


def test_an_output_that_is_always_the_same_is_judged_though_a_node_before_it_differs() -> None:
    report = explore(stamped_and_not, {"text": "tea"}, mode="in-process")

    verdicts = {clause.clause: clause.verdict for clause in report.clauses}
    assert verdicts["E04"] is Verdict.PASS
    assert verdicts["E05"] is Verdict.UNKNOWN
    assert {row.same_output for row in report.rows} == {True}


@agent
def turn(counter: str) -> str:
    # The same for the first runs, as a clock of whole seconds is, and then no more.
    path = Path(counter)
    count = int(path.read_text()) if path.exists() else 0
    path.write_text(str(count + 1))
    return "early" if count < 4 else f"late {count}"


@agent
def say(turned: str) -> str:
    return f"it is {turned}"


turning = pipeline(turn >> say, name="turning")


@pytest.mark.parametrize("mode", ["fork", "in-process"])
def test_a_difference_that_undisturbed_runs_show_as_well_is_unknown_and_no_fault(mode: str, tmp_path: Path) -> None:
    report = explore(turning, {"counter": str(tmp_path / "counter")}, mode=mode)

    verdicts = {clause.clause: clause.verdict for clause in report.clauses}
    assert verdicts["E04"] is verdicts["E05"] is Verdict.UNKNOWN
    assert report.findings == ()
    assert report.verdict is Verdict.UNKNOWN
    assert "`turn` returned" in report.unknown
