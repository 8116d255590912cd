"""The state machine as a clause: what it plays, how it shrinks, what a replay says, and that no file is left."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from n00dles_testing.cli import main
from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.clauses.s17_machine import _require
from n00dles_testing.conformance.expect import BrokenClause, MisuseError, VacuousCheck
from n00dles_testing.conformance.machine import Plan, PlanToken
from n00dles_testing.conformance.machine.offers import Offers
from n00dles_testing.conformance.machine.play import Player
from n00dles_testing.conformance.machine.replay import replay
from n00dles_testing.conformance.machine.search import Broken, Played, Searched, search
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.conformance.subject import StoreSubject
from n00dles_testing.conformance.target import StoreTarget
from n00dles_testing.verdicts import ClauseResult, Verdict

HOSTILE = Path(__file__).parents[1] / "hostile_stores.py"
BROKEN = "n00dles_testing.conformance.mutants.s17:CountsAnew"
FILES, LOG, REVISIONS = correct_stores()[:3]
EVERYTHING = Offers(revisions=True, durable=True, instances=True, processes=True)
NOTHING = Offers(revisions=False, durable=False, instances=False, processes=False)


def s17_of(target: str, seed: int = 0) -> ClauseResult:
    [result] = check_store(target, clauses=["S17"], seed=seed).results
    return result


def load(run: int = 0, inputs: int = 0, *, second: bool = False) -> dict[str, Any]:
    return {"do": "load", "run": run, "inputs": inputs, "second": second}


def save(name: str, value: Any, back: int = 0, *, second: bool = False) -> dict[str, Any]:
    return {"do": "save", "run": 0, "back": back, "nodes": [[name, {"json": value}]], "second": second}


def delete(*, second: bool = False) -> dict[str, Any]:
    return {"do": "delete", "run": 0, "second": second}


A_LATE_SAVE_INTO_THE_NEXT_RUN = (load(), delete(), load(), save("a", "late", back=1))


def searched(
    fails: Any, offers: Offers = EVERYTHING, *, seed: int = 3, sequences: int = 50, seconds: float = 60
) -> tuple[Searched, list[Plan]]:
    """Search with a play that needs no store."""
    plans: list[Plan] = []

    async def play(plan: Plan) -> Played:
        plans.append(plan)
        broken = Broken(plan, BrokenClause("broken"), ()) if fails(plan) else None
        return Played(Counter(operation["do"] for operation in plan.operations), broken)

    return asyncio.run(search(play, offers, seed=seed, sequences=sequences, seconds=seconds)), plans


def kinds(plan: Plan) -> list[str]:
    return [operation["do"] for operation in plan.operations]


def test_the_same_seed_plays_the_same_sequences_and_another_one_others() -> None:
    _, first = searched(lambda plan: False)
    _, again = searched(lambda plan: False)
    _, others = searched(lambda plan: False, seed=4)

    assert first == again
    assert first != others


@pytest.mark.parametrize("seed", range(5))
def test_each_kind_of_operation_is_drawn_with_every_seed(seed: int) -> None:
    came, plans = searched(lambda plan: False, seed=seed)

    assert came.counts.keys() == {
        "load", "save", "overlap", "cancel", "delete", "reopen", "elsewhere", "clock", "edit"
    }  # fmt: skip
    assert came.sequences >= 50
    assert max(len(plan.operations) for plan in plans) > 15
    assert len({plan.ids for plan in plans}) > 5


def test_what_a_store_does_not_offer_is_not_drawn() -> None:
    came, plans = searched(lambda plan: False, NOTHING)

    assert not came.counts.keys() & {"reopen", "elsewhere"}
    assert not any(operation.get("second") for plan in plans for operation in plan.operations)


def test_a_sequence_that_fails_is_shrunk_to_what_makes_it_fail() -> None:
    def fails(plan: Plan) -> bool:
        words = kinds(plan)
        return "delete" in words and "save" in words[words.index("delete") :]

    came, _ = searched(fails)

    assert came.broken is not None
    assert kinds(came.broken.plan) == ["delete", "save"]
    assert came.broken.plan.ids == "plain"


def test_a_store_that_fails_only_once_is_told_all_the_same() -> None:
    rounds = iter([False] * 7 + [True])

    came, _ = searched(lambda plan: next(rounds, False))

    assert came.broken is not None
    assert came.sequences == 7


def test_when_the_time_is_up_it_says_so() -> None:
    came, plans = searched(lambda plan: False, seconds=0)

    assert came.was_cut_short
    assert (came.sequences, plans) == (0, [])
    with pytest.raises(MisuseError, match=r"time for 0 sequences only, without stale save, .* A higher --limit"):
        _require(came, NOTHING)


def test_a_long_search_comes_by_each_kind_of_operation_again_and_again() -> None:
    came, plans = searched(lambda plan: False, sequences=150)

    assert came.sequences >= 150
    for first in (0, 50, 100):
        assert {kind for plan in plans[first : first + 50] for kind in kinds(plan)} == came.counts.keys()


def test_a_kill_that_did_not_happen_ends_the_search() -> None:
    async def play(plan: Plan) -> Played:
        raise VacuousCheck("the process did not end")

    with pytest.raises(VacuousCheck, match="did not end"):
        asyncio.run(search(play, EVERYTHING, seed=0, sequences=50, seconds=60))


def test_a_fault_of_the_machine_itself_is_not_taken_for_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(plan: Plan) -> bool:
        raise KeyError("in the player")

    with pytest.raises(KeyError, match="in the player"):
        searched(breaks)
    monkeypatch.setattr("n00dles_testing.conformance.machine.generate._load", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        searched(lambda plan: False)


def test_what_is_rare_must_have_happened_where_the_store_offers_it() -> None:
    always = Counter({"stale save": 1, "late save": 1, "creation anew": 1})

    _require(Searched(50, always), NOTHING)

    for came, offers, message in (
        (
            Searched(50, always),
            EVERYTHING,
            "50 sequences were played, without reopening, another process, kill, second",
        ),
        (Searched(50, always - Counter({"late save": 1})), NOTHING, "without late save, so"),
        (Searched(9, always), NOTHING, "9 sequences were played, so"),
    ):
        with pytest.raises(VacuousCheck, match=message):
            _require(came, offers)


def test_memory_is_played_without_what_outlives_it() -> None:
    result = s17_of("memory://")

    assert result.verdict is Verdict.PASS
    assert result.scenarios >= 50
    assert result.reason.endswith("; without reopening and other processes (another one does not find what was saved)")


def test_a_store_that_keeps_a_copy_in_each_instance_is_played_with_one_instance() -> None:
    result = s17_of(LOG)

    assert result.verdict is Verdict.PASS
    assert "× reopening" in result.reason
    assert "× kill" in result.reason
    assert "× overlap" in result.reason
    assert result.reason.endswith("; without a second instance (it does not see the first one's saves)")


@pytest.mark.parametrize("store", ["RefusesWhatItCannotHold", "RefusesSlashes", "RefusesWhileItSaves"])
def test_a_store_that_refuses_or_ignores_what_it_may_is_not_blamed(store: str) -> None:
    result = s17_of(f"{HOSTILE}:{store}")

    assert (result.verdict, result.findings) == (Verdict.PASS, ())


def test_a_factory_that_opens_one_place_wherever_it_is_asked_to_is_not_blamed() -> None:
    assert s17_of(f"{HOSTILE}:always_the_same_object").verdict is Verdict.PASS


def test_a_failure_tells_the_calls_the_disk_what_was_allowed_and_why_and_replays() -> None:
    result = s17_of(BROKEN)

    [finding] = result.findings
    labels = [line.split()[0] for line in finding.story]
    assert labels[-4:] == ["on", "allowed", "came", "why"]
    assert ".json (" in finding.story[-4]
    assert any(" by an older worker (loaded 1 before the newest)" in line for line in finding.story)
    assert "by a worker of the run before, which was deleted, so that nothing of it belongs here" in finding.story[-1]
    token = PlanToken.decode((finding.replay or "").rpartition(" ")[2])
    assert token.target == BROKEN
    assert len(token.plan.operations) <= 10
    assert replay(token).findings[0].message == finding.message


def test_a_replay_prints_the_story_and_the_verdict_and_its_exit_code_tells() -> None:
    plan = Plan(A_LATE_SAVE_INTO_THE_NEXT_RUN)

    broken = CliRunner().invoke(main, ["replay", PlanToken(BROKEN, 0, plan).encode()])
    correct = CliRunner().invoke(main, ["replay", PlanToken(REVISIONS, 0, plan).encode()])

    assert broken.exit_code == 1
    assert "   4. save a='late' of run 0 by an older worker (loaded 1 before the newest)" in broken.output
    assert "completed['a'] is 'late', and should not be there" in broken.output
    assert broken.output.rstrip().endswith("S17  FAIL: completed['a'] is 'late', and should not be there")
    assert correct.exit_code == 0
    assert correct.output.rstrip().endswith("S17  PASS: each reply is one that the model allows")


def test_a_replay_of_a_store_that_ends_its_process_has_a_verdict() -> None:
    plan = Plan((load(), save("a", None)))

    result = replay(PlanToken(f"{HOSTILE}:KillsTheProcess", 0, plan))

    assert result.verdict is Verdict.FAIL
    assert "the store's process ended with exit status 7, during: save(" in result.reason


@pytest.mark.parametrize(
    ("plan", "title"), [(Plan((load(),)), "1 operation"), (Plan((load(), save("a", 1))), "2 operations")]
)
def test_a_story_says_how_many_operations_it_has(plan: Plan, title: str) -> None:
    [finding] = replay(PlanToken(f"{HOSTILE}:ReturnsNone", 0, plan)).findings

    assert finding.story[0] == f"scenario {title}"


@pytest.mark.parametrize(
    ("token", "message"), [("s1nonsense", "is no token that a failure of S17 has printed"), ("s1", "cut short")]
)
def test_a_token_that_is_none_ends_with_a_clear_error(token: str, message: str) -> None:
    done = CliRunner().invoke(main, ["replay", token])

    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output


def test_a_store_that_cannot_be_found_any_more_is_said_so() -> None:
    token = PlanToken("no.such.module:open_store", 0, Plan((load(),))).encode()

    done = CliRunner().invoke(main, ["replay", token])

    assert done.exit_code == 2
    assert "no.such.module" in done.output


SECOND = (load(), load(second=True), save("a", 1, second=True), load(), save("b", 2), load(second=True))
CLOCK = (load(), save("a", 1), {"do": "clock", "seconds": -7200}, save("b", 2), {"do": "reopen"}, load())
CANCELLED = tuple(
    operation
    for after in range(4)
    for operation in (load(), {"do": "cancel", "run": 0, "back": 0, "nodes": [["a", {"json": 1}]], "after": after})
)
KILLED = tuple(
    {"do": "elsewhere", "run": 0, "what": what, "inputs": 0, "nodes": [["a", {"json": what}]], "kill": True}
    for what in ("save", "delete", "save")
)
OVERLAP = (load(), load(), {"do": "overlap", "run": 0, "backs": [0, 1], "nodes": [["a", {"json": 1}]] * 2}, load())


class Nobody:
    def scenario(self, number: int, title: str) -> None: ...

    def step(self, number: int, text: str) -> None: ...


async def counts_of(target: str, folder: Path, offers: Offers, *sequences: tuple[dict[str, Any], ...]) -> Counter[str]:
    """Play sequences, each on a fresh location. Raises `BrokenClause`."""
    memory: dict[str, Any] = {}
    subject = StoreSubject(
        StoreTarget.parse(target), folder, clause="S17", seed=0, nonce="test", listener=Nobody(), memory=memory
    )
    counts: Counter[str] = Counter()
    try:
        for operations in sequences:
            player = Player(subject.probe("a test"), Plan(operations), offers)
            await player.play()
            counts += player.counts
    finally:
        if "nursery" in memory:
            memory["nursery"].close()
    return counts


@pytest.mark.parametrize(
    ("target", "offers"),
    [
        ("memory://", Offers(revisions=True, durable=False, instances=False, processes=False)),
        ("sqlite:///runs.db", EVERYTHING),
        (FILES, Offers(revisions=False, durable=True, instances=True, processes=True)),
        (LOG, Offers(revisions=False, durable=True, instances=False, processes=False)),
        (REVISIONS, EVERYTHING),
    ],
)
def test_one_sequence_can_be_played_on_every_store(target: str, offers: Offers, tmp_path: Path) -> None:
    counts = asyncio.run(counts_of(target, tmp_path, offers, SECOND, CLOCK, CANCELLED, KILLED, OVERLAP))

    assert counts["kill"] == (3 if offers.durable else 0)
    assert counts["another process"] == counts["kill"]
    assert counts["reopening"] == (1 if offers.durable else 0)
    assert counts["second instance"] == (4 if offers.instances else 0)
    assert counts["clock step"] == 1
    assert counts["overlap"] + counts["saves in turn, though begun at once"] == 1
    assert counts["cancelled save"] + counts["save that ended before it was cancelled"] == 4


def test_nothing_is_left_in_the_folder_of_the_user(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "n00dles_testing", "check", "memory://", "--clause", "S17"]

    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []
