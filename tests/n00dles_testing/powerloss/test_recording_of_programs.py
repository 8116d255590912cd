"""Real programs, really traced: what is recorded of them gives their files again, or it is said why not."""

import contextlib
import errno
import mmap
import os
import shutil
import signal
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.powerloss.operations import (
    ROOT,
    ChangeMode,
    Create,
    MakeFolder,
    MakeSpecial,
    Marked,
    Rename,
    Special,
    Sync,
    SyncAll,
    Truncate,
    Unlink,
    Write,
)
from n00dles_testing.powerloss.recording import Unfollowable, record
from n00dles_testing.powerloss.states import states
from n00dles_testing.powerloss.tree import Tree
from n00dles_testing.tracing import Fail, Kill, Marks, TracedCall, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"nothing can be traced here: {why_not()}")

NAMES = ["a", "b", "sub", "sub/a", "sub/b", "sub/sub"]
Step = tuple[str, str, str, int, bytes]


class Player:
    """Does steps in a folder, with descriptors that stay open; what the kernel refuses is refused."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files: list[int] = []

    def play(self, steps: list[Step]) -> None:
        for step in steps:
            with contextlib.suppress(OSError):
                self._play(step)
        for file in self._files:
            os.close(file)

    def _play(self, step: Step) -> None:
        do, name, other, number, data = step
        if do in OPENINGS:
            self._files.append(os.open(f"{self._folder}/{name}", OPENINGS[do]))
        elif do in ON_NAMES:
            ON_NAMES[do](f"{self._folder}/{name}", f"{self._folder}/{other}")
        elif self._files:
            file = self._files[number % len(self._files)]
            if do == "dup":
                self._files.append(os.dup(file))
            elif do == "close":
                self._files.remove(file)
                os.close(file)
            else:
                ON_FILES[do](file, number, data)


OPENINGS = {
    "open": os.O_RDWR,
    "create": os.O_RDWR | os.O_CREAT,
    "exclusive": os.O_RDWR | os.O_CREAT | os.O_EXCL,
    "empty": os.O_RDWR | os.O_CREAT | os.O_TRUNC,
    "append": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "dsync": os.O_RDWR | os.O_CREAT | os.O_DSYNC,
    "folder": os.O_RDONLY | os.O_DIRECTORY,
}
ON_NAMES: dict[str, Callable[[str, str], object]] = {
    "rename": os.rename,
    "link": lambda name, other: os.link(name, other, follow_symlinks=False),
    "symlink": lambda name, other: os.symlink(os.path.basename(name), other),
    "unlink": lambda name, _: os.unlink(name),
    "mkdir": lambda name, _: os.mkdir(name),
    "rmdir": lambda name, _: os.rmdir(name),
    "truncate": lambda name, _: os.truncate(name, 5),
}
ON_FILES: dict[str, Callable[[int, int, bytes], object]] = {
    "write": lambda file, _, data: os.write(file, data),
    "pwrite": lambda file, number, data: os.pwrite(file, data, number),
    "writev": lambda file, _, data: os.writev(file, [data, b"-", data]),
    "seek": lambda file, number, _: os.lseek(file, number, os.SEEK_SET),
    "ftruncate": lambda file, number, _: os.ftruncate(file, number),
    "allocate": lambda file, number, _: os.posix_fallocate(file, number, 10),
    "fsync": lambda file, *_: os.fsync(file),
}

_STEPS = st.lists(
    st.tuples(
        st.one_of(
            st.sampled_from([*OPENINGS]), st.sampled_from([*ON_NAMES]), st.sampled_from([*ON_FILES, "dup", "close"])
        ),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.one_of(st.integers(0, 12), st.integers(4090, 4100)),
        st.binary(min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=40,
)


@settings(deadline=None, max_examples=30)
@given(_STEPS, _STEPS)
def test_a_recording_gives_what_was_there_at_each_call_and_at_the_end(before: list[Step], steps: list[Step]) -> None:
    with TemporaryDirectory(prefix="n00dles-recording-") as path:
        Player(path).play(before)
        real: list[tuple[int, bytes]] = [(0, Tree.read(path).digest())]

        def look(call: TracedCall, _: int) -> None:
            real.append((call.entered, Tree.read(path).digest()))

        recording = record(lambda: Player(path).play(steps), path, on_call=look)

        assert recording.status == 0
        real.append((sys.maxsize, Tree.read(path).digest()))
        assert real == [
            (entered, recording.base.after(step for step in recording.operations if step.exited < 4 * entered).digest())
            for entered, _ in real
        ]


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_saves_into_sqlite_are_recorded_with_their_marks_and_without_shared_memory(
    tmp_path: Path, journal: str
) -> None:
    marks = Marks()

    def save() -> None:
        database = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
        database.execute(f"PRAGMA journal_mode={journal}")
        database.execute("CREATE TABLE t (n)")
        for n in range(3):
            marks.put(f"INV {n}")
            database.execute("INSERT INTO t VALUES (?)", (n,))
            marks.put(f"ACK {n}")
        os._exit(0)  # so that the log stays

    recording = record(save, tmp_path, marks=marks)

    last = recording.base.after(recording.operations)
    words = [step.text for step in recording.operations if isinstance(step, Marked)]
    assert words == ["INV 0", "ACK 0", "INV 1", "ACK 1", "INV 2", "ACK 2"]
    assert [*last.listing()] == (["runs.db", "runs.db-wal"] if journal == "WAL" else ["runs.db"])
    last.write_to(tmp_path / "again")
    with contextlib.closing(sqlite3.connect(tmp_path / "again" / "runs.db")) as database:
        assert database.execute("SELECT n FROM t").fetchall() == [(0,), (1,), (2,)]


def test_the_threads_of_a_program_write_into_the_same_files(tmp_path: Path) -> None:
    def work(number: int) -> None:
        log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for n in range(15):
            os.write(log, b"%d:%d\n" % (number, n))
            temporary = tmp_path / f"tmp{number}"
            temporary.write_bytes(b"%d" % number * 5000)
            temporary.replace(tmp_path / "last")

    def run() -> None:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    recording = record(run, tmp_path)

    assert recording.base.after(recording.operations).digest() == Tree.read(tmp_path).digest()
    assert len([step for step in recording.operations if isinstance(step, Rename)]) == 60


def test_a_program_that_is_killed_before_a_call_has_not_made_it(tmp_path: Path) -> None:
    def save() -> None:
        (tmp_path / "tmp").write_text("new")
        (tmp_path / "tmp").replace(tmp_path / "state")

    recording = record(save, tmp_path, on_call=lambda call, _: Kill() if call.name == "rename" else None)

    assert recording.status == -9
    assert recording.base.after(recording.operations).listing() == {"tmp": b"new"}
    assert [type(step) for step in recording.operations] == [Create, Write]


def test_a_program_that_is_killed_in_the_middle_of_a_long_write_has_written_what_is_there(tmp_path: Path) -> None:
    """Another thread kills it, sooner or later."""
    written = os.urandom(1 << 22)

    def run() -> None:
        file = os.open(tmp_path / "a", os.O_RDWR | os.O_CREAT)
        threading.Timer(0.001, os.kill, (os.getpid(), signal.SIGKILL)).start()
        while True:
            os.pwrite(file, written, 100)

    for _ in range(4):
        recording = record(run, tmp_path)

        assert recording.status == -9
        assert recording.base.after(recording.operations).digest() == Tree.read(tmp_path).digest()
        (tmp_path / "a").unlink()


def test_a_sync_that_fails_is_recorded_as_failed(tmp_path: Path) -> None:
    def save() -> None:
        file = os.open(tmp_path / "a", os.O_WRONLY | os.O_CREAT)
        os.write(file, b"x")
        with contextlib.suppress(OSError):
            os.fsync(file)
        os.fdatasync(file)
        os.sync()

    recording = record(save, tmp_path, on_call=lambda call, _: Fail(errno.EIO) if call.name == "fsync" else None)

    syncs = [(step.failed, step.data_only) for step in recording.operations if isinstance(step, Sync)]
    assert syncs == [(True, False), (False, True)]
    assert isinstance(recording.operations[-1], SyncAll)


def test_what_a_child_of_the_program_does_is_recorded_too(tmp_path: Path) -> None:
    def run() -> None:
        file = os.open(tmp_path / "a", os.O_WRONLY | os.O_CREAT)
        os.write(file, b"parent ")
        if (child := os.fork()) == 0:
            os.write(file, b"child ")
            os._exit(0)
        os.waitpid(child, 0)
        os.write(file, b"parent")

    recording = record(run, tmp_path)

    assert recording.base.after(recording.operations).listing() == {"a": b"parent child parent"}


def test_a_database_of_16_megabytes_is_not_copied_for_each_state(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(os.urandom(1 << 24))

    def run() -> None:
        file = os.open(tmp_path / "big", os.O_RDWR)
        for n in range(40):
            os.pwrite(file, b"x" * 4096, n * 40_960)

    recording = record(run, tmp_path)

    trees = [recording.base.after(recording.operations[:n]) for n in range(41)]
    blocks = {id(block) for tree in trees for block in tree.node(2)._blocks.values()}  # type: ignore[union-attr]
    assert len({tree.digest() for tree in trees}) == 41
    assert len(blocks) <= 4096 + sum(range(41))


def test_a_copy_of_a_file_and_a_file_without_a_name_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 5000)

    def run() -> None:
        shutil.copyfile(tmp_path / "a", tmp_path / "b")
        with TemporaryFile(dir=tmp_path) as file:
            file.write(b"never seen")
            file.flush()
            os.fsync(file.fileno())

    recording = record(run, tmp_path)

    written = [step.data for step in recording.operations if isinstance(step, Write)]
    assert written == [b"x" * 5000, b"never seen"]
    assert recording.base.after(recording.operations).listing() == {"a": b"x" * 5000, "b": b"x" * 5000}


def test_a_synced_write_that_fails_is_a_write_whose_sync_failed(tmp_path: Path) -> None:
    def run() -> None:
        file = os.open(tmp_path / "a", os.O_WRONLY | os.O_CREAT | os.O_DSYNC)
        with contextlib.suppress(OSError):
            os.write(file, b"first")
        os.write(file, b"again")

    failing = iter([Fail(errno.EIO, after_writing=True)])
    recording = record(run, tmp_path, on_call=lambda call, _: next(failing, None) if call.name == "write" else None)

    told = [
        (type(step), step.offset if isinstance(step, Write) else step.failed)
        for step in recording.operations
        if isinstance(step, Write | Sync)
    ]
    assert told == [(Write, 0), (Sync, True), (Write, 0), (Sync, False)]
    assert recording.base.after(recording.operations).listing() == {"a": b"again"}


def _map(path: Path) -> None:
    with (path / "a").open("r+b") as file, mmap.mmap(file.fileno(), 4096) as memory:
        memory[0] = 1


def _name(path: Path) -> None:
    descriptor = os.open(path, os.O_TMPFILE | os.O_WRONLY)
    os.link(f"/proc/self/fd/{descriptor}", path / "b", src_dir_fd=descriptor, follow_symlinks=True)


def _move_in(path: Path) -> None:
    outside = path.parent / "outside"
    outside.write_text("x")
    outside.replace(path / "b")


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (_map, "/a: it is mapped"),
        (_name, "/b: a file that was made without a name"),
        (_move_in, "`b` was moved here from"),
    ],
)
def test_what_calls_do_not_tell_is_refused_with_the_file_and_the_reason(
    tmp_path: Path, run: Callable[[Path], None], told: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_bytes(bytes(4096))

    with pytest.raises(Unfollowable) as refused:
        record(lambda: run(folder), folder)

    assert told in str(refused.value)


def test_a_program_that_does_not_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unfollowable, match="still running at the time limit"):
        record(lambda: threading.Event().wait(), tmp_path, time_limit=0.3)


def test_opening_to_empty_a_file_is_a_truncation_of_the_same_inode(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")

    recording = record(lambda: (tmp_path / "a").write_bytes(b"1"), tmp_path)

    assert [type(step) for step in recording.operations] == [Truncate, Write]
    assert {step.inode for step in recording.operations if isinstance(step, Truncate | Write)} == {ROOT + 1}


def test_what_is_kept_outside_is_not_taken_back_and_so_refused(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()

    with pytest.raises(Unfollowable) as refused:
        record(lambda: (tmp_path / "index").write_text("x"), folder)

    assert str(refused.value) == f"it keeps something outside of its location: {tmp_path}/index"


def test_permissions_pipes_and_sockets_are_recorded_with_their_changes(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("old")
    (tmp_path / "key").chmod(0o600)

    def run() -> None:
        os.umask(0o022)
        os.chdir(tmp_path)
        os.mkdir("private", 0o700)
        os.mkfifo("private/pipe", 0o600)
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("socket")
        pipe = os.open("private/pipe", os.O_RDWR)
        os.write(pipe, b"not on the disk")
        os.chmod("key", 0o400)
        os.unlink("socket")
        os.mknod("file", 0o644)

    recording = record(run, tmp_path)

    left = recording.base.after(recording.operations)
    modes = {path: left.mode(inode) for path, inode in left.names()}
    assert modes == {"file": 0o644, "key": 0o400, "private": 0o700, "private/pipe": 0o600}
    assert left.listing()["private/pipe"] is Special.PIPE
    assert [type(operation) for operation in recording.operations] == [
        *(MakeFolder, MakeSpecial, MakeSpecial, ChangeMode, Unlink, Create),
    ]


def test_a_socket_that_nobody_listens_to_any_more_is_there_after_a_power_loss(tmp_path: Path) -> None:
    def run() -> None:
        os.chdir(tmp_path)
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("socket")
            os.fsync(os.open(".", os.O_RDONLY))
        os.unlink("socket")

    found = [state.tree.listing() for state in states(record(run, tmp_path), MODELS["journaled"])]

    assert sorted(found, key=len) == [{}, {"socket": Special.SOCKET}]
