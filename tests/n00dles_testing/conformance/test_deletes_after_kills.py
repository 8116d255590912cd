"""A run is deleted after a kill: the moments at which its text is on disk are met, and nothing is left there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from n00dles_testing.conformance.buffered import without_runs
from n00dles_testing.conformance.deeds import nothing_tried
from n00dles_testing.conformance.disturbing import deeds_of, disturb_store
from n00dles_testing.conformance.left_by_a_kill import (
    DELETED_AFTER_A_KILL,
    _ends_of_writes,
    nothing_is_left_by_a_kill,
)
from n00dles_testing.conformance.moments import Calls, kills
from n00dles_testing.conformance.nursery import Nursery
from n00dles_testing.conformance.subject import StoreSubject
from n00dles_testing.conformance.tally import Tally
from n00dles_testing.conformance.target import StoreTarget
from n00dles_testing.tracing import why_not
from n00dles_testing.verdicts import Verdict

STREAMS = "n00dles_testing.conformance.mutants.c03:StreamsWhatIsAside"
DUMPED = ["open", *["file.write"] * 60, "file.flush", "os.fsync", "os.replace"]
"""What Python tells of when `json.dump` writes a file that is then synced and renamed."""


class Silent:
    def scenario(self, number: int, title: str) -> None: ...

    def step(self, number: int, text: str) -> None: ...


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[StoreSubject]:
    nursery = Nursery(STREAMS)
    memory = {"nursery": nursery, "durability": (True, [], True)}
    yield StoreSubject(
        StoreTarget.parse(STREAMS), tmp_path, clause="C03", seed=0, nonce="test", listener=Silent(), memory=memory
    )
    nursery.close()


def test_of_a_run_of_buffered_writes_a_few_are_tried_and_of_all_else_each_one() -> None:
    assert without_runs(DUMPED) == [1, 2, 22, 41, 61, 62, 63, 64]
    assert without_runs(["os.write"] * 9) == list(range(1, 10))
    assert without_runs([]) == []


def test_the_deep_profile_tries_each_buffered_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("N00DLES_PROFILE", "deep")

    assert without_runs(DUMPED) == list(range(1, 65))


def test_each_kill_around_buffered_writes_is_among_those_that_python_tells_of() -> None:
    found = kills(Calls(None, {"kill": DUMPED, "fail": [], "lose": []}))

    assert [moment.disturbance["number"] for moment in found] == [2, 22, 41, 61, 62, 63, 64]


def test_a_text_is_looked_for_at_the_end_of_the_writes_to_a_file(subject: StoreSubject) -> None:
    kinds = ["open a", "write a", "write a", "write b", "sync b", "write b", "name b"]
    calls = [dict(zip(("kind", "path"), each.split(), strict=True), name="call") for each in kinds]

    found = _ends_of_writes(subject, Calls(calls, {"kill": [], "fail": [], "lose": []}))

    assert [moment.disturbance["number"] for moment in found] == [2, 4, 6, 7]


@pytest.mark.parametrize("seed", [0, 1])
def test_what_a_delete_leaves_of_a_streamed_file_is_found_where_nothing_can_be_traced(
    seed: int, subject: StoreSubject
) -> None:
    heard: list[Tally] = []
    subject._memory["tracing"] = "this system has no ptrace"
    subject.on_tally, subject.seed, subject.most = heard.append, seed, None

    asyncio.run(nothing_is_left_by_a_kill(subject))

    assert [(tally.deed, tally.calls, tally.verdict) for tally in heard] == [(DELETED_AFTER_A_KILL, None, Verdict.FAIL)]
    assert "killed before call" in subject.findings[0].story[0]
    assert "the run is gone, and its text is still in" in subject.findings[0].message


def test_a_clause_that_traces_does_not_say_that_it_does_not(subject: StoreSubject) -> None:
    traces, listens = (str(nothing_tried(subject, 0, "no kill", are_traced=each)) for each in (True, False))

    assert traces.endswith("system calls could not be traced here (see the notes)")
    assert listens.endswith("which this check does not do")


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_the_delete_has_a_row_of_its_own_and_its_kills_are_counted() -> None:
    report = disturb_store(STREAMS, how="kill", budget=8)

    verdicts = {tally.deed: tally.verdict for tally in report.tallies}
    assert len(verdicts) == deeds_of("kill")
    assert [deed for deed, verdict in verdicts.items() if verdict is not Verdict.PASS] == [DELETED_AFTER_A_KILL]
    assert sum(tally.tried for tally in report.tallies) == report.results[0].scenarios
    assert any("its text had been there after" in note for note in (report.results[0].reason, *report.notes))
