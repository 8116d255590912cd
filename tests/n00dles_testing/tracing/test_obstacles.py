"""What changes a watched file without a write that can be read is an obstacle, which names the file."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import stat
import struct
from pathlib import Path

import pytest

from n00dles_testing.tracing import Trace, threads
from n00dles_testing.tracing.machines import this_machine

from .tracing_here import calls, needs_tracing, traced_well, write_whole

pytestmark = needs_tracing

MACHINE = this_machine()


def system_call(name: str, *arguments: object) -> int:
    """Make a call that Python has no function for; return what it returns, or the negative errno."""
    assert MACHINE is not None
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(ctypes.c_long(MACHINE.numbers[name]), *arguments)
    return -ctypes.get_errno() if result == -1 else result


def assert_only_obstacle(traced: Trace, path: Path, word: str) -> None:
    (obstacle,) = traced.obstacles
    assert obstacle.path == str(path)
    assert str(obstacle).startswith(f"{path}: ")
    assert word in obstacle.text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 8192)
    return path


def test_a_shared_writable_mapping(path: Path, tmp_path: Path) -> None:
    def run() -> None:
        descriptor = os.open(path, os.O_RDWR)
        mmap.mmap(descriptor, 4096)[0] = 65

    assert_only_obstacle(traced_well(run, tmp_path), path, "mapped")


def test_a_mapping_that_becomes_writable_later(path: Path, tmp_path: Path) -> None:
    def run() -> None:
        descriptor = os.open(path, os.O_RDWR)
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        address = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        assert libc.mprotect(ctypes.c_void_p(address), 4096, mmap.PROT_READ | mmap.PROT_WRITE) == 0

    assert_only_obstacle(traced_well(run, tmp_path), path, "mapped")


def test_a_mapping_from_before_the_fork(path: Path, tmp_path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 4096) as mapping:

        def run() -> None:
            mapping[0] = 65

        traced = traced_well(run, tmp_path)

    assert_only_obstacle(traced, path, "mapped")


def test_mappings_that_are_read_or_private_are_none(path: Path, tmp_path: Path) -> None:
    def run() -> None:
        descriptor = os.open(path, os.O_RDWR)
        mmap.mmap(descriptor, 4096, prot=mmap.PROT_READ)
        mmap.mmap(descriptor, 4096, flags=mmap.MAP_PRIVATE)[0] = 65
        mmap.mmap(-1, 4096)[0] = 65

    assert traced_well(run, tmp_path).obstacles == ()


@pytest.mark.parametrize("mode", [0x2 | 0x1, 0x10, 0x8, 0x20])
def test_holes_and_other_moves_of_bytes_by_fallocate(mode: int, path: Path, tmp_path: Path) -> None:
    done = tmp_path / "done"

    def run() -> None:
        descriptor = os.open(path, os.O_RDWR)
        zero, size = ctypes.c_long(0), ctypes.c_long(4096)
        if system_call("fallocate", descriptor, mode, zero, size) == 0:
            done.touch()

    traced = traced_well(run, tmp_path)

    if done.exists():
        assert_only_obstacle(traced, path, "fallocate")
    else:
        assert traced.obstacles == ()


def test_space_that_is_kept_beyond_the_end_is_none(path: Path, tmp_path: Path) -> None:
    def run() -> None:
        descriptor = os.open(path, os.O_RDWR)
        system_call("fallocate", descriptor, 1, ctypes.c_long(0), ctypes.c_long(1 << 20))

    traced = traced_well(run, tmp_path)

    assert traced.obstacles == ()
    assert [call.length for call in calls(traced, "fallocate")] == [None]


def test_two_files_that_trade_places(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.touch()

    def run() -> None:
        assert system_call("renameat2", -100, os.fsencode(path), -100, os.fsencode(other), 2) == 0

    assert_only_obstacle(traced_well(run, tmp_path), path, f"trades places with {other}")


def test_a_rename_that_must_not_replace_is_none(path: Path, tmp_path: Path) -> None:
    def run() -> None:
        assert system_call("renameat2", -100, os.fsencode(path), -100, os.fsencode(tmp_path / "g"), 1) == 0

    traced = traced_well(run, tmp_path)

    assert traced.obstacles == ()
    assert [call.flags for call in calls(traced, "renameat2")] == [1]


def test_a_folder_that_moves_out(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)

    traced = traced_well(lambda: os.rename(root / "folder", tmp_path / "folder"), root)

    assert_only_obstacle(traced, root / "folder", "outside")


def test_a_file_without_a_name_that_gets_one(tmp_path: Path) -> None:
    def run() -> None:
        descriptor = os.open(tmp_path, os.O_TMPFILE | os.O_WRONLY)
        path, follows = os.fsencode(f"/proc/self/fd/{descriptor}"), 0x400
        assert system_call("linkat", -100, path, -100, os.fsencode(tmp_path / "named"), follows) == 0

    assert_only_obstacle(traced_well(run, tmp_path), tmp_path / "named", "O_TMPFILE")


@pytest.mark.parametrize("name", ["/new", "new"])
def test_a_file_made_where_a_folder_is_taken_for_the_root(name: str, tmp_path: Path) -> None:
    def run() -> None:
        folder = os.open(tmp_path, os.O_RDONLY)
        how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o600, 0x10)
        system_call("openat2", folder, name.encode(), how, ctypes.c_long(24))

    traced = traced_well(run, tmp_path)

    if not (tmp_path / "new").exists():
        pytest.skip("the kernel has no openat2, or does not permit it")
    assert_only_obstacle(traced, tmp_path, "RESOLVE_IN_ROOT")


def test_a_folder_that_is_only_read_as_the_root_is_none(path: Path, tmp_path: Path) -> None:
    def run() -> None:
        folder = os.open(tmp_path, os.O_RDONLY)
        how = (ctypes.c_uint64 * 3)(os.O_WRONLY, 0, 0x10)
        descriptor = system_call("openat2", folder, b"/f", how, ctypes.c_long(24))
        if descriptor >= 0:
            os.write(descriptor, b"y")

    traced = traced_well(run, tmp_path)

    assert traced.obstacles == ()
    assert [call.data for call in calls(traced, "write")] == ([b"y"] if path.read_bytes()[:1] == b"y" else [])


def test_what_is_opened_as_a_path_only_is_not_emptied(path: Path, tmp_path: Path) -> None:
    traced = traced_well(lambda: os.open(path, os.O_PATH | os.O_TRUNC), tmp_path)

    assert [call.flags & os.O_TRUNC for call in calls(traced)] == [0]
    assert path.stat().st_size == 8192


@pytest.mark.parametrize("way", ["clone", "clone3"])
def test_a_child_that_must_not_be_traced(way: str, tmp_path: Path) -> None:
    untraced, ends = 0x00800000, 17

    def run() -> None:
        flags = ctypes.c_long(untraced | ends)
        if way == "clone":
            child = system_call("clone", flags, *[ctypes.c_long(0)] * 4)
        else:
            wanted = (ctypes.c_uint64 * 8)(untraced, 0, 0, 0, ends)
            child = system_call("clone3", wanted, ctypes.c_long(64))
        if child == 0:
            os._exit(0)
        if child > 0:
            os.waitpid(child, 0)
            (tmp_path / "done").touch()

    traced = traced_well(run, tmp_path)

    if not (tmp_path / "done").exists():
        pytest.skip("the kernel does not permit it")
    assert_only_obstacle(traced, tmp_path, "CLONE_UNTRACED")


def test_another_root_for_paths(tmp_path: Path) -> None:
    def run() -> None:
        if system_call("chroot", os.fsencode(tmp_path)) == 0:
            os.close(os.open("/done", os.O_CREAT | os.O_WRONLY))

    traced = traced_well(run, tmp_path)

    if not (tmp_path / "done").exists():
        pytest.skip("only root may do that")
    assert "chroot" in str(traced.obstacles[0])
    assert traced.obstacles[0].path == str(tmp_path)


def test_a_process_that_nobody_may_look_at(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(threads.Memory, "__init__", refuse)

    traced = traced_well(lambda: write_whole(path, b"y"), tmp_path)

    assert {obstacle.path for obstacle in traced.obstacles} == {str(tmp_path)}
    assert any("write" in str(obstacle) for obstacle in traced.obstacles)
    assert traced.events == ()


def test_a_process_that_hides_itself_is_seen_or_told(path: Path, tmp_path: Path) -> None:
    set_dumpable = 4

    def run() -> None:
        descriptor = os.open(path, os.O_WRONLY)
        ctypes.CDLL(None).prctl(set_dumpable, 0, 0, 0, 0)
        os.write(descriptor, b"hidden")

    traced = traced_well(run, tmp_path)

    is_seen = [call.data for call in calls(traced, "write")] == [b"hidden"]  # root sees all
    assert is_seen != bool(traced.obstacles)


def test_a_descriptor_that_nobody_may_look_at(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(place: str) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", place)

    descriptor = os.open(path, os.O_WRONLY)
    monkeypatch.setattr(os, "readlink", refuse)

    traced = traced_well(lambda: os.write(descriptor, b"y"), tmp_path)

    monkeypatch.undo()
    os.close(descriptor)
    assert_only_obstacle(traced, tmp_path, "what a call (write) was about could not be read")


def test_a_file_opened_past_the_page_cache(tmp_path: Path) -> None:
    path = tmp_path / "f"

    def run() -> None:
        os.open(path, os.O_CREAT | os.O_WRONLY | os.O_DIRECT)

    assert_only_obstacle(traced_well(run, tmp_path), path, "O_DIRECT")


def test_a_device_in_the_folder(tmp_path: Path) -> None:
    try:
        os.mknod(tmp_path / "try", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("nobody but root makes a device")

    def run() -> None:
        os.mknod(tmp_path / "null", stat.S_IFCHR | 0o600, os.makedev(1, 3))

    assert_only_obstacle(traced_well(run, tmp_path), tmp_path / "null", "device")


@pytest.mark.parametrize("name", ["setxattr", "fsetxattr", "removexattr", "lremovexattr"])
def test_extended_attributes(name: str, path: Path, tmp_path: Path) -> None:
    try:
        os.setxattr(path, "user.sum", b"old")
    except OSError:
        pytest.skip("this file system has no extended attributes")

    def run() -> None:
        match name:
            case "setxattr":
                os.setxattr(path, "user.sum", b"new")
            case "fsetxattr":
                os.setxattr(os.open(path, os.O_RDONLY), "user.sum", b"new")
            case "removexattr":
                os.removexattr(path, "user.sum")
            case _:
                os.removexattr(path, "user.sum", follow_symlinks=False)

    assert_only_obstacle(traced_well(run, tmp_path), path, name)


def test_another_owner(path: Path, tmp_path: Path) -> None:
    try:
        os.chown(path, 1, -1)
    except PermissionError:
        pytest.skip("nobody but root gives a file away")

    def run() -> None:
        os.chown(path, 1, -1)
        os.chown(os.open(path, os.O_RDONLY), 2, 2)

    assert_only_obstacle(traced_well(run, tmp_path), path, "owner")


def test_io_uring(tmp_path: Path) -> None:
    done = tmp_path / "done"

    def run() -> None:
        if system_call("io_uring_setup", 1, ctypes.create_string_buffer(120)) >= 0:
            done.touch()

    traced = traced_well(run, tmp_path)

    if not done.exists():
        pytest.skip("the kernel has no io_uring, or does not permit it")
    assert_only_obstacle(traced, tmp_path, "io_uring")


def test_background_writes(path: Path, tmp_path: Path) -> None:
    done = tmp_path / "done"

    def run() -> None:
        context = ctypes.c_ulong()
        set_up = 206 if MACHINE is not None and MACHINE.name == "x86_64" else 0
        if ctypes.CDLL(None).syscall(ctypes.c_long(set_up), 1, ctypes.byref(context)) != 0:
            return
        descriptor = os.open(path, os.O_WRONLY)
        text = ctypes.create_string_buffer(b"abc")
        form = struct.Struct("<QIIHhIQQq24x")
        block = ctypes.create_string_buffer(form.pack(0, 0, 0, 1, 0, descriptor, ctypes.addressof(text), 3, 0))
        blocks = (ctypes.c_void_p * 1)(ctypes.addressof(block))
        if system_call("io_submit", context, ctypes.c_long(1), blocks) == 1:
            done.touch()

    traced = traced_well(run, tmp_path)

    if not done.exists():
        pytest.skip("the kernel has no asynchronous input and output")
    assert_only_obstacle(traced, path, "io_submit")


@pytest.mark.skipif(MACHINE is None or MACHINE.name != "x86_64", reason="only x86-64 has numbers of its own for x32")
def test_calls_of_another_convention(tmp_path: Path) -> None:
    def run() -> None:
        ctypes.CDLL(None).syscall(ctypes.c_long(0x40000000 + 39))

    assert_only_obstacle(traced_well(run, tmp_path), tmp_path, "another machine type")


def test_bytes_shared_by_clone(path: Path, tmp_path: Path) -> None:
    done = tmp_path / "done"

    def run() -> None:
        source = os.open(path, os.O_RDONLY)
        target = os.open(tmp_path / "g", os.O_CREAT | os.O_WRONLY)
        if system_call("ioctl", target, ctypes.c_ulong(0x40049409), ctypes.c_long(source)) == 0:
            done.touch()

    traced = traced_well(run, tmp_path)

    assert [call.name for call in calls(traced, "ioctl")] == ["ioctl"]
    assert bool(traced.obstacles) == done.exists()  # many file systems refuse it


def test_what_was_refused_is_none(path: Path, tmp_path: Path) -> None:
    def run() -> None:
        descriptor = os.open(path, os.O_RDONLY)
        with pytest.raises(PermissionError):
            mmap.mmap(descriptor, 4096, prot=mmap.PROT_WRITE)
        write_whole(tmp_path / "g", b"x")

    assert traced_well(run, tmp_path).obstacles == ()
