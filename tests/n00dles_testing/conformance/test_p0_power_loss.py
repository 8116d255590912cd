"""Power losses of real stores: what is found, what is told of it, and what is not taken for a fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance.child import TracingProcedure, name_of
from n00dles_testing.conformance.expect import UnknownOutcomeError
from n00dles_testing.conformance.losing_power import lose_power_of
from n00dles_testing.conformance.nursery import Nursery
from n00dles_testing.conformance.power_judge import Recoveries
from n00dles_testing.conformance.power_loss import Bounds, lose_power, lose_power_after_failed_syncs
from n00dles_testing.conformance.power_safe import expect_enough, expect_followed
from n00dles_testing.conformance.power_workload import everything_once, saved_again
from n00dles_testing.conformance.records import Record
from n00dles_testing.powerloss.calibration import ROWS
from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.powerloss.operations import ROOT, Create, Write
from n00dles_testing.powerloss.state import Lost, State
from n00dles_testing.powerloss.tree import Tree
from n00dles_testing.tracing import why_not

HERE = Path(__file__).parent
MUTANTS = "n00dles_testing.conformance.mutants"
AS_IN_A_CHECK = {"budget": 300, "recoveries": Bounds().recoveries}
"""The bounds within which the clauses judge: what the calibration shows of the explorer must be seen there, too."""
Came = dict[str, Any]
Ask = Callable[..., Came]

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"nothing can be traced here: {why_not()}")


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Return what a procedure says of a store, within small bounds."""

    def asked(target: str, procedure: TracingProcedure, models: list[str], **bounds: float) -> Came:
        workload = everything_once("r1", "r2") if procedure is lose_power else saved_again("r1")
        location = tmp_path / "location"
        location.mkdir(exist_ok=True)
        arguments = {
            "workload": workload.to_dict(),
            "models": models,
            "bounds": {"budget": 60, "seconds": 300, "recoveries": 1, **bounds},
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
        came: Came = reply.get("came", reply)
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

    created = Record.new({"topic": "dogs"})
    large = expected["r2"].after["4"]
    saved = large.after({"b2": {"text": "dogs bark"}})
    assert len(large.completed["b1"]["text"]) > 3 * 4096 - 10
    assert expected["r2"].allowed(["3", "4"], ["3", "4", "5"]) == [large]
    assert expected["r2"].allowed(["3", "4", "5"], ["3", "4", "5", "6"]) == [large, saved]
    assert expected["r2"].allowed(["3", "4", "6"], ["3", "4", "6", "10"]) == [saved, created]
    assert expected["r2"].allowed(["3", "4", "6", "10"], ["3", "4", "6", "10", "11"]) == [created, created]
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
    assert came["syncs"] == 17
    assert came["models"][0]["tried"] >= came["operations"]
    assert [report["missed"] for report in came["models"]] == [0, 0, 0, 0]


def test_a_rename_without_a_sync_of_the_folder_is_told_by_what_was_lost(ask: Ask) -> None:
    came = ask(mutant("p02:ForgetsTheFolder"), lose_power, ["kill", "ext4"], **AS_IN_A_CHECK)

    killed, lost = came["models"]
    row = next(row for row in ROWS if row.title == "write temp, fsync, rename")
    assert [str(row.required[name]) for name in ("kill", "ext4")] == ["clean", "LOST_ACK"]
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


def test_what_a_detached_server_keeps_in_its_memory_is_not_there_after_a_power_loss(ask: Ask) -> None:
    came = ask(f"{HERE / 'serving_stores.py'}:KeepsItInAServer", lose_power, ["kill"], budget=12)

    [report] = came["models"]
    assert (report["findings"], report["unfollowed"]) == ([], "")
    assert report["tried"] >= 12


def test_a_link_by_an_absolute_path_leads_to_what_the_disk_holds_then(ask: Ask) -> None:
    whole, lost = (
        ask(odd(name), lose_power, ["journaled"]) for name in ("LinksToItsLastVersion", "LinksToItsLastVersionUnsynced")
    )

    assert [kinds(report) for report in whole["models"]] == [[]]
    assert [kinds(report)[0] for report in lost["models"]] == ["CORRUPT"]


def test_a_process_that_remembers_what_is_gone_hides_no_fault(ask: Ask) -> None:
    one, other = (
        ask(odd(name), lose_power, ["journaled"])["models"][0]["findings"]
        for name in ("SyncsNothingAndKeepsItInItsProcess", "SyncsNothing")
    )

    assert [(each["kind"], each["count"]) for each in one] == [(each["kind"], each["count"]) for each in other]
    assert one[0]["kind"] == "CORRUPT"


def test_the_calls_of_a_store_that_writes_through_a_map_do_not_tell_what_it_does(ask: Ask) -> None:
    came = ask(odd("WritesThroughAMap"), lose_power, ["ext4"])

    assert list(came) == ["unfollowable"]
    assert "pages" in came["unfollowable"]


def test_files_have_the_permissions_and_about_the_times_that_they_had(ask: Ask) -> None:
    came = ask(odd("KeepsKeys"), lose_power, ["kill", "journaled"])

    assert [kinds(report) for report in came["models"]] == [[], []]
    assert all(report["tried"] > 20 for report in came["models"])


def test_a_socket_that_a_killed_store_has_left_is_there(ask: Ask) -> None:
    came = ask(odd("ListensInItsFolder"), lose_power, ["kill"])

    finding = came["models"][0]["findings"][0]
    assert (finding["kind"], finding["on_disk"][-1]) == ("CORRUPT", "socket (a socket)")
    assert "Address already in use" in finding["message"]


def test_of_a_store_that_keeps_its_files_elsewhere_nothing_is_known(ask: Ask, tmp_path: Path) -> None:
    came = ask(odd("KeepsItBesideItsFolder"), lose_power, ["ext4"])

    assert came == {"unfollowable": f"it keeps something outside of its location: {_beside(tmp_path)}"}


def _beside(folder: Path) -> str:
    return str(folder / "location.store" / f"{b'r1'.hex()}.json")


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


@pytest.mark.parametrize(
    ("name", "found"), [("SyncsTheFileSystem", ()), ("SyncsTheFileSystemUntilItWorks", ("CORRUPT",))]
)
def test_a_sync_of_the_whole_file_system_can_fail_as_well(ask: Ask, name: str, found: tuple[str, ...]) -> None:
    came = ask(odd(name), lose_power_after_failed_syncs, ["journaled"], budget=30, recoveries=0)

    assert [each["sync"].split(",")[0] for each in came["failed"]] == ["syncfs of ."] * 5
    assert {tuple(kinds(each["models"][0])) for each in came["failed"]} == {found}


def test_a_store_that_writes_again_what_was_not_synced_keeps_it(ask: Ask) -> None:
    log = mutant("correct:AppendOnlyLog")

    came = ask(log, lose_power_after_failed_syncs, ["journaled"], budget=30, recoveries=0)

    assert len(came["failed"]) == 10
    assert [kinds(each["models"][0]) for each in came["failed"]] == [[]] * 10
    assert [outcome for outcome in came["failed"][0]["told"] if outcome != "acknowledged"] == [
        "OSError: [Errno 5] Input/output error"
    ]


def test_a_sync_that_fails_may_end_the_process_and_nothing_is_acknowledged_then(ask: Ask) -> None:
    came = ask(odd("EndsItsProcess"), lose_power_after_failed_syncs, ["journaled"], budget=10, recoveries=0)

    assert [kinds(each["models"][0]) for each in came["failed"]] == [[]] * 5
    assert came["failed"][2]["told"] == [
        "acknowledged",
        "acknowledged",
        "acknowledged",
        "the process ended with exit status 1",
        "not called",
        "not called",
        "not called",
    ]


def test_two_savers_that_share_a_sync_which_had_begun_before_lose_the_second(ask: Ask) -> None:
    came = ask(mutant("p02:SharesASync"), lose_power, ["ext4"])

    [finding] = came["models"][0]["findings"]
    assert finding["kind"] == "LOST_ACK"
    assert finding["words"].endswith("(1 bytes) in call `5 or 6` did not reach the disk")
    assert finding["message"].startswith("run 'r2': an acknowledged save is gone")


def test_a_recovery_that_is_not_survived_is_found_late_in_the_workload_as_well(ask: Ask) -> None:
    came = ask(odd("MendsLateWithoutASync"), lose_power, ["journaled"], **AS_IN_A_CHECK)

    assert kinds(came["models"][0]) == ["RECOVERY", "LOST_IN_RECOVERY"]


def test_a_save_that_only_a_second_power_loss_takes_is_told_by_what_was_lost_in_both(ask: Ask) -> None:
    came = ask(mutant("p02_repairs:DropsItsJournalTooEarly"), lose_power, ["ext4"], recoveries=4)

    [finding] = came["models"][0]["findings"]
    assert finding["kind"] == "LOST_IN_RECOVERY"
    assert "takes what was acknowledged before the first: LOST_ACK: run 'r" in finding["message"]
    assert [words.partition(" from byte")[0] for words in finding["lost"]] == ["the data of `runs.log`"]
    when, second = finding["details"]
    assert when == "the second power loss comes after the removal of `runs.journal`, before fsync of the folder"
    assert second.startswith("lost in the second: the data of `runs.log` from byte")
    assert finding["fix"] == "sync `runs.log` (os.fsync) before the removal of `runs.journal`"


def test_a_recovery_that_cannot_be_followed_hides_nothing_and_is_told(ask: Ask) -> None:
    came = ask(odd("MendsThroughAMap"), lose_power, ["ext4"], recoveries=4)

    [report] = came["models"]
    assert "runs.log" in report["unfollowed"]
    assert report["tried"] > 50
    with pytest.raises(UnknownOutcomeError, match="whether a second power loss is survived"):
        expect_followed([report])


def test_what_was_found_stands_though_the_failed_syncs_cannot_be_followed() -> None:
    found = lose_power_of(odd("WritesARepeatThroughAMap"), budget=8)

    assert [(report["model"], report["findings"]) for report in found.models] == [(name, []) for name in MODELS]
    assert (found.reason, found.failed_syncs, found.ok) == ("", (), False)
    assert "where each call is made twice" in found.no_failed_syncs
    assert "pages" in found.no_failed_syncs
    assert found.no_failed_syncs in found.unsure


def test_all_models_share_one_time_and_what_it_did_not_suffice_for_is_told(ask: Ask) -> None:
    came = ask(mutant("p02:ForgetsTheFolder"), lose_power, ["ext4", "journaled", "strict"], seconds=0.01)

    assert all(report["missed"] for report in came["models"])
    with pytest.raises(UnknownOutcomeError, match="there was time for 0 of at least"):
        expect_enough(came["models"])


def test_where_a_store_hung_it_is_told_why_the_rest_was_not_tried() -> None:
    report = {"model": "journaled", "tried": 12, "at_least": 300, "missed": 7, "hung": 3}

    with pytest.raises(UnknownOutcomeError, match="the store hung in 3 states, so the others were not tried"):
        expect_enough([report])


def test_where_no_time_is_left_syncs_are_not_tried_and_that_is_told(ask: Ask) -> None:
    came = ask(mutant("correct:JSONFiles"), lose_power_after_failed_syncs, ["journaled"], seconds=0.01)

    assert (came["failed"], came["untried"]) == ([], 5)


def test_an_error_of_the_check_itself_is_not_held_against_the_store(ask: Ask) -> None:
    assert "the check itself broke" in ask(mutant("correct:JSONFiles"), lose_power, ["no such model"])["vacuous"]


def test_recoveries_are_crashed_early_and_late_and_of_torn_writes_and_others() -> None:
    recoveries = Recoveries(most=5, end=100)
    states = [state(position, torn=torn) for torn in (False, True) for position in (1, 2, 3, 98, 99, 100)]

    crashed = []
    for number, each in enumerate(states):
        if recoveries.wants(each, number):
            recoveries.add(each, number)
            crashed.append((each.position, not each.lost[0].whole))

    assert crashed == [(1, False), (2, False), (98, False), (99, False), (1, True)]
    assert not Recoveries(most=0, end=100).wants(states[0], "any")


def test_a_disk_without_a_file_has_nothing_to_recover() -> None:
    assert not Recoveries(most=5, end=100).wants(State(Tree(), (), (), (), 1), "any")


def state(position: int, *, torn: bool) -> State:
    write = Write(0, 1, 2, 0, b"text")
    tree = Tree().after([Create(0, 0, ROOT, "a", 2)])
    return State(tree, (), (), (Lost(write, "a", "the data of `a`", whole=not torn),), position)
