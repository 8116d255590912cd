"""Bytes that come into a watched file from another file, or from a pipe, are told as if they had been written."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import threading
from pathlib import Path

import pytest

from n00dles_testing.tracing import Fail, TracedCall, trace

from .tracing_here import calls, needs_tracing, only, traced_well

pytestmark = needs_tracing

needs_splice = pytest.mark.skipif(not hasattr(os, "splice"), reason="this Python has no splice")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 8192)
    return path


def placed(call: TracedCall) -> tuple[str, int | None, bytes, int | None]:
    return os.path.basename(call.file.path if call.file else ""), call.offset, call.data, call.result


def test_bytes_sent_from_another_file(path: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"0123456789")

    def run() -> None:
        target = os.open(path, os.O_WRONLY)
        os.lseek(target, 100, os.SEEK_SET)
        assert os.sendfile(target, os.open(source, os.O_RDONLY), 2, 5) == 5

    traced = traced_well(run, tmp_path)

    assert placed(only(traced, "sendfile")) == ("f", 100, b"23456", 5)
    assert traced.obstacles == ()
    assert path.read_bytes()[99:106] == b"x23456x"


@pytest.mark.parametrize("place", [None, 4096])
def test_bytes_copied_in_the_kernel(place: int | None, path: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"0123456789")

    def run() -> None:
        target = os.open(path, os.O_WRONLY)
        os.lseek(target, 7, os.SEEK_SET)
        assert os.copy_file_range(os.open(source, os.O_RDONLY), target, 10, 0, place) == 10

    traced = traced_well(run, tmp_path)

    assert placed(only(traced, "copy_file_range")) == ("f", 7 if place is None else place, b"0123456789", 10)
    assert traced.obstacles == ()


@needs_splice
def test_bytes_from_a_pipe(path: Path, tmp_path: Path) -> None:
    def run() -> None:
        reader, writer = os.pipe()
        os.write(writer, b"abc")
        assert os.splice(reader, os.open(path, os.O_WRONLY), 100, offset_dst=9) == 3

    traced = traced_well(run, tmp_path)

    assert placed(only(traced, "splice")) == ("f", 9, b"abc", 3)
    assert traced.obstacles == ()


@needs_splice
def test_a_splice_that_waits_for_its_bytes_keeps_nobody_waiting_and_is_an_obstacle(path: Path, tmp_path: Path) -> None:
    def run() -> None:
        reader, writer = os.pipe()

        def write() -> None:
            (tmp_path / "before").touch()
            os.write(writer, b"abc")

        waiting = threading.Timer(0.1, write)
        waiting.start()
        assert os.splice(reader, os.open(path, os.O_WRONLY), 3) == 3
        waiting.join()

    traced = traced_well(run, tmp_path)

    assert [str(obstacle) for obstacle in traced.obstacles] == [
        f"{path}: its bytes come from another file or a pipe (splice)"
    ]


def test_a_copy_of_a_file_is_told_with_all_its_bytes_and_an_end(path: Path, tmp_path: Path) -> None:
    traced = traced_well(lambda: shutil.copyfile(path, tmp_path / "copy"), tmp_path)

    copied = calls(traced, "sendfile", "write", "copy_file_range")
    assert b"".join(call.data for call in copied) == b"x" * 8192
    assert traced.obstacles == ()


def test_a_transfer_that_is_made_to_fail_does_nothing(path: Path, tmp_path: Path) -> None:
    def run() -> None:
        with pytest.raises(OSError, match="No space"):
            os.sendfile(os.open(path, os.O_WRONLY), os.open(__file__, os.O_RDONLY), 0, 10)

    traced = trace(run, str(tmp_path), on_call=lambda call, _: Fail(errno.ENOSPC) if call.name == "sendfile" else None)

    assert traced.status == 0
    assert placed(only(traced, "sendfile")) == ("f", 0, b"", -errno.ENOSPC)
    assert path.read_bytes() == b"x" * 8192


def test_what_is_read_and_sent_elsewhere_is_not_told(path: Path, tmp_path: Path) -> None:
    def run() -> None:
        one, other = socket.socketpair()
        os.sendfile(one.fileno(), os.open(path, os.O_RDONLY), 0, 10)
        assert other.recv(10) == b"x" * 10

    traced = traced_well(run, tmp_path)

    assert calls(traced, "sendfile") == []
    assert traced.obstacles == ()


def test_a_file_without_a_name_is_told_and_what_is_written_there(tmp_path: Path) -> None:
    def run() -> None:
        descriptor = os.open(tmp_path, os.O_TMPFILE | os.O_RDWR)
        os.write(descriptor, b"abc")
        os.pwrite(descriptor, b"d", 10)
        os.ftruncate(descriptor, 2)

    traced = traced_well(run, tmp_path)

    opened, *rest = calls(traced)
    assert opened.file is not None
    assert (opened.file.path, opened.flags & os.O_TMPFILE) == (str(tmp_path), os.O_TMPFILE)
    assert [(call.name, call.file and call.file.inode, call.offset, call.data) for call in rest] == [
        ("write", opened.inode, 0, b"abc"),
        ("pwrite64", opened.inode, 10, b"d"),
        ("ftruncate", opened.inode, None, b""),
    ]
    assert traced.obstacles == ()
