"""A fault of each kind, in a way of saving that has it, found among the states that a kill can leave."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from n00dles_testing.powerloss.calibration import Calibrated, Required, Row, calibrate
from n00dles_testing.powerloss.faults_found import Fault, FaultKind
from n00dles_testing.powerloss.judging import crash_of_recovery
from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.powerloss.protocols import SaveProtocol
from n00dles_testing.powerloss.tree import Tree
from n00dles_testing.tracing import why_not
from tests.n00dles_testing.powerloss.logs import Log


class Replaced:
    """Keeps a number in a file that is replaced whole. The others differ from it in one thing."""

    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / "number"
        self.opened()

    def opened(self) -> None:
        """What is done at opening."""

    def load(self) -> int | tuple[int, ...] | None:
        return self.read(self.path)

    def read(self, path: Path) -> int | None:
        return int(path.read_text()) if path.exists() else None

    def save(self, number: int) -> None:
        self.replace(self.path, number)

    def replace(self, path: Path, number: int) -> None:
        temporary = path.with_suffix(".tmp")
        with temporary.open("w") as file:
            file.write(str(number))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        self.sync_folder()

    def sync_folder(self) -> None:
        folder = os.open(self.path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def close(self) -> None:
        """Nothing is open."""


class InTwoFiles(Replaced):
    """A record and its copy are saved one after the other, and loaded together."""

    def load(self) -> int | tuple[int, ...] | None:
        one, other = self.read(self.path), self.read(self.path.with_suffix(".copy"))
        return one if one == other else (one or 0, other or 0)

    def save(self, number: int) -> None:
        self.replace(self.path, number)
        self.replace(self.path.with_suffix(".copy"), number)


class BeginsWithAPlaceholder(Replaced):
    def opened(self) -> None:
        if not self.path.exists():
            self.replace(self.path, 0)


class UnderALockThatOutlivesItsOwner(Replaced):
    def save(self, number: int) -> None:
        lock = self.path.with_suffix(".lock")
        with lock.open("x"):
            self.replace(self.path, number)
        lock.unlink()


class GivesBackWhatItDropsNext(Replaced):
    """A save is noted first; who finds the note takes its value, and removes it without doing what it says."""

    def load(self) -> int | tuple[int, ...] | None:
        note = self.path.with_suffix(".note")
        if note.exists():
            number = self.read(note)
            note.unlink()
            self.sync_folder()
            return number
        return super().load()

    def save(self, number: int) -> None:
        note = self.path.with_suffix(".note")
        self.replace(note, number)
        self.replace(self.path, number)
        note.unlink()
        self.sync_folder()


class UndoesAHalfSave(Replaced):
    """Overwrites in place, having kept the old value aside; opening puts that back before it drops it."""

    def opened(self) -> None:
        old = self.path.with_suffix(".old")
        if old.exists():
            self.undo(old, old.read_text())

    def undo(self, old: Path, text: str) -> None:
        self.overwrite(text)
        old.unlink()
        self.sync_folder()

    def load(self) -> int | tuple[int, ...] | None:
        text = self.path.read_text() if self.path.exists() else "none"
        return None if text == "none" else int(text)

    def save(self, number: int) -> None:
        old = self.path.with_suffix(".old")
        temporary = self.path.with_suffix(".tmp")
        with temporary.open("w") as file:
            file.write(self.path.read_text() if self.path.exists() else "none")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, old)
        self.sync_folder()
        self.overwrite(str(number))
        old.unlink()
        self.sync_folder()

    def overwrite(self, text: str) -> None:
        with self.path.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self.sync_folder()


class DropsBeforeItUndoes(UndoesAHalfSave):
    def undo(self, old: Path, text: str) -> None:
        old.unlink()
        self.sync_folder()
        self.overwrite(text)


class DropsItsNoteBeforeItDoesWhatItSays(Replaced):
    """A save is only noted, which is synced; the next opening removes the note, and then does what it said."""

    def opened(self) -> None:
        note = self.path.with_suffix(".note")
        if note.exists():
            number = self.read(note)
            note.unlink()
            self.sync_folder()
            self.replace(self.path, number or 0)

    def load(self) -> int | tuple[int, ...] | None:
        note = self.path.with_suffix(".note")
        return self.read(note if note.exists() else self.path)

    def save(self, number: int) -> None:
        self.replace(self.path.with_suffix(".note"), number)


SUBJECTS = {
    subject.__name__: subject
    for subject in (
        Replaced,
        InTwoFiles,
        BeginsWithAPlaceholder,
        UnderALockThatOutlivesItsOwner,
        GivesBackWhatItDropsNext,
        UndoesAHalfSave,
        DropsBeforeItUndoes,
        DropsItsNoteBeforeItDoesWhatItSays,
    )
}


def explored(name: str) -> Calibrated:
    protocol = SaveProtocol(name, name, SUBJECTS[name])
    return calibrate(Row(protocol, dict.fromkeys(MODELS, Required())))


@pytest.fixture(scope="module")
def found_in() -> Iterator[Callable[[str], dict[str, set[str]]]]:
    """Explore a way of saving in a process that has one thread, as its tracer must have."""
    if reason := why_not():
        pytest.skip(reason)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:

        def found(name: str) -> dict[str, set[str]]:
            return {cell.model: set(cell.found) for cell in pool.submit(explored, name).result().cells}

        yield found


@pytest.mark.parametrize("name", ["Replaced", "UndoesAHalfSave"])
def test_a_right_way_is_clean_under_every_model(
    name: str, found_in: Callable[[str], dict[str, set[FaultKind]]]
) -> None:
    assert found_in(name) == {model: set() for model in MODELS}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("InTwoFiles", FaultKind.MIXED),
        ("BeginsWithAPlaceholder", FaultKind.PHANTOM),
        ("UnderALockThatOutlivesItsOwner", FaultKind.WEDGED),
        ("GivesBackWhatItDropsNext", FaultKind.UNSTABLE),
        ("DropsBeforeItUndoes", FaultKind.RECOVERY),
        ("DropsItsNoteBeforeItDoesWhatItSays", FaultKind.LOST_IN_RECOVERY),
    ],
)
def test_a_fault_is_found_and_nothing_else(
    name: str, kind: FaultKind, found_in: Callable[[str], dict[str, set[FaultKind]]]
) -> None:
    found = found_in(name)

    assert found["kill"] == {kind}


def test_after_a_second_power_loss_the_fix_is_for_what_was_lost_in_it() -> None:
    log = Log({"s": b"old"})
    log.create("s.new")
    log.append("s.new", b"new")
    log.rename("s.new", "s")
    log.fsync()

    def judged(left: Tree) -> Fault | None:
        return Fault(FaultKind.CORRUPT, "no data") if left.listing().get("s") not in (b"old", b"new") else None

    fault = crash_of_recovery(log.recording(), MODELS["journaled"], judged)

    assert fault is not None
    assert fault.kind is FaultKind.RECOVERY
    assert fault.fix == "sync `s.new` (os.fsync) before it is renamed"


def log_of_a_repair() -> Log:
    """Return how a store copies what its journal has to the end of its file, and removes the journal, unsynced."""
    log = Log({"s": b"old;", "s.journal": b"new;"})
    log.append("s", b"new;")
    log.unlink("s.journal")
    log.create("t")
    return log


def lost_or_torn(left: Tree) -> Fault | None:
    files = left.listing()
    if "t" in files and files["s"] == b"old;new;":
        return Fault(FaultKind.CORRUPT, "t is empty")
    if "s.journal" not in files and files["s"] != b"old;new;":
        return Fault(FaultKind.LOST_ACK, "the new one is gone")
    return None


def test_what_was_acknowledged_before_the_first_power_loss_must_be_there_after_the_second() -> None:
    fault = crash_of_recovery(log_of_a_repair().recording(), MODELS["ext4"], lost_or_torn)

    assert fault is not None
    lost = next(each for each in fault.all() if each.kind is FaultKind.LOST_IN_RECOVERY)
    assert lost.message == (
        "a second power loss, while it opens and loads, takes what was acknowledged before the first: "
        "LOST_ACK: the new one is gone"
    )
    assert lost.smaller is not None
    lost = lost.smaller(60.0)
    assert lost.cause == {"data in the recovery"}
    assert lost.fix == "sync `s` (os.fsync) before the removal of `s.journal`"
    assert lost.details[-1] == "lost in the second: the data of `s` from byte 4 (4 bytes)"


def test_a_repair_that_removes_first_what_it_repairs_from_is_to_remove_it_last() -> None:
    log = Log({"s": b"old;", "s.journal": b"new;"})
    log.unlink("s.journal")
    log.fsync()
    log.append("s", b"new;")
    log.fsync("s")

    fault = crash_of_recovery(log.recording(), MODELS["kill"], lost_or_torn)

    assert fault is not None
    assert fault.kind is FaultKind.LOST_IN_RECOVERY
    assert fault.fix.startswith("let a repair remove what it repairs from")


def test_a_fault_of_each_kind_is_looked_for_unless_it_is_not_to_be_or_the_store_hangs() -> None:
    recording = log_of_a_repair().recording()

    def hangs(left: Tree) -> Fault | None:
        fault = lost_or_torn(left)
        return replace(fault, hung=True) if fault else None

    both, one, hung = (
        crash_of_recovery(recording, MODELS["ext4"], judged, all_kinds=all_kinds)
        for judged, all_kinds in ((lost_or_torn, True), (lost_or_torn, False), (hangs, True))
    )

    assert both is not None
    assert {each.kind for each in both.all()} == {FaultKind.RECOVERY, FaultKind.LOST_IN_RECOVERY}
    assert one is not None
    assert hung is not None
    assert (len(one.all()), len(hung.all())) == (1, 1)


def test_what_is_lost_in_a_second_power_loss_is_made_smaller_on_request() -> None:
    log = Log({"s": b"old", "t": b"old"})
    log.write("s", b"new")
    log.write("t", b"new")
    log.create("u")

    def judged(left: Tree) -> Fault | None:
        return Fault(FaultKind.CORRUPT, "no u") if "u" not in left.listing() else None

    fault = crash_of_recovery(log.recording(), MODELS["strict"], judged)
    assert fault is not None
    assert fault.smaller is not None
    smaller = fault.smaller(60.0)

    assert smaller.kind is FaultKind.RECOVERY
    assert smaller.cause == {"a crash in the recovery"}
    assert [each for each in smaller.details if each.startswith("lost in the second")] == []
