"""Each call on a watched file is told with its file, bytes, place and result."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from n00dles_testing.tracing import Mark, Marks, TracedCall, trace, watching

from .tracing_here import calls, needs_tracing, only, traced_well, write_whole

pytestmark = needs_tracing


def assert_no_overlap(told: list[TracedCall]) -> None:
    places = [place for call in told for place in (call.entered, call.exited or 0)]
    assert places == sorted(places)


def test_a_write_tells_file_place_bytes_and_the_size_before_it(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"12345")

    traced = traced_well(lambda: write_whole(path, b"ab", os.O_WRONLY), tmp_path)

    write = only(traced, "write")
    assert write.file is not None
    assert (write.file.path, write.file.inode, write.file.kind, write.file.size) == (
        str(path),
        path.stat().st_ino,
        "file",
        5,
    )
    assert (write.offset, write.data, write.result) == (0, b"ab", 2)
    assert only(traced, "openat").flags & (os.O_WRONLY | os.O_CREAT) == os.O_WRONLY


def test_the_place_of_a_write_is_known_after_seeks_dups_and_in_forks(tmp_path: Path) -> None:
    def run() -> None:
        descriptor = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
        os.write(descriptor, b"0123456789")
        os.lseek(descriptor, 3, os.SEEK_SET)
        copy = os.dup(descriptor)
        os.close(descriptor)
        os.write(copy, b"a")
        if (child := os.fork()) == 0:
            os.write(copy, b"b")
            os._exit(0)
        os.waitpid(child, 0)
        os.write(copy, b"c")
        os.pwrite(copy, b"d", 20)
        os.writev(copy, [b"e", b"", b"fg"])

    traced = traced_well(run, tmp_path)

    writes = [(call.offset, call.data) for call in calls(traced, "write", "pwrite64", "writev")]
    assert writes == [(0, b"0123456789"), (3, b"a"), (4, b"b"), (5, b"c"), (20, b"d"), (6, b"efg")]
    assert (tmp_path / "f").read_bytes() == b"012abcefg9" + b"\0" * 10 + b"d"


def test_what_is_appended_stands_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"xx")

    def run() -> None:
        one, other = (os.open(path, os.O_WRONLY | os.O_APPEND) for _ in range(2))
        os.write(one, b"one")
        os.write(other, b"other")
        os.pwrite(one, b"end", 0)  # O_APPEND beats the offset

    traced = traced_well(run, tmp_path)

    assert [(call.offset, call.data) for call in calls(traced, "write", "pwrite64")] == [
        (2, b"one"),
        (5, b"other"),
        (10, b"end"),
    ]
    assert all(call.flags & os.O_APPEND for call in calls(traced, "write", "pwrite64"))
    assert path.read_bytes() == b"xxoneotherend"


@pytest.mark.parametrize("flag", [os.O_SYNC, os.O_DSYNC])
def test_a_descriptor_that_syncs_each_write_says_so(flag: int, tmp_path: Path) -> None:
    traced = traced_well(lambda: write_whole(tmp_path / "f", b"x", os.O_CREAT | os.O_WRONLY | flag), tmp_path)

    assert only(traced, "write").flags & os.O_SYNC == flag


@pytest.mark.skipif(not hasattr(os, "pwritev"), reason="this Python has no pwritev")
def test_a_write_that_must_not_append_stands_at_its_place(tmp_path: Path) -> None:
    path, does_not_append = tmp_path / "f", 0x20
    path.write_bytes(b"12345")

    def run() -> None:
        with contextlib.suppress(OSError):
            os.pwritev(os.open(path, os.O_WRONLY | os.O_APPEND), [b"x"], 1, does_not_append)

    traced = traced_well(run, tmp_path)

    write = only(traced, "pwritev2")
    if path.read_bytes() == b"12345":
        pytest.skip("this kernel has no RWF_NOAPPEND")
    assert (write.offset, write.data) == (1, b"x")
    assert path.read_bytes() == b"1x345"


@pytest.mark.skipif(not hasattr(os, "pwritev"), reason="this Python has no pwritev")
def test_the_flags_of_pwritev_count_as_those_of_the_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"abc")

    def run() -> None:
        descriptor = os.open(path, os.O_WRONLY)
        os.pwritev(descriptor, [b"x", b"y"], 1, os.RWF_DSYNC)
        if hasattr(os, "RWF_APPEND"):
            os.pwritev(descriptor, [b"end"], 0, os.RWF_APPEND)

    traced = traced_well(run, tmp_path)

    first, *rest = calls(traced, "pwritev2")
    assert (first.offset, first.data, first.flags & os.O_SYNC) == (1, b"xy", os.O_DSYNC)
    assert [(call.offset, call.flags & os.O_APPEND) for call in rest] in ([], [(3, os.O_APPEND)])


def test_syncs_tell_what_they_sync(tmp_path: Path) -> None:
    def run() -> None:
        descriptor = os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT)
        os.fsync(descriptor)
        os.fdatasync(descriptor)
        os.close(descriptor)
        folder = os.open(tmp_path, os.O_RDONLY)
        os.fsync(folder)
        os.sync()

    traced = traced_well(run, tmp_path)

    told = [
        (call.name, call.file and (call.file.path, call.file.kind)) for call in calls(traced) if "sync" in call.name
    ]
    assert told == [
        ("fsync", (str(tmp_path / "f"), "file")),
        ("fdatasync", (str(tmp_path / "f"), "file")),
        ("fsync", (str(tmp_path), "folder")),
        ("sync", None),
    ]


def test_a_sync_of_the_file_system_is_told_also_where_files_have_devices_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "beside").touch()
    libc = ctypes.CDLL(None)

    def run() -> None:
        for path in (tmp_path / "beside", Path("/proc/self/status")):
            libc.syncfs(os.open(path, os.O_RDONLY))

    monkeypatch.setattr(watching.Watch, "device", property(lambda _: -1, lambda *_: None), raising=False)
    traced = traced_well(run, root)

    assert [call.file and call.file.path for call in calls(traced)] == [str(tmp_path / "beside")]


def test_a_sync_of_a_mapping_tells_which_part_of_the_file_it_is(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(bytes(1 << 16))

    def run() -> None:
        with path.open("r+b") as file:
            mapping = mmap.mmap(file.fileno(), 1 << 15, offset=mmap.ALLOCATIONGRANULARITY)
            mapping[5000] = 1
            mapping.flush(mmap.PAGESIZE, mmap.PAGESIZE)

    traced = traced_well(run, tmp_path)

    synced = only(traced, "msync")
    assert (synced.offset, synced.length) == (mmap.ALLOCATIONGRANULARITY + mmap.PAGESIZE, mmap.PAGESIZE)


def test_truncation_and_allocation_tell_the_new_size(tmp_path: Path) -> None:
    def run() -> None:
        os.chdir(tmp_path)
        descriptor = os.open("f", os.O_WRONLY | os.O_CREAT)
        os.ftruncate(descriptor, 100)
        os.truncate("f", 7)
        os.posix_fallocate(descriptor, 10, 20)

    traced = traced_well(run, tmp_path)

    told = [(call.name, call.file and call.file.size, call.length) for call in calls(traced)[1:]]
    assert told == [("ftruncate", 0, 100), ("truncate", 100, 7), ("fallocate", 7, 30)]
    assert traced.obstacles == ()


def test_names_are_told_from_any_working_folder_and_descriptor(tmp_path: Path) -> None:
    def run() -> None:
        os.chdir(tmp_path)
        os.mkdir("a")
        folder = os.open("a", os.O_RDONLY)
        os.fchdir(folder)
        os.close(os.open("one", os.O_CREAT | os.O_WRONLY))
        os.rename("one", "../two")
        os.rename("../two", "three", dst_dir_fd=folder)
        os.link("three", "four", src_dir_fd=folder, dst_dir_fd=folder)
        os.symlink("four", "five")
        os.unlink("three", dir_fd=folder)
        os.unlink("four")
        os.unlink("./five")
        os.rmdir("../a/")

    traced = traced_well(run, tmp_path)

    told = [
        (
            call.file and os.path.relpath(call.file.path, tmp_path),
            call.other and os.path.relpath(call.other.path, tmp_path),
            call.target,
        )
        for call in calls(traced)
        if not call.name.startswith("open")
    ]
    assert told == [
        ("a", None, ""),
        ("a/one", "two", ""),
        ("two", "a/three", ""),
        ("a/three", "a/four", ""),
        ("a/five", None, "four"),
        ("a/three", None, ""),
        ("a/four", None, ""),
        ("a/five", None, ""),
        ("a", None, ""),
    ]


def test_a_creation_tells_the_inode_and_that_there_was_none(tmp_path: Path) -> None:
    def run() -> None:
        write_whole(tmp_path / "new", b"")
        write_whole(tmp_path / "new", b"")
        os.link(tmp_path / "new", tmp_path / "same")
        os.mkdir(tmp_path / "folder")
        os.replace(tmp_path / "new", tmp_path / "same2")

    traced = traced_well(run, tmp_path)

    created, opened, linked, made, renamed = (call for call in calls(traced) if call.name != "write")
    inode = (tmp_path / "same").stat().st_ino
    assert created.file is not None
    assert opened.file is not None
    assert renamed.other is not None
    assert (created.file.kind, created.file.inode, created.inode) == ("none", 0, inode)
    assert (opened.file.kind, opened.file.inode, opened.inode) == ("file", inode, inode)
    assert (linked.inode, made.inode) == (inode, (tmp_path / "folder").stat().st_ino)
    assert renamed.other.kind == "none"


def test_links_in_folders_are_followed_and_a_last_one_only_by_an_open(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (tmp_path / "way").symlink_to(root / "real")

    def run() -> None:
        write_whole(tmp_path / "way" / "f", b"x")
        os.symlink("f", tmp_path / "way" / "g")
        write_whole(tmp_path / "way" / "g", b"y")
        os.unlink(tmp_path / "way" / "g")

    traced = traced_well(run, root)

    told = [(call.name, call.file and os.path.relpath(call.file.path, root)) for call in calls(traced)]
    assert told == [
        ("openat", "real/f"),
        ("write", "real/f"),
        ("symlink" if ("symlink", "real/g") in told else "symlinkat", "real/g"),
        ("openat", "real/f"),
        ("write", "real/f"),
        ("unlink" if ("unlink", "real/g") in told else "unlinkat", "real/g"),
    ]


def test_a_file_that_has_lost_its_name_is_still_watched(tmp_path: Path) -> None:
    def run() -> None:
        descriptor = os.open(tmp_path / "f", os.O_CREAT | os.O_WRONLY)
        os.unlink(tmp_path / "f")
        os.write(descriptor, b"x")

    traced = traced_well(run, tmp_path)

    write = only(traced, "write")
    assert write.file is not None
    assert write.file.path == str(tmp_path / "f")


def test_a_file_that_has_another_name_outside_is_still_watched(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "old").write_bytes(b"")
    os.link(root / "old", tmp_path / "of old")

    def run() -> None:
        write_whole(tmp_path / "of old", b"1", os.O_WRONLY)
        write_whole(root / "new", b"2")
        os.link(root / "new", tmp_path / "of new")
        write_whole(tmp_path / "of new", b"3", os.O_WRONLY)
        write_whole(tmp_path / "none of ours", b"4")

    traced = traced_well(run, root)

    assert [call.data for call in calls(traced, "write")] == [b"1", b"2", b"3"]


def test_what_happens_elsewhere_is_not_told(tmp_path: Path) -> None:
    root, beside = tmp_path / "root", tmp_path / "root2"
    root.mkdir()

    def run() -> None:
        write_whole(beside, b"x")
        os.rename(beside, tmp_path / "there")
        print("to a pipe or a terminal", file=sys.stderr)

    traced = traced_well(run, root)

    assert traced.events == ()


def test_a_call_that_failed_is_told_with_its_error(tmp_path: Path) -> None:
    def run() -> None:
        with pytest.raises(FileNotFoundError):
            os.unlink(tmp_path / "f")

    traced = traced_well(run, tmp_path)

    assert [call.result for call in calls(traced)] == [-2]


def test_marks_stand_between_the_calls_of_all_threads(tmp_path: Path) -> None:
    marks, strangers = Marks(), Marks()

    def save(number: int) -> None:
        marks.put(f"INV {number}")
        write_whole(tmp_path / str(number), b"x")
        marks.put(f"ACK {number}")

    def run() -> None:
        strangers.put("not asked for")
        save(1)
        thread = threading.Thread(target=save, args=(2,))
        thread.start()
        thread.join()

    traced = trace(run, str(tmp_path), marks=marks)

    told = [event.text if isinstance(event, Mark) else event.name for event in traced.events]
    assert told == ["INV 1", "openat", "write", "ACK 1", "INV 2", "openat", "write", "ACK 2"]


def test_a_mark_does_nothing_where_nobody_traces(capfd: pytest.CaptureFixture[str]) -> None:
    before = os.listdir("/proc/self/fd")

    Marks().put("nobody sees it")

    assert os.listdir("/proc/self/fd") == before
    assert capfd.readouterr() == ("", "")


def test_writes_of_threads_to_one_file_are_told_in_the_order_they_were_done(tmp_path: Path) -> None:
    path = tmp_path / "f"

    def run() -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT)

        def work(name: bytes) -> None:
            for number in range(30):
                os.write(descriptor, name * 3)
                os.pwrite(descriptor, name, number)
                os.fdatasync(descriptor)

        threads = [threading.Thread(target=work, args=(name,)) for name in (b"a", b"b", b"c", b"d")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    traced = traced_well(run, tmp_path)

    replayed = bytearray()
    for call in calls(traced, "write", "pwrite64"):
        assert call.offset is not None
        replayed += b"\0" * (call.offset - len(replayed))
        replayed[call.offset : call.offset + len(call.data)] = call.data
    assert bytes(replayed) == path.read_bytes()
    assert_no_overlap(calls(traced, "write", "pwrite64"))
    assert len({call.thread for call in calls(traced)}) == 5


def test_threads_that_replace_one_file_are_told_in_the_order_of_the_kernel(tmp_path: Path) -> None:
    def run() -> None:
        def work(name: str) -> None:
            for number in range(20):
                write_whole(tmp_path / name, f"{name}{number}".encode())
                os.replace(tmp_path / name, tmp_path / "state")

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    traced = traced_well(run, tmp_path)

    last = calls(traced, "rename", "renameat", "renameat2")[-1]
    assert last.file is not None
    assert_no_overlap(calls(traced))
    assert last.file.inode == (tmp_path / "state").stat().st_ino
    written = {call.file.path: call.data for call in calls(traced, "write") if call.file is not None}
    assert written[last.file.path] == (tmp_path / "state").read_bytes()


def test_children_of_every_kind_are_followed(tmp_path: Path) -> None:
    script = f"open({str(tmp_path / 'python')!r}, 'w').write('p')"

    def run() -> None:
        if (child := os.fork()) == 0:
            write_whole(tmp_path / "fork", b"f")
            os._exit(0)
        os.waitpid(child, 0)
        subprocess.run([sys.executable, "-I", "-S", "-c", script], check=True)
        subprocess.run(f"echo e > {tmp_path / 'shell'}", shell=True, check=True)
        os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", f"echo s > {tmp_path / 'spawn'}"], {}), 0)

    traced = traced_well(run, tmp_path)

    written = [(call.file and os.path.basename(call.file.path), call.data) for call in calls(traced, "write")]
    assert written == [("fork", b"f"), ("python", b"p"), ("shell", b"e\n"), ("spawn", b"s\n")]


def test_a_thread_that_calls_exec_becomes_the_process(tmp_path: Path) -> None:
    def run() -> None:
        def become() -> None:
            os.execv("/bin/sh", ["sh", "-c", f"echo x > {tmp_path / 'f'}"])

        write_whole(tmp_path / "before", b"b")
        threading.Thread(target=become).start()
        threading.Event().wait(20)

    traced = traced_well(run, tmp_path)

    assert [call.data for call in calls(traced, "write")] == [b"b", b"x\n"]


def test_sqlite_is_seen_to_write_its_log_and_to_sync_it(tmp_path: Path) -> None:
    def run() -> None:
        connection = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES (zeroblob(5000))")
        connection.close()

    traced = traced_well(run, tmp_path)

    wal = str(tmp_path / "a.db-wal")
    on_wal = [call.name for call in calls(traced) if call.file is not None and call.file.path == wal]
    assert on_wal[:3] == ["openat", "pwrite64", "fdatasync"]
    assert on_wal[-3:] == ["pwrite64", "fdatasync", "unlink"] or "unlink" in on_wal[-1]
    assert [obstacle.path for obstacle in traced.obstacles] == [str(tmp_path / "a.db-shm")]


def test_openat2_is_read_like_an_open(tmp_path: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def run() -> None:
        how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o600, 0)
        descriptor = libc.syscall(437, -100, os.fsencode(tmp_path / "f"), how, 24)
        if descriptor >= 0:
            os.write(descriptor, b"x")

    traced = traced_well(run, tmp_path)

    opened = only(traced, "openat2")
    assert opened.flags == os.O_CREAT | os.O_WRONLY
    if opened.result is not None and opened.result >= 0:
        assert opened.inode == (tmp_path / "f").stat().st_ino


def test_permissions_are_told_when_something_is_made_and_when_they_change(tmp_path: Path) -> None:
    def run() -> None:
        os.umask(0o027)
        write_whole(tmp_path / "f", b"")
        os.mkdir(tmp_path / "sub")
        os.chmod(tmp_path / "f", 0o640)
        os.chmod(tmp_path / "sub", 0o1700)
        os.fchmod(os.open(tmp_path / "f", os.O_RDONLY), 0o444)
        os.chmod("f", 0o400, dir_fd=os.open(tmp_path, os.O_RDONLY))

    traced = traced_well(run, tmp_path)

    made = [call.mode for call in calls(traced) if call.name in ("open", "openat", "mkdir", "mkdirat")]
    assert made == [stat.S_IFREG | 0o600, stat.S_IFDIR | 0o750, None, None]
    assert [call.mode for call in calls(traced) if "chmod" in call.name] == [0o640, 0o1700, 0o444, 0o400]


def test_pipes_and_sockets_are_told_with_what_they_are(tmp_path: Path) -> None:
    def run() -> None:
        os.umask(0o022)
        os.chdir(tmp_path)
        os.mkfifo("pipe", 0o600)
        for family, name in ((socket.AF_UNIX, "socket"), (socket.AF_UNIX, "\0no path"), (socket.AF_INET, ("", 0))):
            socket.socket(family).bind(name)
        os.mknod("file", stat.S_IFREG | 0o644)

    traced = traced_well(run, tmp_path)

    assert [
        (os.path.basename(call.file.path), oct(call.mode)) for call in calls(traced) if call.file and call.mode
    ] == [
        ("pipe", oct(stat.S_IFIFO | 0o600)),
        ("socket", oct(stat.S_IFSOCK | 0o755)),
        ("file", oct(stat.S_IFREG | 0o644)),
    ]
    assert traced.obstacles == ()
