"""The torture in small, for each store, and what it must catch."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.torture.flow import expected
from conformance.torture.judge import Ended, Judge
from conformance.torture.places import PLACES, why_not
from conformance.torture.torment import Plan, Torment, torment
from n00dles_testing.crash.ledger import Entry
from n00dles_testing.verdicts import Verdict

SMALL = Plan(runs=16, workers=3, concurrency=3, kill_every=0.4, node_seconds=0.1)


def tortured(plan: Plan, name: str, folder: Path) -> Torment:
    with PLACES[name](folder) as place:
        return asyncio.run(torment(plan, place, folder))


def told(done: Torment) -> str:
    """Return everything that somebody wants to know of a failure."""
    judge = done.judge
    stories = ["\n".join([str(fault), *judge.story(fault)]) for fault in judge.faults[:2]]
    return "\n".join([str(judge.verdict(server_kills=done.server_kills_wanted)), *stories])


@pytest.mark.parametrize("name", PLACES)
def test_every_run_ends_and_no_acknowledged_call_is_made_again(name: str, tmp_path: Path) -> None:
    if reason := why_not(name):
        pytest.skip(f"NOT RUN: {reason}")

    done = tortured(SMALL, name, tmp_path)

    assert done.judge.verdict(server_kills=done.server_kills_wanted)[0] is Verdict.PASS, told(done)
    assert done.judge.kills_in_a_node > 0
    assert done.judge.server_kills == (0 if name == "sqlite" else 2)


@pytest.mark.parametrize(
    ("mutant", "fault"),
    [
        ("leases_of_one_process", "began to work on it while worker"),
        ("acknowledged_before_commit", "was called again after its save was acknowledged"),
    ],
)
def test_a_broken_store_is_caught(mutant: str, fault: str, tmp_path: Path) -> None:
    plan = replace(SMALL, target=f"conformance.torture.mutants.{mutant}:flow")

    done = tortured(plan, "sqlite", tmp_path)

    assert done.judge.verdict(server_kills=0)[0] is Verdict.FAIL
    assert fault in done.judge.faults[0].what
    assert done.judge.story(done.judge.faults[0])


def judged(*happened: tuple[Any, ...]) -> Judge:
    """Return what the judge thinks of entries `(kind, worker, data)`."""
    judge = Judge()
    for at, (kind, worker, data) in enumerate(happened):
        judge.note(Entry(kind, worker, 0, float(at), data))
    return judge


BEGINS = {"run": "a", "number": 1, "completed": []}
CALL = {"run": "a", "node": "fetch"}
SAVED = {"run": "a", "nodes": ["fetch"]}
KILLED_IN_A_CALL = (("life_start", 1, BEGINS), ("call_start", 1, CALL), ("kill", 0, {"worker": 1}))


def test_a_call_that_a_kill_has_met_may_be_made_again() -> None:
    judge = judged(*KILLED_IN_A_CALL, ("life_start", 2, BEGINS), ("call_start", 2, CALL))

    assert judge.faults == []
    assert (judge.kills_in_a_node, judge.calls, judge.repeated) == (1, 2, 1)


def test_what_a_later_life_has_read_counts_as_acknowledged() -> None:
    again = {**BEGINS, "completed": ["fetch"]}

    judge = judged(*KILLED_IN_A_CALL, ("life_start", 2, again), ("call_start", 2, CALL))

    assert [fault.what for fault in judge.faults] == ["node 'fetch' was called again after its save was acknowledged"]
    assert judge.story(judge.faults[0]) == [
        "  0.000 s  worker 1  life 1 begins; completed: nothing",
        "  1.000 s  worker 1  fetch is called",
        "  2.000 s  worker 1  SIGKILL",
        "  3.000 s  worker 2  life 1 begins; completed: fetch",
        "  4.000 s  worker 2  fetch is called",
    ]


def test_lives_that_a_kill_has_ended_before_they_got_on_are_counted() -> None:
    killed = (("life_start", 1, BEGINS), ("kill", 0, {"worker": 1}))
    got_on = (("life_start", 3, BEGINS), ("saved", 3, SAVED), ("kill", 0, {"worker": 3}))

    assert judged(*killed, ("life_start", 2, BEGINS), ("kill", 0, {"worker": 2})).stalls == {"a": 2}
    assert judged(*killed, *got_on).stalls == {"a": 0}


def test_two_living_processes_with_one_run_are_a_fault() -> None:
    judge = judged(("life_start", 1, BEGINS), ("life_start", 2, BEGINS))

    assert [fault.what for fault in judge.faults] == ["worker 2 began to work on it while worker 1 still did"]


def test_a_run_may_be_taken_over_from_a_process_that_has_let_it_go() -> None:
    ended = {"run": "a", "how": "failed", "error": "the store is away"}

    assert judged(("life_start", 1, BEGINS), ("outcome", 1, ended), ("life_start", 2, BEGINS)).faults == []


def test_what_the_store_has_lost_or_made_wrong_is_told() -> None:
    judge = judged(("saved", 1, {"run": "a", "nodes": ["report"]}))
    right = {run: expected(run) for run in "abcd"}

    judge.close(
        "abcd",
        {
            "a": Ended("running", 1, {"fetch": "a fetched"}),
            "b": Ended("finished", 1, {**right["b"], "fetch": "x"}),
            "c": Ended("finished", 1, right["c"]),
        },
        right,
    )

    assert [(fault.run, fault.what.partition(":")[0]) for fault in judge.faults] == [
        ("a", "it has not come to its end"),
        ("a", "the save of node 'report' was acknowledged, and is lost"),
        ("b", "its outputs are wrong"),
        ("d", "it is lost"),
    ]


def test_a_torture_whose_kills_have_met_nothing_is_vacuous() -> None:
    idle = judged(("kill", 0, {"worker": 1}), ("server_kill", 0, {}))
    busy = judged(*KILLED_IN_A_CALL, ("server_kill", 0, {}))

    assert idle.verdict(server_kills=0) == (Verdict.VACUOUS, "no worker was killed in the middle of a node")
    assert busy.verdict(server_kills=1) == (
        Verdict.VACUOUS,
        "the server was killed 0 and not 1 times while runs were at work",
    )
    assert busy.verdict(server_kills=0)[0] is Verdict.PASS
