"""The whole way: run undisturbed, kill at every point, resume, judge; with real processes and without."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from n00dles import PipelineContext, agent, idempotency_key, pipeline
from n00dles_testing.crash import ExplorationError, ExplorationReport, Progress, explore
from n00dles_testing.crash.points import Point
from n00dles_testing.verdicts import Verdict
from tests.n00dles_testing.crash import mutants, pipelines

MUTANTS = f"{Path(mutants.__file__)}"
PLAIN = f"{Path(__file__).parent / 'plain_stores.py'}"


@pytest.fixture(scope="module")
def forked() -> ExplorationReport:
    """Return the exploration of the chain with real kills."""
    return explore(pipelines.chain, {"topic": "crashes"}, mode="fork")


def test_every_point_of_a_chain_is_killed_by_signal_9_and_resumes_without_a_call_too_many(
    forked: ExplorationReport,
) -> None:
    points = [str(row.point) for row in forked.rows]

    assert points == [
        "before-create",
        "after-create",
        "run-started",
        *(f"{kind}:draft" for kind in ("before", "during", "after", "before-save", "after-save")),
        *(f"{kind}:edit" for kind in ("before", "during", "after", "before-save", "after-save")),
        *(f"{kind}:publish" for kind in ("before", "during", "after", "before-save", "after-save")),
        "run-finished",
        "before-opening-save",
        "after-opening-save",
    ]
    assert {row.killed_by for row in forked.rows} == {signal.SIGKILL}
    assert {row.recalled for row in forked.rows} == {()}
    assert {row.same_output for row in forked.rows} == {True}
    assert forked.verdict is Verdict.PASS


def test_what_was_on_disk_after_the_kill_is_what_had_been_saved(forked: ExplorationReport) -> None:
    on_disk = {str(row.point): row.on_disk for row in forked.rows}

    assert on_disk["before-save:draft"] == ()
    assert on_disk["after-save:draft"] == ("draft",)
    assert on_disk["before-save:publish"] == ("draft", "edit")
    assert on_disk["run-finished"] == ("draft", "edit", "publish")


def test_only_the_node_in_flight_is_called_once_more(forked: ExplorationReport) -> None:
    calls = {str(row.point): row.calls for row in forked.rows}

    assert calls["before:edit"] == 3
    assert calls["during:edit"] == 4
    assert calls["after:edit"] == 4
    assert calls["after-save:edit"] == 3


def test_the_save_with_which_a_resumed_life_begins_is_killed_in_the_second_life(forked: ExplorationReport) -> None:
    row = forked.rows[-1]

    assert [str(point) for point in row.plan] == ["after-save:draft", "after-opening-save"]
    assert row.label == "life 2, after opening save"
    assert row.path == "after the save of draft, then life 2, after opening save"
    assert row.on_disk == ("draft",)
    assert row.lives == 3
    assert row.story == (
        "life 1   draft ✓  saved  ✗ SIGKILL after the save of draft",
        "on disk  draft",
        "life 2   called nothing  ✗ SIGKILL after the save without outputs",
        "on disk  draft",
        "life 3   edit ✓  saved  publish ✓  saved  finished",
        "again    called nothing  finished",
    )


def test_a_report_goes_through_json_with_every_clause_and_the_number_of_scenarios_behind_it(
    forked: ExplorationReport,
) -> None:
    form = json.loads(json.dumps(forked.to_dict()))

    assert form["verdict"] == "PASS"
    scenarios = {clause["clause"]: clause["scenarios"] for clause in form["clauses"]}
    assert {clause: scenarios[clause] for clause in ("E01", "E02", "E03", "E04", "E05", "E17")} == {
        "E01": 23,  # those that start a dependent, and the two undisturbed runs
        "E02": 12,  # a kill after the first save and before the last
        "E03": 18,  # all but the kills before the first node
        "E04": 21,
        "E05": 19,  # not those whose last node was saved
        "E17": 23,
    }
    assert form["rows"][7]["point"] == "after-save:draft"
    assert form["rows"][7]["on_disk"] == ["draft"]


@pytest.mark.parametrize("mode", ["fork", "in-process"])
def test_a_fan_out_and_a_branch_are_killed_at_their_own_points_too(mode: str) -> None:
    report = explore(pipelines.wide, {"text": "tea"}, mode=mode, at=["joined", "routed", "*-save:middle", "join"])

    points = {str(row.point) for row in report.rows}
    assert {"joined:parallel[left,middle,right]", "routed:branch[long]", "before-save:middle"} <= points
    assert report.verdict is Verdict.PASS
    assert {row.same_output for row in report.rows} == {True}


def test_a_mutant_is_caught_by_real_kills_and_the_story_names_the_node_the_disk_and_the_command() -> None:
    report = explore(
        pipelines.chain,
        {"topic": "crashes"},
        mode="fork",
        at=["after-save:edit"],
        executor=f"{MUTANTS}:forgets_the_last_node",
    )

    (finding,) = report.findings
    assert finding.clause == "E02"
    assert finding.message.startswith("`edit` was called again in life 2, though its save was acknowledged in life 1")
    assert finding.story == (
        "life 1   draft ✓  saved  edit ✓  saved  ✗ SIGKILL after the save of edit",
        "on disk  draft, edit",
        "life 2   edit AGAIN ✓  publish ✓  saved  finished",
        "again    called nothing  finished",
        "why      the store had the output of `edit`, and the executor did not use it",
    )
    assert finding.replay is None  # no command can name another executor
    assert report.rows[0].recalled == ("edit",)


def test_a_resume_that_hangs_is_ended_and_told_apart_from_a_wrong_output() -> None:
    report = explore(
        pipelines.chain,
        {"topic": "crashes"},
        mode="fork",
        at=["after-save:edit"],
        executor=f"{MUTANTS}:hangs_on_resume",
        time_limit=4.0,
    )

    assert [clause.clause for clause in report.clauses if clause.verdict is Verdict.FAIL] == ["E04"]
    assert "did not end within its limit (4 s)" in report.findings[0].message
    assert report.rows[0].seconds < 60


def test_a_kill_that_does_not_happen_is_vacuous_and_never_a_pass() -> None:
    report = explore(
        pipelines.chain, {"topic": "x"}, mode="in-process", store=mutants.WholeStore(), executor=mutants.SaysNothing()
    )

    vacuous = {str(row.point.kind) for row in report.rows if row.verdict is Verdict.VACUOUS}
    assert vacuous == {"run-started", "before", "after", "run-finished"}
    assert report.verdict is Verdict.VACUOUS
    assert not report.ok
    assert "it never passed there" in report.rows[2].reason


def test_fresh_interpreters_give_the_same_result(forked: ExplorationReport) -> None:
    spawned = explore(pipelines.chain, {"topic": "crashes"}, mode="spawn", at=["during:edit"])

    (row,) = spawned.rows
    twin = next(row for row in forked.rows if str(row.point) == "during:edit")
    assert (row.killed_by, row.on_disk, row.calls, row.same_output) == (9, twin.on_disk, twin.calls, True)
    assert spawned.verdict is Verdict.PASS


def test_without_fork_lives_are_fresh_interpreters_and_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")

    report = explore(pipelines.chain, {"topic": "crashes"}, at=["after:draft"])

    assert report.mode == "spawn"
    assert "cannot fork" in report.notes[0]
    assert report.verdict is Verdict.PASS


def test_a_pipeline_made_inside_a_function_is_explored_in_process_and_the_report_says_so() -> None:
    @agent
    def shout(text: str) -> str:
        return text.upper()

    report = explore(pipeline(shout, name="local"), {"text": "tea"})

    assert report.mode == "in-process"
    assert "inside a function" in report.notes[0]
    assert report.verdict is Verdict.PASS
    assert len(report.rows) == 9


async def _explore_in_a_loop() -> ExplorationReport:
    return explore(pipelines.chain, {"topic": "x"}, mode="in-process")


@pytest.mark.asyncio
async def test_it_works_inside_a_running_event_loop() -> None:
    report = await _explore_in_a_loop()

    assert report.verdict is Verdict.PASS


@agent
def roll(sides: int) -> int:
    return int.from_bytes(os.urandom(4)) % sides


@agent
def double(number: int) -> int:
    return 2 * number


dice = pipeline(roll >> double, name="dice")


@pytest.mark.parametrize("mode", ["fork", "in-process"])
def test_a_pipeline_that_differs_by_itself_is_unknown_not_failed_and_says_which_node(mode: str) -> None:
    report = explore(dice, {"sides": 2**31}, mode=mode)

    verdicts = {clause.clause: clause.verdict for clause in report.clauses}
    assert verdicts["E04"] is verdicts["E05"] is Verdict.UNKNOWN
    assert verdicts["E02"] is Verdict.PASS
    assert "`roll` returned" in report.unknown
    assert "--allow-unknown" in report.unknown
    assert not report.ok
    assert explore(dice, {"sides": 2**31}, mode=mode, at=["during"], allow_unknown=True).ok


@agent
def charge(amount: int) -> dict[str, object]:
    return {"amount": amount, "receipt": idempotency_key()}


charging = pipeline(charge, name="charging")


@pytest.mark.parametrize("mode", ["fork", "in-process"])
def test_a_pipeline_that_uses_its_idempotency_key_is_the_same_in_every_run(mode: str) -> None:
    report = explore(charging, {"amount": 7}, mode=mode)

    assert report.verdict is Verdict.PASS
    assert not any("differ" in note for note in report.notes)


@agent
def fail(text: str) -> str:
    raise ValueError(f"cannot digest {text}")


failing = pipeline(fail, name="failing", retry=1)


def test_a_pipeline_that_fails_undisturbed_is_an_error_with_its_reason_and_no_table() -> None:
    with pytest.raises(ExplorationError, match="fails undisturbed") as caught:
        explore(failing, {"text": "tea"}, mode="fork")

    message = str(caught.value)
    assert "node 'fail' raised ValueError: cannot digest tea (" in message
    assert "test_explore.py, line " in message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lives": 0}, "lives=0 kills nothing"),
        ({"mode": "teleport"}, "choose one of fork, spawn, in-process"),
        ({"at": ["before:nobody"]}, "has no crash point 'before:nobody'. It has: before-create, after-create"),
        ({"mode": "fork", "store": "memory://"}, "memory:// forgets everything"),
        ({"mode": "fork", "executor": mutants.reference}, "the executor is an object"),
        ({"store": "no_such_module:store", "mode": "in-process"}, "no_such_module"),
        ({"store": "no_such_module:store", "mode": "fork"}, "no_such_module"),
    ],
)
def test_a_wish_that_cannot_be_fulfilled_is_an_error_that_says_why(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ExplorationError) as caught:
        explore(pipelines.chain, {"topic": "x"}, **options)

    assert message in str(caught.value)


def test_a_budget_spreads_the_scenarios_and_the_report_counts_what_was_left_out() -> None:
    report = explore(pipelines.chain, {"topic": "x"}, mode="in-process", budget=4)

    assert len(report.rows) == 4
    assert report.points == 21
    assert report.left_out == 17
    assert str(report.rows[0].point) == "before-create"


def test_the_command_that_replays_a_scenario_carries_all_that_it_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from n00dles_testing.crash import player as player_module
    from n00dles_testing.crash.backends import prepare
    from n00dles_testing.crash.player import Player
    from n00dles_testing.crash.tokens import Token

    setup = prepare(
        pipelines.chain, store="memory://", mode="in-process", environment=None, executor=None, time_limit=1
    )
    inputs = {"topic": "two words", "tags": ["a"], "n": 1.0}
    # What other tests have imported from files is on the import path by now.
    monkeypatch.setattr(player_module, "import_path", lambda: ("src",))
    player = Player(setup, inputs, Path(), environment=None, paid=None, time_limit=1)
    plan = (Point.parse("after-save:draft"), Point.parse("during:edit"))

    command = player.replay(plan)

    assert command is not None
    words, _, token = command.rpartition(" ")
    assert words == "n00dles-testing replay"
    assert Token.decode(token) == Token(
        "tests.n00dles_testing.crash.pipelines:chain", inputs, "memory://", "in-process", plan, path=("src",)
    )


@pytest.mark.parametrize("mode", ["fork", "in-process"])
def test_a_chain_of_kills_is_judged_as_one_scenario(mode: str) -> None:
    chain = tuple(map(Point.parse, ["during:draft", "after:draft", "after-save:draft", "during:edit", "run-finished"]))

    report = explore(pipelines.chain, {"topic": "x"}, mode=mode, plans=[chain])

    (row,) = report.rows
    assert row.verdict is Verdict.PASS
    assert row.lives == 6
    assert row.on_disk == ("draft", "edit", "publish")
    assert row.calls == 6  # draft three times, edit twice, publish once
    assert row.label.endswith("after the save of draft, then during edit, then run finished")


def test_a_chain_with_a_kill_that_cannot_happen_is_vacuous() -> None:
    chain = (Point.parse("after-save:draft"), Point.parse("before:draft"))

    report = explore(pipelines.chain, {"topic": "x"}, mode="in-process", plans=[chain])

    assert report.rows[0].verdict is Verdict.VACUOUS
    assert report.rows[0].reason == "the kill before:draft of life 2 did not happen: it never passed there"


def test_progress_is_told_after_every_scenario() -> None:
    seen: list[Progress] = []

    explore(pipelines.chain, {"topic": "x"}, mode="in-process", at=["edit"], on_progress=seen.append)

    assert [(progress.done, progress.total) for progress in seen] == [(0, 0), (1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]
    assert seen[-1].row is not None


def test_a_store_that_was_named_is_left_as_it_was(tmp_path: Path) -> None:
    import sqlite3

    url = f"sqlite:///{tmp_path}/shared.db"

    report = explore(pipelines.chain, {"topic": "x"}, mode="fork", store=url, at=["edit"])

    assert report.verdict is Verdict.PASS
    connection = sqlite3.connect(tmp_path / "shared.db")
    tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
    left = {name: connection.execute(f"select count(*) from {name}").fetchone()[0] for name in tables}
    connection.close()
    assert sum(count for name, count in left.items() if "run" in name or "output" in name) == 0


def test_a_factory_of_a_store_gets_a_folder_of_its_own() -> None:
    report = explore(
        pipelines.chain,
        {"topic": "x"},
        mode="fork",
        store="docs/examples/my_store.py:open_store",
        at=["after-save:edit"],
    )

    assert report.verdict is Verdict.PASS
    assert report.rows[0].on_disk == ("draft", "edit")


@agent
def alone(text: str) -> str:
    return text.upper()


lonely = pipeline(alone, name="lonely")


@pytest.mark.parametrize("mode", ["fork", "in-process"])
def test_a_clause_that_no_scenario_could_break_is_not_applicable_and_says_why(mode: str) -> None:
    report = explore(lonely, {"text": "tea"}, mode=mode)

    found = {clause.clause: (clause.verdict, clause.scenarios, clause.reason) for clause in report.clauses}
    assert found["E01"] == (Verdict.NOT_APPLICABLE, 0, "no node depends on another")
    assert found["E02"][0] is Verdict.NOT_APPLICABLE
    assert found["E02"][2] == "no life began with a completed node and something left to do"
    assert {found[clause][0] for clause in ("E03", "E04", "E05", "E17")} == {Verdict.PASS}
    assert 0 < found["E05"][1] < len(report.rows)
    assert report.verdict is Verdict.PASS


def test_what_was_not_shown_by_any_scenario_is_no_pass() -> None:
    report = explore(pipelines.chain, {"topic": "x"}, mode="in-process", at=["run-started"])

    verdicts = {clause.clause: clause.verdict for clause in report.clauses}
    assert verdicts["E02"] is verdicts["E03"] is Verdict.NOT_APPLICABLE
    assert verdicts["E04"] is Verdict.PASS
    assert report.ok


class SlowToSave(mutants.Executor):
    """Correct, and slow: what has returned waits for a busy store."""

    def around(self, store: Any) -> Any:
        class Busy(mutants.Around):
            async def save(self, run_id: str, ctx: PipelineContext) -> None:
                if ctx.order:
                    await asyncio.sleep(0.4)
                await self.inner.save(run_id, ctx)

        return Busy(store)


@agent
async def idle(text: str) -> str:
    await asyncio.sleep(0.9)
    return text


patient = pipeline(pipelines.left | idle, name="patient")


def test_that_time_has_passed_between_a_return_and_its_save_is_no_fault() -> None:
    report = explore(
        patient,
        {"text": "tea"},
        mode="in-process",
        store=mutants.WholeStore(),
        executor=SlowToSave(),
        at=["before-save:left"],
    )

    assert [finding.message for finding in report.findings] == []


@agent
def nothing() -> str:
    return "nothing"


@agent
def something(text: str) -> str:
    return text + "!"


no_inputs = pipeline(nothing >> something, name="no-inputs")


@pytest.mark.parametrize("factory", ["open_plain", "open_async", "open_managed", "open_by_option", "open_by_keyword"])
@pytest.mark.parametrize("mode", ["fork", "in-process"])
@pytest.mark.parametrize(
    ("target", "inputs"), [(pipelines.chain, {"topic": "x"}), (no_inputs, {})], ids=["inputs", "none"]
)
def test_three_methods_in_any_shape_are_enough(factory: str, mode: str, target: Any, inputs: dict[str, Any]) -> None:
    report = explore(target, inputs, mode=mode, store=f"{PLAIN}:{factory}")

    assert [str(finding) for finding in report.findings] == []
    assert report.verdict is Verdict.PASS
    assert len(report.rows) > 10


@pytest.mark.parametrize("mode", ["fork", "in-process"])
def test_a_factory_that_takes_no_location_is_shared_and_left_as_it_was(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIN_STORE", str(tmp_path))

    report = explore(pipelines.chain, {"topic": "x"}, mode=mode, store=f"{PLAIN}:open_fixed")

    assert report.verdict is Verdict.PASS
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", ["fork", "in-process"])
def test_a_factory_of_two_arguments_is_refused_as_check_refuses_it(mode: str) -> None:
    with pytest.raises(ExplorationError, match="requires 2 arguments"):
        explore(pipelines.chain, {"topic": "x"}, mode=mode, store=f"{PLAIN}:open_two")


def test_an_observer_of_the_store_s_name_sees_the_store_itself() -> None:
    from n00dles_testing.crash.recorded_store import Fence, recorded_store

    inner = mutants.WholeStore()

    assert repr(recorded_store(inner, None, Fence())) == repr(inner)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["fork", "in-process"])
def test_more_lives_are_killed_at_each_point_that_the_resumed_run_passes(mode: str) -> None:
    report = explore(pipelines.chain, {"topic": "x"}, mode=mode, at=["after-save:edit", "run-finished"], lives=2)

    plans = [" ".join(map(str, row.plan)) for row in report.rows]
    assert plans == [
        "after-save:edit",
        "run-finished",
        "after-save:edit run-started",
        "after-save:edit before-opening-save",
        "after-save:edit after-opening-save",
        *(f"after-save:edit {kind}:publish" for kind in ("before", "during", "after", "before-save", "after-save")),
        "after-save:edit run-finished",
        "run-finished run-started",
        "run-finished run-finished",
    ]
    assert {row.lives for row in report.rows[2:]} == {3}
    assert report.verdict is Verdict.PASS
    assert (report.points, report.left_out) == (32, 19)


def test_a_budget_is_shared_among_first_and_later_kills() -> None:
    report = explore(pipelines.chain, {"topic": "x"}, mode="in-process", lives=3, budget=9)

    assert [len(row.plan) for row in report.rows] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert report.verdict is Verdict.PASS


def test_chains_of_kills_through_a_fan_out_are_never_vacuous() -> None:
    report = explore(pipelines.wide, {"text": "tea"}, mode="fork", lives=2, budget=60)

    assert report.verdict is Verdict.PASS
