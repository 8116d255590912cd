"""The calls here are written by hand, and done for real, so that threads overlap just as a test wants it."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.powerloss.operations import (
    NEVER,
    ROOT,
    Create,
    Link,
    MakeFolder,
    Marked,
    Operation,
    Rename,
    Sync,
    SyncAll,
    Truncate,
    Unlink,
    Write,
)
from n00dles_testing.powerloss.recording import Recorder, Recording, Unfollowable
from n00dles_testing.tracing.calls import Event, File, Mark, Obstacle, Trace, TracedCall

CREATE = os.O_CREAT | os.O_RDWR


class Actor:
    """Does to a folder what a program does, and writes down the calls as a tracer would.

    Calls follow one another, unless `entered` or `exited` say otherwise.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.events: list[Event] = []
        self.descriptors: list[int] = []
        self.obstacles: list[Obstacle] = []
        self._clock = 0

    def file(self, at: str | int) -> File:
        path = os.path.normpath(self.folder / at) if isinstance(at, str) else os.readlink(f"/proc/self/fd/{at}")
        try:
            found = os.lstat(path) if isinstance(at, str) else os.fstat(at)
        except FileNotFoundError:
            return File(path, 0, "none", 0)
        kind = "folder" if os.path.isdir(path) else "link" if os.path.islink(path) else "file"
        return File(path.removesuffix(" (deleted)"), found.st_ino, kind, found.st_size)  # type: ignore[arg-type]

    def call(self, name: str, at: str | int | None, do: Callable[[], object], **told: Any) -> Any:
        self._clock += 10
        told.setdefault("entered", self._clock)
        told.setdefault("exited", told["entered"] + 5)
        told.setdefault("result", 0)
        told.setdefault("thread", 1)
        file = None if at is None else self.file(at)
        result = do()
        if told.pop("makes", False):
            told["inode"] = self.file(str(at)).inode
        self.events.append(TracedCall(name=name, file=file, **told))
        return result

    def open(self, name: str, flags: int = CREATE, **told: Any) -> int:
        descriptor: int = self.call(
            "openat", name, lambda: os.open(self.folder / name, flags), flags=flags, makes=True, **told
        )
        self.descriptors.append(descriptor)
        return descriptor

    def write(self, descriptor: int, offset: int, data: bytes, **told: Any) -> None:
        do = told.pop("do", lambda: os.pwrite(descriptor, data, offset))
        self.call("pwrite64", descriptor, do, offset=offset, data=data, **{"result": len(data)} | told)

    def sync(self, at: int | str, **told: Any) -> None:
        self.call("fsync", at, lambda: None, **told)

    def rename(self, name: str, goal: str, **told: Any) -> None:
        other = self.file(goal)
        self.call("rename", name, lambda: os.rename(self.folder / name, self.folder / goal), other=other, **told)

    def unlink(self, name: str, **told: Any) -> None:
        self.call("unlink", name, lambda: os.unlink(self.folder / name), **told)

    def mark(self, text: str) -> None:
        self._clock += 10
        self.events.append(Mark(self._clock, text))

    def obstacle(self, name: str, text: str) -> None:
        self.obstacles.append(Obstacle(str(self.folder / name), text))

    def trace(self, status: int = 0) -> Trace:
        for descriptor in self.descriptors:
            os.close(descriptor)
        events = sorted(self.events, key=lambda event: event.entered)
        return Trace(tuple(events), tuple(self.obstacles), status)


def without_times(operations: tuple[Operation, ...]) -> list[Operation]:
    return [type(operation)(0, 0, *_fields(operation)) for operation in operations]


def _fields(operation: Operation) -> list[Any]:
    names = [name for kind in type(operation).__mro__ for name in getattr(kind, "__slots__", ())]
    order = [*type(operation).__dataclass_fields__]
    return [getattr(operation, name) for name in order[2:] if name in names]


@pytest.fixture
def actor(tmp_path: Path) -> Actor:
    return Actor(tmp_path)


def record(actor: Actor, act: Callable[[Actor], None], excused: tuple[str, ...] = ()) -> Recording:
    recorder = Recorder(actor.folder, excused=excused)
    act(actor)
    return recorder.recording(actor.trace())


