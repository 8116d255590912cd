"""A call can be made to fail, to write less, or never to happen because its process is killed."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from n00dles_testing.tracing import Fail, Injection, Kill, Marks, Short, TracedCall, trace

from .tracing_here import calls, needs_tracing, only, write_whole

pytestmark = needs_tracing


def at(name: str, injection: Injection) -> Callable[[TracedCall, int], Injection | None]:
    """Answer with an injection at each call of this name."""
    return lambda call, _: injection if call.name == name else None


def test_each_call_that_may_change_something_is_asked_for_once_in_order(tmp_path: Path) -> None:
    asked: list[tuple[int, str]] = []

    def run() -> None:
        write_whole(tmp_path / "f", b"x")
        os.close(os.open(tmp_path / "f", os.O_RDONLY))
        os.stat(tmp_path / "f")
        os.rename(tmp_path / "f", tmp_path / "g")

    def listen(call: TracedCall, number: int) -> None:
        asked.append((number, call.name))
        assert (call.exited, call.result) == (None, None)

    traced = trace(run, str(tmp_path), on_call=listen)

    assert asked == [(number, call.name) for number, call in enumerate(calls(traced), 1)]
    assert [name for _, name in asked][:3] == ["openat", "write", "openat"]


@pytest.mark.parametrize(
    ("name", "number"),
    [("openat", errno.EMFILE), ("write", errno.ENOSPC), ("fsync", errno.EIO), ("rename", errno.EXDEV)],
)
def test_a_call_that_is_made_to_fail_does_nothing(name: str, number: int, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    root = tmp_path / "root"
    root.mkdir()

    def run() -> None:
        try:
            with (root / "f").open("wb", 0) as file:
                file.write(b"abc")
                os.fsync(file)
            (root / "f").rename(root / "g")
        except OSError as error:
            seen.write_text(str(error.errno))

    traced = trace(run, str(root), on_call=at(name, Fail(number)))

    failed = only(traced, name)
    assert (failed.result, failed.injected, failed.exited is not None) == (-number, errno.errorcode[number], True)
    assert seen.read_text() == str(number)
    assert {path.name: path.read_bytes() for path in root.iterdir()} == {
        "openat": {},
        "write": {"f": b""},
        "fsync": {"f": b"abc"},
        "rename": {"f": b"abc"},
    }[name]


def test_sqlite_takes_an_injected_error_for_a_full_disk(tmp_path: Path) -> None:
    def run() -> None:
        connection = sqlite3.connect(tmp_path / "a.db")
        with pytest.raises(sqlite3.OperationalError, match="full"):
            connection.execute("CREATE TABLE t (x)")
        connection.rollback()
        connection.execute("SELECT * FROM sqlite_master").fetchall()

    traced = trace(run, str(tmp_path), on_call=at("pwrite64", Fail(errno.ENOSPC)))

    assert traced.status == 0
    assert "ENOSPC" in {call.injected for call in calls(traced)}


@pytest.mark.parametrize("way", ["write", "pwrite64", "writev", "pwritev", "pwritev2"])
def test_a_short_write_writes_its_first_bytes_and_says_how_many(way: str, tmp_path: Path) -> None:
    path = tmp_path / "f"
    parts = [b"", b"abcdef", b"ghi"] if way == "writev" else [b"abcdef", b"ghi"]

    def run() -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
        written = {
            "write": lambda: os.write(descriptor, b"abcdefghi"),
            "pwrite64": lambda: os.pwrite(descriptor, b"abcdefghi", 0),
            "writev": lambda: os.writev(descriptor, parts),
            "pwritev": lambda: os.pwritev(descriptor, parts, 0),
            "pwritev2": lambda: os.pwritev(descriptor, parts, 0, os.RWF_DSYNC),
        }[way]()
        os.mkdir(tmp_path / str(written))

    traced = trace(run, str(tmp_path), on_call=lambda call, _: Short(4) if "write" in call.name else None)

    write = next(call for call in calls(traced) if "write" in call.name)
    assert traced.status == 0
    assert (write.result, write.data, write.injected) == (4, b"abcd", "short")
    assert path.read_bytes() == b"abcd"
    assert (tmp_path / "4").exists()


@pytest.mark.skipif(not hasattr(os, "pwritev"), reason="this Python has no pwritev")
def test_a_short_write_of_parts_keeps_its_flags_and_moves_its_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "f"
    asked: list[int] = []

    def run() -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
        parts = [bytearray(b"abcdef"), bytearray(b"ghi")]
        written = os.pwritev(descriptor, parts, -1, os.RWF_DSYNC)
        assert (written, os.lseek(descriptor, 0, os.SEEK_CUR)) == (4, 4)
        assert os.writev(descriptor, parts) == 9

    def shorten_first(call: TracedCall, number: int) -> Injection | None:
        if call.name != "pwritev2":
            return None
        asked.append(number)
        return Short(4)

    traced = trace(run, str(tmp_path), on_call=shorten_first)

    write = only(traced, "pwritev2")
    assert (traced.status, len(asked)) == (0, 1)
    assert (write.offset, write.data, write.flags & os.O_SYNC) == (0, b"abcd", os.O_DSYNC)
    assert path.read_bytes() == b"abcdabcdefghi"


SYNCED_WRITES: dict[str, Callable[[int], object]] = {
    "write": lambda descriptor: os.write(descriptor, b"ab"),
    "writev": lambda descriptor: os.writev(descriptor, [b"a", b"b"]),
    "pwrite64": lambda descriptor: os.pwrite(descriptor, b"ab", 1),
    "pwritev2": lambda descriptor: os.pwritev(descriptor, [b"a", b"b"], -1, os.RWF_SYNC),
}


@pytest.mark.parametrize("way", SYNCED_WRITES)
@pytest.mark.parametrize("appends", [0, os.O_APPEND])
def test_a_synced_write_whose_sync_fails_has_written_and_moves_no_descriptor(
    way: str, appends: int, tmp_path: Path
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"12345")

    def run() -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_DSYNC | appends)
        os.lseek(descriptor, 1, os.SEEK_SET)
        with pytest.raises(OSError, match="Input/output error"):
            SYNCED_WRITES[way](descriptor)
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == 1

    traced = trace(run, str(tmp_path), on_call=at(way, Fail(errno.EIO, after_writing=True)))

    write = only(traced, way)
    assert traced.status == 0
    assert (write.result, write.injected, write.data, write.offset) == (-errno.EIO, "EIO", b"ab", 5 if appends else 1)
    assert path.read_bytes() == (b"12345ab" if appends else b"1ab45")


def test_a_call_that_writes_nothing_fails_as_it_is_told(tmp_path: Path) -> None:
    def run() -> None:
        with pytest.raises(OSError, match="Input/output error"):
            os.mkdir(tmp_path / "folder")

    traced = trace(run, str(tmp_path), on_call=lambda *_: Fail(errno.EIO, after_writing=True))

    assert (traced.status, list(tmp_path.iterdir())) == (0, [])


def test_a_buffered_file_completes_a_short_write_itself(tmp_path: Path) -> None:
    data = os.urandom(100_000)

    traced = trace(
        lambda: (tmp_path / "f").write_bytes(data),
        str(tmp_path),
        on_call=lambda call, _: Short(40_000) if call.name == "write" else None,
    )

    assert [call.result for call in calls(traced, "write")] == [40_000, 40_000, 20_000]
    assert [call.injected for call in calls(traced, "write")] == ["short", "short", ""]
    assert (tmp_path / "f").read_bytes() == data


def test_only_a_write_can_be_short(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="fsync writes no bytes"):
        trace(lambda: sync_whole(tmp_path / "f"), str(tmp_path), on_call=at("fsync", Short(1)))


def test_a_sync_that_waits_for_no_disk_is_told_like_another(tmp_path: Path) -> None:
    traced = trace(lambda: sync_whole(tmp_path / "f"), str(tmp_path), syncs=False)

    sync = only(traced, "fsync")
    assert (traced.status, sync.result, sync.exited, sync.injected) == (0, 0, sync.entered + 1, "")


def sync_whole(path: Path) -> None:
    """Open, sync, close."""
    with path.open("wb") as file:
        os.fsync(file)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_kill_at_a_call_leaves_what_the_calls_before_it_did(number: int, tmp_path: Path) -> None:
    def run() -> None:
        with (tmp_path / "f").open("wb", 0) as file:
            file.write(b"abc")
            os.fsync(file)
        os.rename(tmp_path / "f", tmp_path / "g")
        (tmp_path / "end").touch()

    traced = trace(run, str(tmp_path), on_call=lambda _, n: Kill() if n == number else None)

    told = calls(traced)
    assert traced.status == -signal.SIGKILL
    assert len(told) == number
    assert (told[-1].injected, told[-1].result, told[-1].exited) == ("SIGKILL", None, None)
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert left == [{}, {"f": b""}, {"f": b"abc"}, {"f": b"abc"}][number - 1]


def test_a_kill_ends_all_threads_and_the_marks_say_how_far_it_came(tmp_path: Path) -> None:
    marks = Marks()
    begun = threading.Event()

    def beside() -> None:
        while True:
            write_whole(tmp_path / "beside", b"x")
            begun.set()

    def run() -> None:
        threading.Thread(target=beside, daemon=True).start()
        begun.wait(20)
        marks.put("ACK 1")
        os.mkdir(tmp_path / "folder")

    traced = trace(
        run, str(tmp_path), marks=marks, on_call=lambda call, _: Kill() if "mkdir" in call.name else None, time_limit=20
    )

    assert (traced.status, traced.timed_out) == (-signal.SIGKILL, False)
    assert not (tmp_path / "folder").exists()
    assert len({call.thread for call in calls(traced)}) == 2


def test_a_kill_in_a_child_leaves_its_parent_alive(tmp_path: Path) -> None:
    def run() -> None:
        if (child := os.fork()) == 0:
            os.mkdir(tmp_path / "by the child")
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        (tmp_path / "by the parent").touch()

    traced = trace(run, str(tmp_path), on_call=lambda call, _: Kill() if "mkdir" in call.name else None)

    assert traced.status == 0
    assert [path.name for path in tmp_path.iterdir()] == ["by the parent"]


def save_one_row(path: Path, marks: Marks) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t (x)")
    connection.execute("INSERT INTO t VALUES ('row')")
    marks.put("ACK")
    connection.close()


def killed_at(number: int, root: Path) -> tuple[bool, bool, list[str]]:
    """Whether the kill came at all, whether a row was acknowledged before it, and the rows that are there after it."""
    marks = Marks()
    root.mkdir()
    traced = trace(
        lambda: save_one_row(root / "a.db", marks),
        str(root),
        marks=marks,
        on_call=lambda _, n: Kill() if n == number else None,
    )
    connection = sqlite3.connect(root / "a.db")
    has_table = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    rows = [row[0] for row in connection.execute("SELECT x FROM t")] if has_table else []
    connection.close()
    fired = any(call.injected for call in calls(traced))
    return fired, len(traced.events) > len(calls(traced)), rows


def test_killed_at_any_call_sqlite_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    outcomes = []
    for number in range(1, 200, 4):
        outcomes.append(killed_at(number, tmp_path / str(number)))
        if not outcomes[-1][0]:
            break

    assert len(outcomes) > 5
    assert outcomes[0] == (True, False, [])
    assert outcomes[-1] == (False, True, ["row"])
    assert all(rows == ["row"] for _, acknowledged, rows in outcomes if acknowledged)
