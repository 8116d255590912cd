"""Which system calls of a store are disturbed, by what, and what is left to the calls that Python tells of."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.clauses import c04_faults
from n00dles_testing.conformance.deeds import DEEDS, undisturbed_deeds
from n00dles_testing.conformance.disturbing import DisturbanceReport, disturb_store
from n00dles_testing.conformance.moments import Calls, Moment, calls_of_deeds, faults, kills
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.conformance.mutants.correct import JSONFiles
from n00dles_testing.conformance.nursery import Nursery
from n00dles_testing.conformance.subject import StoreSubject
from n00dles_testing.conformance.tally import Tally
from n00dles_testing.conformance.target import StoreTarget
from n00dles_testing.tracing import why_not
from n00dles_testing.verdicts import ClauseResult, Verdict

FILES = correct_stores()[0]
SAVE = "a later save"
MUTANTS = "n00dles_testing.conformance.mutants"
needs_tracing = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


class Silent:
    def scenario(self, number: int, title: str) -> None: ...

    def step(self, number: int, text: str) -> None: ...


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[StoreSubject]:
    nursery = Nursery(FILES)
    memory = {"nursery": nursery, "durability": (True, [], True)}
    yield StoreSubject(
        StoreTarget.parse(FILES), tmp_path, clause="C03", seed=0, nonce="test", listener=Silent(), memory=memory
    )
    nursery.close()


def traced(*calls: str) -> list[dict[str, str]]:
    """Return calls, from `"write pwrite64 runs.db"`."""
    return [dict(zip(("kind", "name", "path"), call.split(), strict=True)) for call in calls]


REPLACES = traced(
    "look openat run.json",
    "open openat run.new",
    "write write run.new",
    "sync fsync run.new",
    "name rename run.new",
    "look openat .",
    "sync fsync .",
)
"""A file is read, another written aside, synced and renamed, and the folder synced."""


def told(*names: str) -> dict[str, list[str]]:
    return {"kill": list(names), "fail": list(names), "lose": []}


def plans(moments: list[Moment]) -> list[tuple[bool, Any]]:
    return [(moment.traced, moment.disturbance["number"]) for moment in moments]


def test_of_kills_that_leave_the_same_state_one_is_tried() -> None:
    found = kills(Calls(REPLACES, told("file.write", "os.fsync")))

    assert plans(found) == [(True, 3), (True, 5), (True, 7)]
    assert found[1].where == "before system call 5, rename of run.new"


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param(Calls(None, told("open", "file.write")), [(False, 2)], id="not traced"),
        pytest.param(Calls([], told("open", "file.write")), [(False, 2)], id="its files are elsewhere"),
        pytest.param(Calls(REPLACES[2:5], told("open", "socket.send")), [(True, 3), (False, 2)], id="a server"),
        pytest.param(Calls(REPLACES[2:5], told("lmdb.put", "lmdb.put")), [(True, 3), (False, 2)], id="a library"),
        pytest.param(
            Calls(REPLACES[2:5], told("open", "mmap.flush"), ["/x/runs: it is mapped into memory to be written there"]),
            [(True, 3), (False, 2)],
            id="memory",
        ),
        pytest.param(
            Calls(REPLACES[2:5], told("open", "sqlite3.commit"), ["/x/runs.db-shm: it is mapped into memory"]),
            [(True, 3)],
            id="what SQLite makes anew",
        ),
    ],
)
def test_what_no_traced_file_shows_is_left_to_the_calls_that_python_tells_of(
    calls: Calls, expected: list[tuple[bool, int]]
) -> None:
    assert plans(kills(calls)) == expected


def test_each_call_meets_every_fault_that_it_can_meet() -> None:
    found = faults(Calls(REPLACES[:4], told()))

    met = [(moment.disturbance.get("fault", "short"), moment.disturbance.get("lasting")) for moment in found]
    assert met == [
        *[("EMFILE", True), ("EMFILE", False)] * 2,
        *[("ENOSPC", False), ("short", None), ("ENOSPC", True), ("EIO", False), ("EIO", True)],
        *[("EIO", False), ("ENOSPC", False), ("EIO", True)],
    ]


def test_a_call_is_found_by_its_number_among_those_that_its_fault_can_meet() -> None:
    rename = next(moment for moment in faults(Calls(REPLACES, told())) if "rename" in moment.where)

    assert rename.where == "system call 5, rename of run.new, failing: the disk fails"
    assert rename.disturbance["number"] == 3
    assert set(rename.disturbance["kinds"]) == {"write", "size", "sync", "name"}


def test_a_check_tries_one_fault_a_call_and_another_one_at_the_next_of_its_kind() -> None:
    turns: dict[str, Iterator[int]] = {}

    found = [faults(Calls(traced("write write a", "sync fsync a"), told()), turns) for _ in range(2)]

    assert [[moment.disturbance.get("fault", "short") for moment in each] for each in found] == [
        ["ENOSPC", "EIO"],
        ["short", "ENOSPC"],
    ]


def test_statements_fail_also_where_no_system_call_would() -> None:
    found = faults(Calls(REPLACES[2:3], told("open", "sqlite3.Connection.execute", "file.write")))

    assert [moment.where for moment in found if not moment.traced] == [
        "call 2, sqlite3.Connection.execute, failing: the disk fails"
    ]


def test_where_nothing_can_be_traced_the_reason_is_told(subject: StoreSubject) -> None:
    subject._memory["tracing"] = "this system has no ptrace"

    [calls] = asyncio.run(calls_of_deeds(subject, {SAVE: {"counted": told("open", "file.write")}})).values()

    assert calls.count is None
    assert plans(kills(calls)) == [(False, 2)]
    assert subject.notes == [
        "at the calls that Python tells of, and not at each system call: this system has no ptrace"
    ]


@needs_tracing
def test_the_system_calls_of_a_deed_are_those_of_the_call_that_it_is_about(subject: StoreSubject) -> None:
    async def traced_save() -> Calls:
        known = await undisturbed_deeds(subject, [SAVE], after_a_kill=False)
        return (await calls_of_deeds(subject, known))[SAVE]

    calls = asyncio.run(traced_save())

    assert [call["kind"] for call in calls.traced or ()] == [
        "open",  # the lock
        "look",
        "open",
        "write",
        "sync",
        "name",
        "look",
        "sync",
    ]
    assert calls.are_all_traced


@needs_tracing
def test_only_a_kill_between_two_system_calls_of_one_line_finds_it(tmp_path: Path) -> None:
    [result] = check_store(f"{MUTANTS}.c03:ChangesPlacesInOneLine", clauses=["C03"], seed=2).results

    assert result.verdict is Verdict.FAIL
    assert all("killed before system call" in finding.story[0] for finding in result.findings)
    assert any("killed by SIGKILL before rename" in line for line in result.findings[0].story)


@needs_tracing
def test_a_budget_bounds_the_disturbances_and_each_deed_is_told() -> None:
    heard: list[Tally] = []

    report = disturb_store(FILES, how="fail", budget=6, on_tally=heard.append)

    assert report.ok
    assert tuple(heard) == report.tallies
    assert [tally.deed for tally in heard] == [title for title in DEEDS if title not in ("a first save", *_OPENING)]
    assert all(tally.calls and tally.verdict is Verdict.PASS for tally in heard)
    limits = sum(tally.tried for tally in heard) - 6
    assert 0 < limits <= 12
    assert report.to_dict()["deeds"][0]["verdict"] == "PASS"


RESULTS = {
    "PASS": ClauseResult("C03", "…", Verdict.PASS, scenarios=1),
    "FAIL": ClauseResult("C03", "…", Verdict.FAIL),
    "VACUOUS": ClauseResult("C03", "…", Verdict.VACUOUS),
    "NOT RUN": ClauseResult("C03", "…", Verdict.NOT_RUN),
    "in part": ClauseResult("C04", "…", Verdict.PASS, scenarios=1, untried=(SAVE,)),
}


@pytest.mark.parametrize(
    ("results", "conclusion"),
    [
        (["PASS"], "no fault found"),
        (["PASS", "NOT RUN"], "no fault found"),
        (["NOT RUN"], "nothing was tried"),
        (["PASS", "VACUOUS"], "something could not be shown"),
        (["PASS", "in part"], f"{SAVE} already fails undisturbed; n00dles-testing check shows how"),
        (["FAIL", "in part"], "a fault was found"),
    ],
)
def test_only_what_was_tried_and_found_clean_ends_well(results: list[str], conclusion: str) -> None:
    report = DisturbanceReport("memory://", tuple(RESULTS[name] for name in results), (), (), 0, 6, 1.0)

    assert report.conclusion == conclusion
    assert report.ok == (conclusion == "no fault found")


_OPENING = ("the first creation on a location",)


@pytest.mark.parametrize(
    ("tally", "verdict"),
    [
        (Tally("C03", SAVE, 8, 5, 5, 0), Verdict.PASS),
        (Tally("C03", SAVE, 8, 5, 5, 1), Verdict.FAIL),
        (Tally("C03", SAVE, 8, 5, 0, 0), Verdict.VACUOUS),
        (Tally("C03", SAVE, 1, 0, 0, 0), Verdict.NOT_APPLICABLE),
    ],
)
def test_a_deed_at_which_nothing_happened_is_no_pass(tally: Tally, verdict: Verdict) -> None:
    assert tally.verdict is verdict
    assert Tally.from_dict(tally.to_dict()) == tally


class RefusesAfterAFailedSync(JSONFiles):
    """Does nothing more once a sync has failed, until it is opened again, as LMDB does."""

    refuses = False

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        if self.refuses:
            raise OSError("a sync has failed: open the store again")
        self.refuses = True
        super().write(run_id, record)
        self.refuses = False


class RefusesEverAfter(RefusesAfterAFailedSync):
    """Takes that down in a file, for good."""

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        mark = self.folder / "failed"
        self.refuses = mark.exists()
        try:
            super().write(run_id, record)
        except OSError:
            mark.touch()
            raise


@needs_tracing
@pytest.mark.parametrize(
    ("store", "fault", "messages", "scenarios"),
    [
        (RefusesAfterAFailedSync, ("sync", "fsync"), [], 2),
        (RefusesAfterAFailedSync, ("write", "write"), ["save after the fault"], 1),
        (RefusesEverAfter, ("sync", "fsync"), ["save after the fault"], 1),
    ],
)
def test_who_refuses_to_go_on_after_a_failed_sync_may_be_opened_again(
    store: type[JSONFiles], fault: tuple[str, str], messages: list[str], scenarios: int, tmp_path: Path
) -> None:
    kind, name = fault
    target = f"{__file__}:{store.__name__}"
    plan = {"by": "fail", "number": 1, "fault": "EIO", "lasting": False, "kinds": [kind]}
    nursery = Nursery(target)
    memory = {"nursery": nursery, "durability": (True, [], True)}
    found = StoreSubject(
        StoreTarget.parse(target), tmp_path, clause="C04", seed=0, nonce="test", listener=Silent(), memory=memory
    )

    try:
        is_met = asyncio.run(c04_faults._meets(found, SAVE, f"system call 4, {name} of a.new", plan, traced=True))
    finally:
        nursery.close()

    assert is_met
    assert [finding.message.partition(" (")[0] for finding in found.findings] == messages
    assert found.scenarios == scenarios  # what a fresh process finds is one; the retry, which is refused, is none
