"""What a program keeps outside of the watched folder is told; what is of no account is not."""

from __future__ import annotations

import logging
import os
import py_compile
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from .tracing_here import needs_tracing, traced_well, write_whole

pytestmark = needs_tracing


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "old").write_bytes(b"old")
    return root


def writes(root: Path) -> None:
    write_whole(root.parent / "beside", b"x")


def writes_through_a_link(root: Path) -> None:
    (root / "link").symlink_to(root.parent / "beside")
    write_whole(root / "link", b"x", os.O_CREAT | os.O_RDWR)


def writes_aside_and_renames(root: Path) -> None:
    write_whole(root.parent / "aside", b"x")
    os.rename(root.parent / "aside", root.parent / "beside")


def moves_out(root: Path) -> None:
    write_whole(root / "f", b"x")
    os.rename(root / "f", root.parent / "beside")


def links_out(root: Path) -> None:
    write_whole(root / "f", b"x")
    os.link(root / "f", root.parent / "beside")


def points_to_it(root: Path) -> None:
    os.symlink("root/v3", root.parent / "beside")


def appends_and_reads(root: Path) -> None:
    for line in ("a", "b"):
        with open(root.parent / "beside", "a") as file:
            file.write(line)
    (root.parent / "beside").read_text()


@pytest.mark.parametrize(
    "run",
    [writes, writes_through_a_link, writes_aside_and_renames, moves_out, links_out, points_to_it, appends_and_reads],
)
def test_what_is_left_outside_is_told(run: Callable[[Path], None], root: Path) -> None:
    traced = traced_well(lambda: run(root), root)

    assert traced.outside == (str(root.parent / "beside"),)


def test_what_was_there_and_is_another_one_is_told(root: Path) -> None:
    traced = traced_well(lambda: write_whole(root.parent / "old", b"new"), root)

    assert traced.outside == (str(root.parent / "old"),)


def test_a_file_that_is_open_since_before_is_told_when_it_is_written(root: Path) -> None:
    paths = [root.parent / name for name in ("beside", "log", "untouched")]
    flags = os.O_CREAT | os.O_WRONLY
    store, log, _ = opened = [
        os.open(path, flags | more) for path, more in zip(paths, (0, os.O_APPEND, 0), strict=True)
    ]

    def run() -> None:
        os.write(store, b"x")
        os.write(log, b"x")

    traced = traced_well(run, root)

    assert traced.outside == (str(root.parent / "beside"),)
    for descriptor in opened:
        os.close(descriptor)


def removes_it_again(root: Path) -> None:
    write_whole(root.parent / "beside", b"x")
    os.unlink(root.parent / "beside")
    with tempfile.TemporaryFile(dir=root.parent) as file:
        file.write(b"x")


def sorts_on_disk(root: Path) -> None:
    connection = sqlite3.connect("")
    connection.execute("PRAGMA cache_size = 2")
    connection.execute("CREATE TABLE t AS SELECT randomblob(40000) UNION ALL SELECT randomblob(40000)")


def logs(root: Path) -> None:
    handler = logging.FileHandler(root.parent / "log")
    handler.emit(logging.makeLogRecord({"msg": "saved"}))
    handler.close()
    os.rename(root.parent / "log", root.parent / "log.1")


def compiles(root: Path) -> None:
    (root / "module.py").write_text("x = 1")
    py_compile.compile(str(root / "module.py"), cfile=str(root.parent / "__pycache__" / "module.cpython-311.pyc"))


def locks(root: Path) -> None:
    os.close(os.open(root.parent / "lock", os.O_CREAT | os.O_RDWR))


def only_reads(root: Path) -> None:
    with open(root.parent / "old", "r+b") as file:
        file.read()
    (root.parent / "old").read_text()


def writes_to_a_device(root: Path) -> None:
    write_whole("/dev/null", b"x", os.O_WRONLY)
    Path("/proc/self/comm").write_text("store")


def is_refused(root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        (root.parent / "nowhere" / "f").write_text("x")


@pytest.mark.parametrize(
    "run",
    [removes_it_again, sorts_on_disk, logs, compiles, locks, only_reads, writes_to_a_device, is_refused],
)
def test_what_keeps_nothing_is_not_told(run: Callable[[Path], None], root: Path) -> None:
    traced = traced_well(lambda: run(root), root)

    assert traced.outside == ()