def test_calls_become_operations_on_inodes_and_names(actor: Actor) -> None:
    (actor.folder / "state").write_bytes(b"old")

    def act(actor: Actor) -> None:
        actor.mark("INV 1")
        temporary = actor.open("tmp")
        actor.write(temporary, 0, b"new value")
        actor.sync(temporary)
        actor.rename("tmp", "state")
        actor.sync("")
        actor.mark("ACK 1")

    recording = record(actor, act)

    assert without_times(recording.operations) == [
        Marked(0, 0, "INV 1"),
        Create(0, 0, ROOT, "tmp", 3),
        Write(0, 0, 3, 0, b"new value"),
        Sync(0, 0, 3, data_only=False),
        Rename(0, 0, ROOT, "tmp", ROOT, "state", 3, 2),
        Sync(0, 0, ROOT, data_only=False),
        Marked(0, 0, "ACK 1"),
    ]
    assert recording.base.listing() == {"state": b"old"}
    assert recording.base.after(recording.operations).listing() == {"state": b"new value"}


def test_a_write_goes_to_the_file_behind_the_descriptor_whatever_it_is_called_now(actor: Actor) -> None:
    def act(actor: Actor) -> None:
        first = actor.open("a")
        actor.rename("a", "b")
        second = actor.open("a")
        actor.write(first, 0, b"first")
        actor.write(second, 0, b"second")
        actor.unlink("a")
        actor.write(second, 6, b" of nobody")

    recording = record(actor, act)

    assert recording.base.after(recording.operations).listing() == {"b": b"first"}
    assert [(step.inode, step.data) for step in recording.operations if isinstance(step, Write)] == [
        (2, b"first"),
        (3, b"second"),
        (3, b" of nobody"),
    ]


def test_a_number_that_the_kernel_gives_again_is_another_file(actor: Actor) -> None:
    """The numbers are written by hand: both files have the one that the second one really has."""

    def act(actor: Actor) -> None:
        path = actor.folder / "a"
        with path.open("wb") as file:
            number = os.fstat(file.fileno()).st_ino
        path.unlink()
        path.write_bytes(b"two")
        again = path.stat().st_ino
        none, made = File(str(path), 0, "none", 0), File(str(path), again, "file", 0)
        assert number
        actor.events = [
            TracedCall(1, 1, "openat", none, exited=2, result=3, inode=again, flags=CREATE),
            TracedCall(3, 1, "write", made, exited=4, result=3, offset=0, data=b"one"),
            TracedCall(5, 1, "unlink", File(str(path), again, "file", 3), exited=6, result=0),
            TracedCall(7, 1, "openat", none, exited=8, result=3, inode=again, flags=CREATE),
            TracedCall(9, 1, "write", made, exited=10, result=3, offset=0, data=b"two"),
        ]

    recording = record(actor, act)

    assert [step.inode for step in recording.operations if isinstance(step, Create | Write | Unlink)] == [2, 2, 2, 3, 3]


def test_opening_with_o_trunc_cuts_a_file_that_is_there_and_makes_one_that_is_not(actor: Actor) -> None:
    (actor.folder / "old").write_bytes(b"12345")

    def act(actor: Actor) -> None:
        actor.open("old", CREATE | os.O_TRUNC)
        actor.open("new", CREATE | os.O_TRUNC)
        actor.open("new", CREATE | os.O_TRUNC)

    recording = record(actor, act)

    assert without_times(recording.operations) == [Truncate(0, 0, 2, 5, 0), Create(0, 0, ROOT, "new", 3)]


def test_sizes_change_by_truncation_and_by_allocation_which_never_cuts(actor: Actor) -> None:
    (actor.folder / "a").write_bytes(b"12345")

    def act(actor: Actor) -> None:
        file = actor.open("a")
        actor.call("ftruncate", file, lambda: os.ftruncate(file, 3), length=3)
        actor.call("fallocate", file, lambda: os.posix_fallocate(file, 0, 10), length=10)
        actor.call("fallocate", file, lambda: os.posix_fallocate(file, 0, 4), length=4)
        actor.call("truncate", "a", lambda: os.truncate(actor.folder / "a", 10), length=10)
        actor.write(file, 12, b"x")

    recording = record(actor, act)

    assert without_times(recording.operations)[:2] == [
        Truncate(0, 0, 2, 5, 3),
        Truncate(0, 0, 2, 3, 10, allocated=True),
    ]
    assert recording.base.after(recording.operations).listing() == {"a": b"123" + bytes(9) + b"x"}


