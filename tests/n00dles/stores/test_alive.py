"""Whether a process is known to be dead, by those on its host."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from n00dles.stores.alive import ALIVE, AliveMark


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def live_child() -> tuple[str, Callable[[], None]]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, ALIVE.take("theirs").encode())
        os.close(writing)
        signal.pause()
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()

    def kill() -> None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    return told, kill


def test_a_process_is_alive_until_it_is_killed() -> None:
    mark = AliveMark()
    mine = mark.take("mine")
    child, kill = live_child()

    before = mark.is_dead(child)
    kill()

    assert len({mine, child, ""}) == 3
    assert (before, mark.is_dead(child), mark.is_dead(mine)) == (False, True, False)


def test_nothing_is_known_of_a_process_whose_file_is_not_here(folder: Path) -> None:
    mark = AliveMark()
    child, kill = live_child()
    kill()

    next(folder.rglob(child)).unlink()

    assert [mark.is_dead(name) for name in (child, "", "../../x", "0" * 32)] == [False, False, False, False]


def test_the_file_is_there_while_the_process_holds_leases(folder: Path) -> None:
    mark = AliveMark()

    name = mark.take("1")
    assert mark.take("2") == name
    mark.drop("1")
    there = [path.name for path in folder.glob("n00dles-alive-*/*")]
    mark.drop("2")
    mark.drop("2")

    assert there == [name]
    assert list(folder.glob("n00dles-alive-*/*")) == []
    assert not mark.is_dead(name)  # nothing is known of it
