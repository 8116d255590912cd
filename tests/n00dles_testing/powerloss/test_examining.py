from __future__ import annotations

import mmap
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from n00dles_testing.powerloss import examining
from n00dles_testing.powerloss.comparing import Expected, compare
from n00dles_testing.powerloss.examining import NEXT, Examiner, Seen, Step
from n00dles_testing.powerloss.faults_found import Fault, FaultKind
from n00dles_testing.powerloss.judging import fault_of
from n00dles_testing.powerloss.operations import ROOT, Create, Write
from n00dles_testing.powerloss.tree import Tree


class NumberFile:
    """Keeps a number in a file. The subclasses do one thing wrong each."""

    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / "number"
        self.opened()

    def opened(self) -> None:
        """What is done at opening."""

    def load(self) -> int | None:
        return int(self.path.read_text()) if self.path.exists() else None

    def save(self, number: int) -> None:
        self.path.write_text(str(number))

    def close(self) -> None:
        """Nothing is open."""


class Raises(NumberFile):
    def load(self) -> int | None:
        raise ValueError("this is no number")


class Exits(NumberFile):
    def load(self) -> int | None:
        sys.exit("no way")


class EndsItsProcess(NumberFile):
    def load(self) -> int | None:
        os._exit(3)


class ReadsBeyondTheEnd(NumberFile):
    def load(self) -> int | None:
        with self.path.open("r+b") as file:
            file.truncate(1)
            mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            file.truncate(0)
            return mapped[0]


class Hangs(NumberFile):
    def load(self) -> int | None:
        time.sleep(600)
        return None


class CountsItsLoads(NumberFile):
    def load(self) -> int | None:
        number = super().load()
        self.path.write_text(str((number or 0) - 1))
        return number


class ForgetsAtClosing(NumberFile):
    def close(self) -> None:
        self.path.unlink(missing_ok=True)


class FailsAtOpeningAgain(NumberFile):
    def opened(self) -> None:
        with (self.path.parent / "lock").open("x"):
            pass


class LeavesALock(NumberFile):
    def save(self, number: int) -> None:
        with (self.path.parent / "lock").open("x"):
            super().save(number)


class SavesNothing(NumberFile):
    def save(self, number: int) -> None:
        """And says that it has."""


class SavesInMemory(NumberFile):
    saved: int | None = None

    def load(self) -> int | None:
        return self.saved or super().load()

    def save(self, number: int) -> None:
        self.saved = number


class WritesAtOpening(NumberFile):
    def opened(self) -> None:
        temporary = self.path.with_suffix(".tmp")
        temporary.touch()
        temporary.unlink()


@pytest.fixture
def seen_of(tmp_path: Path) -> Iterator[Callable[[type[NumberFile]], Seen]]:
    """Have a subject look at a folder in which it finds the number 2, and a lock if it leaves one."""
    examiners = []

    def seen(subject: type[NumberFile], time_limit: float = 60.0) -> Seen:
        folder = tmp_path / subject.__name__
        folder.mkdir()
        (folder / "number").write_text("2")
        if subject is LeavesALock:
            (folder / "lock").touch()
        examiners.append(Examiner(subject, time_limit=time_limit))
        return examiners[-1].examine(str(folder))

    yield seen
    for examiner in examiners:
        examiner.close()


def judged(seen: Seen) -> Fault | None:
    expected = Expected[int | None](before=None, after={"1": 1, "2": 2, "3": 3})
    return fault_of(seen, lambda loaded: compare(loaded, expected, ["1", "2"], ["1", "2", "3"]))


def test_a_good_state_is_loaded_three_times_and_saved_over(seen_of: Callable[[type[NumberFile]], Seen]) -> None:
    seen = seen_of(NumberFile)

    assert seen.values == {
        Step.LOAD: 2,
        Step.LOAD_AGAIN: 2,
        Step.REOPEN: 2,
        Step.SAVE: NEXT,
        Step.LOAD_NEXT: NEXT,
    }
    assert (seen.failed, seen.wrote) == (None, False)
    assert judged(seen) is None


@pytest.mark.parametrize(
    ("subject", "kind", "told"),
    [
        (Raises, FaultKind.CORRUPT, "ValueError: this is no number"),
        (Exits, FaultKind.CORRUPT, "SystemExit: no way"),
        (EndsItsProcess, FaultKind.CORRUPT, "ended its process, with exit code 3"),
        (ReadsBeyondTheEnd, FaultKind.CORRUPT, "killed by SIGBUS"),
        (CountsItsLoads, FaultKind.UNSTABLE, "2 was loaded at first, and 1 when loaded again"),
        (ForgetsAtClosing, FaultKind.UNSTABLE, "2 was loaded at first, and None when closed, opened"),
        (FailsAtOpeningAgain, FaultKind.UNSTABLE, "FileExistsError"),
        (LeavesALock, FaultKind.WEDGED, "the next save does not work: FileExistsError"),
        (SavesNothing, FaultKind.WEDGED, "and 2 is loaded after it"),
        (SavesInMemory, FaultKind.WEDGED, "and 2 is loaded after it"),
    ],
)
def test_each_kind_of_failure_has_its_fault(
    subject: type[NumberFile], kind: FaultKind, told: str, seen_of: Callable[[type[NumberFile]], Seen]
) -> None:
    fault = judged(seen_of(subject))

    assert fault is not None
    assert fault.kind is kind
    assert told in fault.message