@pytest.mark.parametrize(("flag", "data_only"), [(os.O_DSYNC, True), (os.O_SYNC, False)])
def test_a_write_that_syncs_is_a_write_and_then_a_sync_of_what_it_wrote(
    actor: Actor, flag: int, data_only: bool
) -> None:
    def act(actor: Actor) -> None:
        file = actor.open("a")
        actor.write(file, 5, b"x", flags=CREATE | flag)

    write, sync = record(actor, act).operations[1:]

    assert write == Write(write.entered, write.exited, 2, 5, b"x")
    assert sync == Sync(sync.entered, sync.exited, 2, data_only=data_only, part=(5, 6))
    assert write.entered < write.exited < sync.entered < sync.exited


def test_a_write_that_could_not_sync_is_a_write_and_then_a_sync_that_failed(actor: Actor) -> None:
    def act(actor: Actor) -> None:
        file = actor.open("a")
        actor.write(file, 0, b"x", flags=CREATE | os.O_DSYNC, result=-5)

    recording = record(actor, act)

    assert without_times(recording.operations)[1:] == [
        Write(0, 0, 2, 0, b"x"),
        Sync(0, 0, 2, data_only=True, failed=True, part=(0, 1)),
    ]


def test_a_sync_of_a_mapping_is_one_of_the_part_that_is_mapped(actor: Actor) -> None:
    def act(actor: Actor) -> None:
        file = actor.open("a")
        actor.call("msync", file, lambda: None, offset=4096, length=100)

    recording = record(actor, act)

    assert without_times(recording.operations)[1:] == [Sync(0, 0, 2, data_only=True, part=(4096, 4196))]


def test_a_call_that_failed_changes_nothing_and_a_sync_that_failed_is_told(actor: Actor) -> None:
    def act(actor: Actor) -> None:
        file = actor.open("a")
        actor.write(file, 0, b"lost", do=lambda: None, result=-28)
        actor.call("unlink", "a", lambda: None, result=-5)
        actor.sync(file, result=-5)
        actor.call("syncfs", file, lambda: None, result=-5)
        actor.call("sync", None, lambda: None)

    recording = record(actor, act)

    assert without_times(recording.operations)[1:] == [
        Sync(0, 0, 2, data_only=False, failed=True),
        SyncAll(0, 0, failed=True),
        SyncAll(0, 0),
    ]


def test_folders_links_and_moves_are_followed(actor: Actor) -> None:
    (actor.folder / "keep").mkdir()
    (actor.folder / "keep" / "a").write_bytes(b"a")

    def act(actor: Actor) -> None:
        root = actor.folder
        actor.call("mkdir", "new", lambda: os.mkdir(root / "new"), makes=True)
        actor.call("link", "keep/a", lambda: os.link(root / "keep/a", root / "new/b"), other=actor.file("new/b"))
        actor.rename("keep", "new/kept")
        actor.call("symlink", "s", lambda: os.symlink("new", root / "s"), makes=True, target="new")
        actor.unlink("new/kept/a")
        actor.call("rmdir", "new/kept", lambda: os.rmdir(root / "new/kept"))

    recording = record(actor, act)

    assert recording.base.after(recording.operations).listing() == {"new": None, "new/b": b"a", "s": "new"}
    assert without_times(recording.operations)[:3] == [
        MakeFolder(0, 0, ROOT, "new", 4),
        Link(0, 0, 4, "b", 3),
        Rename(0, 0, ROOT, "keep", 4, "kept", 2, None),
    ]


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="only Linux has files without a name")
def test_a_file_that_is_made_without_a_name_gets_one_by_a_link(actor: Actor) -> None:
    def act(actor: Actor) -> None:
        flags = os.O_RDWR | os.O_TMPFILE
        file = os.open(actor.folder, flags)
        actor.descriptors.append(file)
        actor.call("openat", "", lambda: None, flags=flags, inode=os.fstat(file).st_ino)
        actor.write(file, 0, b"x")
        link = partial(os.link, f"/proc/self/fd/{file}", actor.folder / "a", src_dir_fd=actor.descriptors[0])
        actor.call("linkat", file, link, other=actor.file("a"))

    recording = record(actor, act)

    assert without_times(recording.operations) == [Write(0, 0, 2, 0, b"x"), Link(0, 0, ROOT, "a", 2)]
    assert recording.base.after(recording.operations).listing() == {"a": b"x"}


