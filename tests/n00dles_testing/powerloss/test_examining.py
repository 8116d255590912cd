from __future__ import annotations

import mmap
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from n00dles_testing.powerloss.comparing import Expected, compare
from n00dles_testing.powerloss.examining import NEXT, Examiner, Seen, Step
from n00dles_testing.powerloss.faults_found import Fault, FaultKind
from n00dles_testing.powerloss.judging import fault_of


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
