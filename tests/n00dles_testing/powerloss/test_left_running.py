"""What a state makes a store start is gone before the next state is laid out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from n00dles_testing.powerloss import left_running
from n00dles_testing.powerloss.examining import Examiner, Step


class NumberFile:
    """Keeps a number in a file."""

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


class LeavesAProcess(NumberFile):
    """Detaches a process, and takes down its number beside the folder."""

    def opened(self) -> None:
        program = "import os, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()} '); time.sleep(60)"
        subprocess.Popen([sys.executable, "-S", "-c", program, self.numbers()], start_new_session=True)
        while not os.path.exists(self.numbers()):
            time.sleep(0.001)

    def numbers(self) -> str:
        return f"{self.path.parent}.numbers"


class LeavesAnOrphan(LeavesAProcess):
    """Forks twice, so that the process has another parent; it shares all that was open."""

    def opened(self) -> None:
        reads, writes = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                with open(self.numbers(), "a") as file:
                    file.write(f"{os.getpid()} ")
                os.write(writes, b".")
                time.sleep(60)
            os._exit(0)
        os.wait()
        os.read(reads, 1)


class LeavesAnOrphanAndDies(LeavesAnOrphan):
    def load(self) -> int | None:
        os.kill(os.getpid(), signal.SIGKILL)
        return None


class LeavesAnOrphanAndHangs(LeavesAnOrphan):
    def load(self) -> int | None:
        time.sleep(600)
        return None


@pytest.mark.parametrize(
    ("subject", "how"),
    [
        (LeavesAProcess, ""),
        (LeavesAnOrphan, ""),
        (LeavesAnOrphanAndDies, "its process was killed by SIGKILL"),
        (LeavesAnOrphanAndHangs, "it did not come back within 4 s"),
    ],
)
def test_what_a_state_leaves_running_is_gone_before_the_next(
    subject: type[LeavesAProcess], how: str, tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()

    with Examiner(subject, time_limit=4) as examiner:
        for _ in range(2):
            seen = examiner.examine(str(folder))
            numbers = [int(number) for number in (tmp_path / "state.numbers").read_text().split()]
            assert numbers
            assert [number for number in numbers if Path(f"/proc/{number}").exists()] == []
            assert seen.how == how


def test_who_examines_adopts_no_process_and_leaves_its_others_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        with Examiner(LeavesAnOrphan) as examiner:
            examiner.examine(str(tmp_path))

        assert other.poll() is None
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        assert str(other.pid) in children
        assert not set(children) & set(Path(f"{tmp_path}.numbers").read_text().split())
        other.kill()


def test_a_process_that_leaves_none_looks_at_the_next_state_as_well(tmp_path: Path) -> None:
    class TellsItsNumber(NumberFile):
        def load(self) -> int | None:
            return os.getpid()

    with Examiner(TellsItsNumber) as examiner:
        first, second = (examiner.examine(str(tmp_path), last=Step.LOAD) for _ in range(2))

    assert first.values == second.values


def test_what_cannot_be_ended_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_running, "_TIME_TO_END", 0.1)
    monkeypatch.setattr(left_running, "_kill", lambda _: None)

    with Examiner(LeavesAnOrphan) as examiner, pytest.raises(left_running.StillRunningError) as raised:
        examiner.examine(str(tmp_path))

    numbers = [int(number) for number in Path(f"{tmp_path}.numbers").read_text().split()]
    for number in numbers:
        os.kill(number, signal.SIGKILL)
    assert f"(process {numbers[0]})" in str(raised.value)


def test_children_are_found_also_where_the_kernel_keeps_no_list_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_running, "_KERNEL_KNOWS_CHILDREN", False)

    with subprocess.Popen(["sleep", "60"]) as child:
        assert child.pid in left_running._descendants(os.getpid())
        child.kill()