def test_renaming_a_file_to_another_of_its_own_names_does_nothing(actor: Actor) -> None:
    (actor.folder / "a").write_bytes(b"a")
    os.link(actor.folder / "a", actor.folder / "b")

    recording = record(actor, lambda actor: actor.rename("a", "b"))

    assert recording.operations == ()
    assert recording.base.listing() == {"a": b"a", "b": b"a"}


def test_the_kind_of_what_is_made_is_known_even_if_its_making_is_left_out(actor: Actor) -> None:
    def act(actor: Actor) -> None:
        actor.call("mkdir", "a", lambda: os.mkdir(actor.folder / "a"), makes=True)
        actor.rename("a", "b")

    recording = record(actor, act)

    assert recording.base.listing() == {}
    assert recording.base.after(recording.operations[1:]).listing() == {"b": None}


# Several threads


def test_calls_of_two_threads_are_taken_in_the_order_in_which_they_ended(actor: Actor) -> None:
    def act(actor: Actor) -> None:
        one, two = actor.open("one", entered=1, exited=2), actor.open("two", entered=3, exited=4)
        actor.write(one, 0, b"1", entered=5, exited=8)
        actor.write(two, 0, b"2", thread=2, entered=6, exited=7)

    one, two, *writes = record(actor, act).operations

    assert one.exited < two.entered
    assert [write.data for write in writes if isinstance(write, Write)] == [b"2", b"1"]
    assert writes[1].entered < writes[0].entered < writes[0].exited < writes[1].exited


def test_a_file_can_be_used_by_another_thread_before_the_call_that_makes_it_has_ended(actor: Actor) -> None:
    def act(actor: Actor) -> None:
        actor.open("a", entered=1, exited=20)
        file = actor.open("a", os.O_RDWR, thread=2, entered=2, exited=3)
        actor.write(file, 0, b"x", thread=2, entered=4, exited=5)

    create, write = record(actor, act).operations

    assert (type(create), create.entered, create.exited) == (Create, 4, 80)
    assert (type(write), write.entered, write.exited) == (Write, 16, 20)


@pytest.mark.parametrize(("writes", "truncates"), [((5, 8), (6, 7)), ((6, 9), (5, 8))])
def test_what_a_call_met_is_not_asked_where_another_one_overlapped_it(
    actor: Actor, writes: tuple[int, int], truncates: tuple[int, int]
) -> None:
    """The writer began when the file was longer; the other thread's truncation came between."""

    def act(actor: Actor) -> None:
        file = actor.open("a", entered=1, exited=2)
        actor.write(file, 0, b"123", entered=3, exited=4)
        before = actor.file("a")
        cut = partial(os.ftruncate, file, 0)
        actor.call("ftruncate", file, cut, length=0, thread=2, entered=truncates[0], exited=truncates[1])
        actor.write(file, 0, b"x", entered=writes[0], exited=writes[1])
        last = actor.events.pop()
        assert isinstance(last, TracedCall)
        actor.events.append(replace(last, file=before))

    recording = record(actor, act)

    assert recording.base.after(recording.operations).listing() == {"a": b"x"}


@pytest.mark.parametrize("happened", [b"", b"whole" * 2000, (b"whole" * 2000)[:4096]])
def test_a_write_in_which_the_process_was_killed_is_what_the_file_says(actor: Actor, happened: bytes) -> None:
    def act(actor: Actor) -> None:
        file = actor.open("a")
        told = {"exited": None, "result": None, "do": lambda: os.pwrite(file, happened, 0)}
        actor.write(file, 0, b"whole" * 2000, **told)

    _, *writes = record(actor, act).operations

    assert [(write.data, write.exited) for write in writes if isinstance(write, Write)] == (
        [(happened, NEVER)] if happened else []
    )


