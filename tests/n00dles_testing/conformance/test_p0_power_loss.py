"""Power losses of real stores: what is found, what is told of it, and what is not taken for a fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance.child import TracingProcedure, name_of
from n00dles_testing.conformance.nursery import Nursery
from n00dles_testing.conformance.power_loss import lose_power, lose_power_after_failed_syncs
from n00dles_testing.conformance.power_workload import everything_once, saved_again
from n00dles_testing.conformance.records import Record
from n00dles_testing.tracing import why_not

HERE = Path(__file__).parent
MUTANTS = "n00dles_testing.conformance.mutants"
Came = dict[str, Any]
Ask = Callable[..., Came]

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"nothing can be traced here: {why_not()}")


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Return what a procedure says of a store, within small bounds."""

    def asked(target: str, procedure: TracingProcedure, models: list[str], **bounds: int) -> Came:
        workload = everything_once("r1", "r2") if procedure is lose_power else saved_again("r1")
        location = tmp_path / "location"
        location.mkdir()
        arguments = {
            "workload": workload.to_dict(),
            "models": models,
            "bounds": {"budget": 60, "seconds": 60, "recoveries": 1, **bounds},
        }
        nursery = Nursery(target)
        try:
            with nursery.fork(tracing=True) as process:
                message = {"procedure": name_of(procedure), "location": str(location), "arguments": arguments}
                reply = process.request(message, 60)
                while reply is not None and "alive" in reply:
                    reply = process.channel.receive(60)
        finally:
            nursery.close()
        assert reply is not None
        came: Came = reply["came"]
        return came

    return asked


def mutant(name: str) -> str:
    return f"{MUTANTS}.{name}"


def odd(name: str) -> str:
    return f"{HERE / 'forgetful_stores.py'}:{name}"


def kinds(report: Came) -> list[str]:
    return [finding["kind"] for finding in report["findings"]]


def test_each_run_is_expected_as_its_last_acknowledged_call_has_left_it() -> None:
    expected = everything_once("r1", "r2").expected()

    saved = Record.new({"topic": "dogs"}).after({"b1": {"text": "dogs bark"}})
    created = Record.new({"topic": "dogs"})
    assert expected["r2"].allowed(["3", "4"], ["3", "4", "5"]) == [saved]
    assert expected["r2"].allowed(["3", "4"], ["3", "4", "9"]) == [saved, created]
    assert expected["r2"].allowed(["3", "4", "9"], ["3", "4", "9"]) == [created]
    assert [record.order for record in expected["r1"].after.values()] == [
        (),
        ("a1",),
        ("a1", "a2"),
        ("a1", "a2"),
        ("a1", "a2", "a3"),
    ]


def test_a_store_that_syncs_what_it_must_is_whole_under_every_model(ask: Ask) -> None:
    came = ask(mutant("correct:JSONFiles"), lose_power, ["kill", "ext4", "journaled", "strict"])

    assert [(report["model"], report["findings"]) for report in came["models"]] == [
        ("kill", []),
        ("ext4", []),
        ("journaled", []),
        ("strict", []),
    ]
    assert came["syncs"] == 13
    assert came["models"][0]["tried"] >= came["operations"]


def test_a_rename_without_a_sync_of_the_folder_is_told_by_what_was_lost(ask: Ask) -> None:
    came = ask(mutant("p02:ForgetsTheFolder"), lose_power, ["kill", "ext4"])

    killed, lost = came["models"]
    assert (kinds(killed), kinds(lost)) == ([], ["LOST_ACK"])
    [finding] = lost["findings"]
    name = b"r1".hex()
    assert finding["words"] == f"the rename of `{name}.new` to `{name}.json` in call `2` did not reach the disk"
    assert finding["acknowledged"] == ["1", "2"]
    assert finding["message"].startswith("run 'r1': an acknowledged save is gone")
    assert [text.partition(" ")[0] for text in finding["on_disk"]] == [f"{name}.json", f"{name}.new", "lock"]


def test_a_file_whose_name_came_before_its_bytes_does_not_load(ask: Ask) -> None:
    came = ask(mutant("p01:RenamesWithoutASync"), lose_power, ["ext4"])

    finding = came["models"][0]["findings"][0]
    assert finding["kind"] == "CORRUPT"
    assert "reached the disk, the data of" in finding["words"]


def test_what_a_store_keeps_in_its_process_is_not_there_after_a_power_loss(ask: Ask) -> None:
    came = ask(odd("KeepsItInItsProcess"), lose_power, ["ext4"])

    assert came["models"][0]["findings"] == []
    assert came["models"][0]["tried"] > 10


def test_the_calls_of_a_store_that_writes_through_a_map_do_not_tell_what_it_does(ask: Ask) -> None:
    came = ask(odd("WritesThroughAMap"), lose_power, ["ext4"])

    assert list(came) == ["unfollowable"]
    assert "pages" in came["unfollowable"]


def test_a_store_that_is_wrong_without_a_power_loss_is_not_judged(ask: Ask) -> None:
    came = ask(odd("SavesNothing"), lose_power, ["ext4"])

    assert came == {"wrong": "save raised PermissionError: no"}


def test_of_a_store_without_files_there_is_nothing_to_lose(ask: Ask) -> None:
    came = ask(odd("WritesNoFile"), lose_power, ["kill"])

    assert came["wrong"].startswith("load_or_create gave another record")


def test_a_sync_that_is_tried_again_has_lost_what_it_was_to_write(ask: Ask) -> None:
    came = ask(mutant("p03:RetriesTheSync"), lose_power_after_failed_syncs, ["journaled"], budget=30, recoveries=0)

    assert [kinds(report) for report in came["undisturbed"]] == [[]]
    assert len(came["failed"]) == 5
    assert {tuple(kinds(each["models"][0])) for each in came["failed"]} == {("CORRUPT",)}
    assert all(outcome == "acknowledged" for each in came["failed"] for outcome in each["told"])


def test_a_store_that_writes_again_what_was_not_synced_keeps_it(ask: Ask) -> None:
    log = mutant("correct:AppendOnlyLog")

    came = ask(log, lose_power_after_failed_syncs, ["journaled"], budget=30, recoveries=0)

    assert len(came["failed"]) == 10
    assert [kinds(each["models"][0]) for each in came["failed"]] == [[]] * 10
    assert [outcome for outcome in came["failed"][0]["told"] if outcome != "acknowledged"] == [
        "OSError: [Errno 5] Input/output error"
    ]