def test_who_never_comes_back_is_ended(tmp_path: Path) -> None:
    with Examiner(Hangs, time_limit=0.5) as examiner:
        seen = examiner.examine(str(tmp_path))

    assert (seen.failed, seen.how) == (Step.LOAD, "it did not come back within 0.5 s")


class TakesItsTime(NumberFile):
    def opened(self) -> None:
        time.sleep(0.3)


def test_what_is_imported_first_is_no_part_of_a_step(tmp_path: Path) -> None:
    waited: list[float] = []

    with Examiner(
        NumberFile, time_limit=0.3, warm_up=lambda: time.sleep(0.6), on_wait=lambda: waited.append(time.monotonic())
    ) as examiner:
        seen = examiner.examine(str(tmp_path))

    assert seen.failed is None
    assert len(waited) > 5


def test_a_process_that_does_not_come_so_far_as_a_state_is_not_held_against_it(tmp_path: Path) -> None:
    with (
        Examiner(NumberFile, warm_up=lambda: os._exit(3)) as examiner,
        pytest.raises(RuntimeError, match="exit code 3"),
    ):
        examiner.examine(str(tmp_path))


def test_each_step_has_the_time_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examining, "_MARGIN", 0.0)  # the alarm comes after a second

    with Examiner(TakesItsTime, time_limit=0.9) as examiner:
        seen = examiner.examine(str(tmp_path))

    assert (seen.failed, len(seen.values)) == (None, 5)


def test_a_state_that_kills_its_reader_does_not_spoil_the_next(tmp_path: Path) -> None:
    class KilledByOne(NumberFile):
        def load(self) -> int | None:
            if super().load() == 1:
                os.abort()
            return super().load()

    for number in (1, 2):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "number").write_text(str(number))

    with Examiner(KilledByOne) as examiner:
        first, second = (examiner.examine(str(tmp_path / name)) for name in "12")

    assert (first.failed, first.how) == (Step.LOAD, "its process was killed by SIGABRT")
    assert (second.failed, second.values[Step.LOAD]) == (None, 2)


def test_it_is_seen_that_opening_changes_the_files_even_if_nothing_is_left_of_it(
    seen_of: Callable[[type[NumberFile]], Seen],
) -> None:
    assert seen_of(WritesAtOpening).wrote


def test_a_write_that_sets_its_time_back_is_seen_by_the_new_file(
    seen_of: Callable[[type[NumberFile]], Seen],
) -> None:
    class Replaces(NumberFile):
        def opened(self) -> None:
            inside = self.path.parent.stat()
            copied = shutil.copy2(self.path, self.path.with_suffix(".copy"))
            os.replace(copied, self.path)
            os.utime(self.path.parent, ns=(inside.st_atime_ns, inside.st_mtime_ns))

    assert seen_of(Replaces).wrote


def test_files_are_neither_new_nor_old_to_who_looks_at_them(tmp_path: Path) -> None:
    class Expires(NumberFile):
        def load(self) -> int | None:
            age = time.time() - self.path.stat().st_mtime
            return super().load() if 1 < age < 60 else None

    Tree().after([Create(0, 0, ROOT, "number", 2), Write(1, 1, 2, 0, b"2")]).write_to(tmp_path / "state")
    (tmp_path / "number").write_text("2")

    with Examiner(Expires) as examiner:
        seen = [examiner.examine(str(folder), last=Step.LOAD) for folder in (tmp_path / "state", tmp_path)]

    assert [(each.values, each.wrote) for each in seen] == [({Step.LOAD: 2}, False)] * 2


def test_who_removes_a_file_while_its_time_is_looked_at_has_changed_something(tmp_path: Path) -> None:
    class Removes(NumberFile):
        def opened(self) -> None:
            real = os.lstat

            def lstat(path: str) -> os.stat_result:
                if path == str(self.path):
                    self.path.unlink(missing_ok=True)
                return real(path)

            os.lstat = lstat  # type: ignore[assignment]

    (tmp_path / "number").write_text("2")

    with Examiner(Removes) as examiner:
        seen = examiner.examine(str(tmp_path), last=Step.LOAD_AGAIN)

    assert (seen.failed, seen.wrote, seen.values) == (None, True, {Step.LOAD: 2, Step.LOAD_AGAIN: 2})


def test_less_is_asked_on_request(tmp_path: Path) -> None:
    with Examiner(LeavesALock) as examiner:
        seen = examiner.examine(str(tmp_path), last=Step.LOAD)

    assert seen.values == {Step.LOAD: None}
    assert list(tmp_path.iterdir()) == []


def test_what_a_subject_prints_is_not_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    class Prints(NumberFile):
        def load(self) -> int | None:
            os.write(1, b"hello")
            os.write(2, b"world")
            return None

    with Examiner(Prints) as examiner:
        examiner.examine(str(tmp_path))

    assert capfd.readouterr() == ("", "")
