"""S13: one store object in other tasks, event loops, threads and forks, and what a store may refuse."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance import check_store, implemented, used_elsewhere
from n00dles_testing.conformance.clauses import s13_elsewhere
from n00dles_testing.conformance.expect import BrokenClause, VacuousCheck
from n00dles_testing.conformance.judged_uses import Uses
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.conformance.used_elsewhere import use_after_a_fork, use_in_loops, use_in_threads
from n00dles_testing.conformance.worker import result_of
from n00dles_testing.verdicts import ClauseResult, Verdict

from .test_what_counts import subject_in

HERE = Path(__file__).parent
STORES = HERE / "moved_stores.py"
MUTANTS = "n00dles_testing.conformance.mutants.s13"


def s13_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["S13"]).results
    return result


@pytest.mark.parametrize(
    ("target", "scenario", "message"),
    [
        (f"{MUTANTS}:HasOneCursorForAll", "4 threads at once", "inputs['topic'] is 'of thread "),
        (
            f"{MUTANTS}:CarriesItsConnectionAcrossAFork",
            "a process that closes before its fork does",
            "completed['c-again'] is missing",
        ),
        (f"{HERE / 'hostile_stores.py'}:LosesWhatThreadsSave", "4 threads at once", "completed['thread"),
        (
            f"{STORES}:DiesInAFork",
            "a process and its fork",
            "load_or_create of the child: the process was killed by SIG",
        ),
        (f"{STORES}:RefusesItsOwner", "each call in a task of its own", "save raised ValueError: no"),
    ],
)
def test_what_another_user_has_spoiled_is_found(target: str, scenario: str, message: str) -> None:
    result = s13_of(target)

    assert result.verdict is Verdict.FAIL
    finding = result.findings[0]
    assert finding.message.startswith(message)
    assert finding.story[0].startswith(f"scenario {scenario}")


@pytest.mark.parametrize(
    ("store", "during"),
    [
        ("WaitsForItsFirstLoop", "load_or_create of a second event loop"),
        ("HangsInAFork", "load_or_create of the child"),
    ],
)
def test_a_hang_is_told_with_the_call(store: str, during: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s13_elsewhere, "_LIMIT", 3.0)

    result = result_in(tmp_path, f"{STORES}:{store}")

    assert result.verdict is Verdict.FAIL
    assert result.findings[0].message == f"{during}: it has not returned within 3 s"


def no_loop(main: Any) -> None:
    main.close()
    raise OSError(errno.EMFILE, "Too many open files")


def test_threads_that_never_came_to_a_call_have_shown_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject, run_ids = subject_in(tmp_path), ["run-a", "run-b"]

    async def use() -> None:
        async with subject.scenario("no loop for a thread") as s:
            monkeypatch.setattr(asyncio, "run", no_loop)
            came = await use_in_threads(subject.target, s.location, run_ids, "run-c", 5.0)
            Uses(s, "who opened it", {}, shared={"run-c"}).judge(came, 5.0)

    run = asyncio.run
    with pytest.raises(VacuousCheck, match=r"thread 0: OSError.*Too many open files.*thread 1 made no call"):
        run(use())


def test_an_event_loop_that_could_not_be_made_has_shown_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = subject_in(tmp_path)

    async def use() -> None:
        async with subject.scenario("no loop for a thread") as s:
            monkeypatch.setattr(asyncio, "run", no_loop)
            came = await use_in_loops(subject.target, s.location, "run-a", 5.0)
            Uses(s, "the first event loop", {}).judge(came, 5.0)

    run = asyncio.run
    with pytest.raises(VacuousCheck, match="Too many open files"):
        run(use())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_fails_beside_the_calls_of_the_store_tells_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    subject = subject_in(tmp_path)
    monkeypatch.setattr(used_elsewhere, "_be_the_child", fails)

    async def use() -> None:
        async with subject.scenario("a child that fails") as s:
            came = await use_after_a_fork(
                subject.target, s.location, mine="run-a", childs="run-b", both="run-c", closes_first=False, limit=5.0
            )
            Uses(s, "the parent", {}).judge(came, 5.0)

    with pytest.raises(VacuousCheck, match=r"the child: OSError.*Too many open files"):
        asyncio.run(use())


BEGUN = {"who": "the child", "call": "save", "run_id": "run-a", "begins": True}


@pytest.mark.parametrize(
    ("came", "error", "message"),
    [
        (
            {"entries": [BEGUN], "has_ended": False, "failed": []},
            BrokenClause,
            "save of the child: it has not returned",
        ),
        ({"entries": [], "has_ended": False, "failed": []}, VacuousCheck, "nobody has begun a call"),
        ({"entries": [BEGUN], "has_ended": True, "failed": ["x"]}, BrokenClause, "save of the child"),
        (
            {"entries": [], "has_ended": False, "failed": [], "died": "was killed by SIGSEGV"},
            BrokenClause,
            "a user: the process was killed by SIGSEGV",
        ),
    ],
)
def test_only_a_call_that_is_under_way_or_a_death_is_held_against_the_store(
    came: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    uses = Uses(subject_in(tmp_path).scenario("x"), "the parent", {})

    with pytest.raises(error, match=message):
        uses.judge(came, 5.0)


@pytest.mark.parametrize("store", ["raises", "exits"])
def test_a_store_that_cannot_be_opened_in_another_loop_is_a_fault(store: str, tmp_path: Path) -> None:
    subject = subject_in(tmp_path, f"{HERE / 'hostile_stores.py'}:{store}")

    async def use() -> None:
        async with subject.scenario("a store that cannot be opened") as s:
            came = await use_in_loops(subject.target, s.location, "run-a", 5.0)
            Uses(s, "the first event loop", {}).judge(came, 5.0)

    asyncio.run(use())

    [finding] = subject.findings
    assert finding.message.startswith("open raised ")


def result_in(folder: Path, target: str) -> ClauseResult:
    """Check in this process, where a test can change a limit."""
    [clause] = [each for each in implemented() if each.id == "S13"]
    subject = subject_in(folder, target)
    try:
        return asyncio.run(result_of(clause, subject))
    finally:
        subject.nursery().close()


@pytest.mark.parametrize(
    ("target", "note"),
    [
        (f"{STORES}:BelongsToItsLoop", "refused to a second event loop: load_or_create raised RuntimeError: this conn"),
        (f"{STORES}:RefusesAFork", "refused to the child: load_or_create raised RuntimeError: opened before a fork"),
        (f"{HERE / 'hostile_stores.py'}:BelongsToAThread", "refused to thread "),
        (f"{STORES}:ForgetsAfterAFork", "a run that a process and its fork both save was not judged"),
        ("memory://", "a run that a process and its fork both save was not judged"),
    ],
)
def test_an_error_at_once_is_noted_and_no_fault(target: str, note: str) -> None:
    result = s13_of(target)

    assert result.verdict is Verdict.PASS
    assert note in result.reason


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("target", correct_stores(), ids=lambda target: target.rpartition(":")[2])
def test_no_correct_store_fails_whatever_is_drawn(target: str, seed: int) -> None:
    [result] = check_store(target, clauses=["S13"], seed=seed).results

    assert (result.verdict, result.scenarios) == (Verdict.PASS, 5)


def test_the_store_of_the_project_is_usable_from_everywhere(tmp_path: Path) -> None:
    result = s13_of(f"sqlite:///{tmp_path}/runs.db")

    assert (result.verdict, result.scenarios, result.reason) == (Verdict.PASS, 5, "")


def test_what_is_lost_by_one_process_alone_is_not_held_against_a_fork() -> None:
    result = s13_of("n00dles_testing.conformance.mutants.c01:CompactsWhatItOpened")

    assert result.verdict is Verdict.PASS
    assert "a third process did not look: what one process alone has saved, and then was closed," in result.reason