# What cannot be followed


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (
            lambda actor: (actor.folder / "a").write_bytes(b"12X4"),
            "`a` has 4 bytes (replayed: 4) and differs from byte 2",
        ),
        (lambda actor: (actor.folder / "a").unlink(), "`a` is not there, and should be"),
        (lambda actor: (actor.folder / "b").touch(), "`b` is there, and was not made by any call"),
        (lambda actor: (actor.folder / "d").rmdir() or (actor.folder / "d").touch(), "`d` is another kind of file"),
        (lambda actor: actor.rename("../outside/b", "a"), "`a` was moved here from"),
        (lambda actor: os.mkfifo(actor.folder / "p"), "`p` is there, and was not made by any call"),
        (lambda actor: actor.obstacle("", "io_uring was used"), "io_uring was used"),
    ],
)
def test_a_folder_that_the_calls_do_not_explain_is_refused(
    tmp_path: Path, act: Callable[[Actor], object], told: str
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b").write_bytes(b"not watched")
    (tmp_path / "folder" / "d").mkdir(parents=True)
    (tmp_path / "folder" / "a").write_bytes(b"1234")

    with pytest.raises(Unfollowable) as refused:
        record(Actor(tmp_path / "folder"), act)  # type: ignore[arg-type]

    assert told in str(refused.value)


def test_a_file_that_had_another_size_in_between_is_refused_even_if_the_end_is_right(actor: Actor) -> None:
    def act(actor: Actor) -> None:
        file = actor.open("a")
        os.write(file, b"unseen")
        actor.write(file, 0, b"s")
        actor.unlink("a")

    with pytest.raises(Unfollowable, match="`a` had 6 bytes before pwrite64, and 0 by the calls before"):
        record(actor, act)


def test_a_link_to_the_same_file_is_not_the_same_as_a_copy(actor: Actor) -> None:
    def act(actor: Actor) -> None:
        first, second = actor.open("a"), actor.open("b")
        actor.write(first, 0, b"x")
        actor.write(second, 0, b"x")
        (actor.folder / "b").unlink()
        os.link(actor.folder / "a", actor.folder / "b")

    with pytest.raises(Unfollowable, match="two names share a file, and should not"):
        record(actor, act)


# What is excused


def test_the_shared_memory_of_sqlite_is_left_out_everywhere(actor: Actor) -> None:
    (actor.folder / "runs.db").touch()
    (actor.folder / "old-shm").write_bytes(b"of no database")

    def act(actor: Actor) -> None:
        memory = actor.open("runs.db-shm")
        actor.write(memory, 0, b"x")
        (actor.folder / "runs.db-shm").write_bytes(b"mapped")
        actor.obstacle("runs.db-shm", "runs.db-shm was mapped writable and shared")

    recording = record(actor, act)

    assert recording.operations == ()
    assert recording.base.listing() == {"old-shm": b"of no database", "runs.db": b""}


@pytest.mark.parametrize("pattern", ["*.lock", "sub/a.lock", "a.lock"])
def test_what_the_caller_declares_is_left_out(actor: Actor, pattern: str) -> None:
    (actor.folder / "sub").mkdir()
    (actor.folder / "sub" / "a.lock").mkdir()

    def act(actor: Actor) -> None:
        lock = actor.open("sub/a.lock/owner")
        actor.write(lock, 0, b"me")
        os.write(lock, b"again, unseen")

    recording = record(actor, act, (pattern,))

    assert recording.operations == ()
    assert recording.base.listing() == {"sub": None}


def test_a_lock_file_that_becomes_the_data_is_not_excused(actor: Actor) -> None:
    def act(actor: Actor) -> None:
        lock = actor.open("state.lock")
        actor.write(lock, 0, b"data")
        actor.rename("state.lock", "state")

    recording = record(actor, act, ("*.lock",))

    assert recording.base.after(recording.operations).listing() == {"state": b"data"}
    assert len(recording.operations) == 3


def test_an_obstacle_of_the_database_is_not_excused_by_its_shared_memory(actor: Actor) -> None:
    (actor.folder / "runs.db").touch()
    (actor.folder / "runs.db-shm").touch()
    actor.obstacle("runs.db", "runs.db was mapped writable and shared")

    with pytest.raises(Unfollowable, match=r"runs\.db was mapped"):
        record(actor, lambda actor: None)
