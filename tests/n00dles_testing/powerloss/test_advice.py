"""What a store has to do, for each kind of operation that is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles_testing.powerloss.exploring import PowerLossFinding, explore_power_loss
from n00dles_testing.powerloss.faults_found import Fault, FaultKind
from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.powerloss.operations import Write
from n00dles_testing.powerloss.state import State
from tests.n00dles_testing.powerloss.logs import Log
from tests.n00dles_testing.powerloss.test_states import saves

FOLDER = "sync the folder (os.open it, and os.fsync the descriptor) after the"


def finding(log: Log, model: str, tmp_path: Path, *, causes: int = 1, early: bool = False) -> PowerLossFinding:
    """Return what is found of a log if nothing may be lost once a call is acknowledged."""

    def judge(_: str, state: State) -> Fault | None:
        is_gone = state.acknowledged and (state.lost or early)
        return Fault(FaultKind.LOST_ACK, "an acknowledged save is gone") if is_gone else None

    report = explore_power_loss(
        log.recording(),
        MODELS[model],
        judge,
        folder=str(tmp_path / "state"),
        calls={"1": "save", "2": "delete"},
        causes=causes,
    )
    return report.findings[0]


def test_a_rename_that_is_lost_needs_a_sync_of_the_folder(tmp_path: Path) -> None:
    found = finding(saves(1, fsync=True), "ext4", tmp_path)

    assert found.fix == f"{FOLDER} rename of `s.tmp`, before the call returns"
    assert found.cause == {"rename in save"}


def test_a_creation_that_is_lost_needs_a_sync_of_the_folder(tmp_path: Path) -> None:
    log = Log()
    log.invoke("1")
    log.create("s")
    log.acknowledge("1")

    assert finding(log, "strict", tmp_path).fix == f"{FOLDER} creation of `s`, before the call returns"


@pytest.mark.parametrize(
    ("name", "more"), [("s", ""), ("r.db-journal", "; SQLite does with PRAGMA synchronous = EXTRA")]
)
def test_a_removal_that_is_lost_needs_a_sync_of_the_folder(name: str, more: str, tmp_path: Path) -> None:
    log = Log({name: b"old"})
    log.invoke("1")
    log.unlink(name)
    log.acknowledge("1")

    assert finding(log, "ext4", tmp_path).fix == f"{FOLDER} removal of `{name}`, before the call returns{more}"


def test_data_that_is_lost_needs_a_sync_of_the_file(tmp_path: Path) -> None:
    log = Log({"s": b"old"})
    log.invoke("1")
    log.write("s", b"new")
    log.acknowledge("1")

    found = finding(log, "ext4", tmp_path)

    assert found.fix == "sync `s` (os.fsync) after it is written, before the call returns"
    assert found.cause == {"data in save"}


def test_a_truncation_that_is_lost_needs_a_sync_of_the_file(tmp_path: Path) -> None:
    log = Log({"s": b"old"})
    log.invoke("1")
    log.truncate("s", 0)
    log.acknowledge("1")

    found = finding(log, "ext4", tmp_path)

    assert found.fix == "sync `s` (os.fsync) after it has changed its size, before the call returns"
    assert found.cause == {"size in save"}


def test_a_sync_that_failed_is_final(tmp_path: Path) -> None:
    log = Log({"s": b"old"})
    log.invoke("1")
    log.write("s", b"new")
    log.fsync("s", failed=True)
    log.fsync("s")
    log.acknowledge("1")

    assert finding(log, "ext4", tmp_path).fix.startswith("take a failed sync as final: write the data again")


def test_what_is_lost_in_another_call_is_told_as_another_cause(tmp_path: Path) -> None:
    log = Log({"s": b"old", "t": b"old"})
    log.invoke("1")
    log.write("s", b"new")
    log.acknowledge("1")
    log.invoke("2")
    log.unlink("t")
    log.acknowledge("2")

    found = finding(log, "ext4", tmp_path, causes=4)

    assert [each.cause for each in (found, *found.further)] == [{"data in save"}, {"removal in delete"}]
    assert found.count > found.further[0].count > 0


def torn(log: Log, tmp_path: Path, *, model: str = "strict") -> str:
    """Return what is to be done if what is there may not be without what was to be there before it."""

    def judge(_: str, state: State) -> Fault | None:
        is_there = "s" in state.tree.listing() or "d" in state.tree.listing()
        is_torn = is_there and any(isinstance(lost.operation, Write) for lost in state.lost)
        return Fault(FaultKind.CORRUPT, "no data") if is_torn else None

    return explore_power_loss(log.recording(), MODELS[model], judge, folder=str(tmp_path / "state")).findings[0].fix


def test_what_was_acknowledged_before_it_was_done_is_to_be_acknowledged_later(tmp_path: Path) -> None:
    log = Log()
    log.invoke("1")
    log.acknowledge("1")
    log.create("s")
    log.fsync()

    assert finding(log, "ext4", tmp_path, early=True).fix.startswith("acknowledge only after the change and its syncs")


def test_the_data_of_a_file_that_gets_its_name_by_a_link(tmp_path: Path) -> None:
    log = Log()
    log.invoke("1")
    log.create("s.tmp")
    log.append("s.tmp", b"new")
    log.link("s.tmp", "s")
    log.unlink("s.tmp")
    log.fsync()

    assert torn(log, tmp_path) == "sync `s.tmp` (os.fsync) before it gets the name `s`"


def test_the_data_of_a_file_in_a_folder_that_is_renamed(tmp_path: Path) -> None:
    log = Log()
    log.invoke("1")
    log.mkdir("d.tmp")
    log.create("d.tmp/f")
    log.append("d.tmp/f", b"new")
    log.rename("d.tmp", "d")
    log.fsync()

    assert torn(log, tmp_path, model="journaled").endswith("(os.fsync) before the rename of `d.tmp` to `d`")


def test_the_data_of_a_file_to_which_another_one_points(tmp_path: Path) -> None:
    log = Log()
    log.invoke("1")
    log.create("part")
    log.append("part", b"new")
    log.create("s.tmp")
    log.append("s.tmp", b"part")
    log.fsync("s.tmp")
    log.rename("s.tmp", "s")
    log.fsync()

    assert torn(log, tmp_path) == "sync `part` (os.fsync) before the rename of `s.tmp` to `s`"


def test_a_new_file_for_which_the_one_before_it_is_removed(tmp_path: Path) -> None:
    log = Log({"s.1": b"old", "t": b"old"})
    log.invoke("1")
    log.create("s")
    log.append("s", b"new")
    log.unlink("s.1")
    log.fsync()

    assert torn(log, tmp_path, model="journaled").startswith("sync `s` (os.fsync) before the removal of `s.1`")


def test_a_copy_beside_what_is_changed_in_place(tmp_path: Path) -> None:
    log = Log({"copy": b"", "s": b"old"})
    log.invoke("1")
    log.append("copy", b"new")
    log.write("s", b"new")

    assert torn(log, tmp_path, model="ext4").startswith("sync `copy` (os.fsync) before `s` is changed")


def test_a_log_needs_checksums_and_has_its_torn_end_cut_off(tmp_path: Path) -> None:
    log = Log({"s": b"one"})
    log.invoke("1")
    log.append("s", b"two")

    assert torn(log, tmp_path).startswith("give each entry of `s` a checksum, take one that does not pass for the end")


def test_the_folder_of_a_name_is_named(tmp_path: Path) -> None:
    log = Log()
    log.mkdir("a")
    log.fsync("a")
    log.fsync()
    log.invoke("1")
    log.create("a/b")
    log.acknowledge("1")

    found = finding(log, "strict", tmp_path)

    assert found.fix.startswith("sync the folder `a` (os.open it, and os.fsync the descriptor) after the creation of")
