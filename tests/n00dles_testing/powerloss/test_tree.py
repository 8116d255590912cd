import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from n00dles_testing.powerloss.contents import BLOCK, Content
from n00dles_testing.powerloss.operations import (
    NEVER,
    ROOT,
    ChangeMode,
    Create,
    Link,
    MakeFolder,
    MakeSpecial,
    Marked,
    Operation,
    Rename,
    Special,
    Symlink,
    Sync,
    SyncAll,
    Truncate,
    Unlink,
    Write,
)
from n00dles_testing.powerloss.tree import Draft, Tree


@contextmanager
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="n00dles-tree-") as path:
        yield Path(path)


def a_file(name: str, data: bytes, inode: int = 2) -> list[Operation]:
    return [Create(0, 0, ROOT, name, inode), Write(1, 1, inode, 0, data)]


def without_permissions(tree: Tree) -> Tree:
    known = [ROOT, *(inode for _, inode in tree.names())]
    return Tree({inode: node for inode in known if (node := tree.node(inode)) is not None})


def test_a_tree_is_read_from_a_folder_and_written_into_another_one(tmp_path: Path) -> None:
    (tmp_path / "old" / "sub" / "empty").mkdir(parents=True)
    (tmp_path / "old" / "a").write_bytes(b"x" * 10_000)
    (tmp_path / "old" / "sub" / "none").touch()
    os.link(tmp_path / "old" / "a", tmp_path / "old" / "sub" / "same")
    (tmp_path / "old" / "link").symlink_to("sub/same")

    tree = Tree.read(tmp_path / "old")
    tree.write_to(tmp_path / "new")

    assert tree.listing() == {
        "a": b"x" * 10_000,
        "link": "sub/same",
        "sub": None,
        "sub/empty": None,
        "sub/none": b"",
        "sub/same": b"x" * 10_000,
    }
    assert Tree.read(tmp_path / "new").listing() == tree.listing()
    assert Tree.read(tmp_path / "new").digest() == tree.digest()
    assert (tmp_path / "new" / "a").stat().st_ino == (tmp_path / "new" / "sub" / "same").stat().st_ino


def test_a_tree_is_not_changed_by_what_comes_after_it() -> None:
    first = Tree().after(a_file("a", b"one"))

    second = first.after([Write(2, 2, 2, 0, b"two"), Rename(3, 3, ROOT, "a", ROOT, "b", 2, None)])

    assert first.listing() == {"a": b"one"}
    assert second.listing() == {"b": b"two"}


def test_a_draft_goes_on_and_the_trees_that_it_gave_stay() -> None:
    draft = Draft(Tree())
    trees = []

    for operation in [*a_file("a", b"one"), Write(2, 2, 2, 0, b"two"), Create(3, 3, ROOT, "b", 3)]:
        draft.apply(operation)
        trees.append(draft.tree())

    assert [tree.listing() for tree in trees] == [{"a": b""}, {"a": b"one"}, {"a": b"two"}, {"a": b"two", "b": b""}]


def test_operations_do_what_the_calls_do() -> None:
    tree = Tree().after(
        [
            *a_file("a", b"hello"),
            Truncate(2, 2, 2, 5, 2),
            Write(3, 3, 2, 4, b"X"),
            Link(4, 4, ROOT, "b", 2),
            MakeFolder(5, 5, ROOT, "sub", 3),
            Symlink(6, 6, 3, "to", 4, "../a"),
            Rename(7, 7, ROOT, "b", 3, "b", 2, None),
            Unlink(8, 8, ROOT, "a", 2),
            Sync(9, 9, 2, data_only=True),
            SyncAll(10, NEVER),
            Marked(11, 11, "ACK 1"),
        ]
    )

    assert tree.listing() == {"sub": None, "sub/b": b"he\0\0X", "sub/to": "../a"}
    assert (tree.path_of(2), tree.path_of(ROOT), tree.path_of(99)) == ("sub/b", "", None)
    assert (tree.find("sub/b"), tree.find(""), tree.find("sub/b/c"), tree.find("a")) == (2, ROOT, None, None)


def test_what_an_inode_holds_does_not_need_the_operation_that_named_it() -> None:
    """On a disk that has lost the creation of `tmp`, the data may be there, and the rename leads to it."""
    tree = Tree().after([Write(1, 1, 2, 0, b"data"), Rename(2, 2, ROOT, "tmp", ROOT, "a", 2, None)])

    assert tree.listing() == {"a": b"data"}


def test_the_last_operation_on_a_name_decides_what_it_leads_to() -> None:
    tree = Tree().after([*a_file("a", b"old"), *a_file("b", b"new", 3), Unlink(2, 2, ROOT, "a", 9)])

    assert tree.listing() == {"b": b"new"}


def test_a_folder_that_lost_operations_gave_two_names_is_shown_once() -> None:
    """Moving `b` out of `a` was lost, moving `a` into `b` was not; and `a` has a second name by a lost rename."""
    base = Tree().after([MakeFolder(0, 0, ROOT, "a", 2), MakeFolder(1, 1, 2, "b", 3)])

    tree = base.after([Rename(2, 2, ROOT, "other", 3, "a", 2, None)])

    assert tree.listing() == {"a": None, "a/b": None}


@pytest.mark.parametrize("wrong", [Write(2, 2, ROOT, 0, b"x"), Create(2, 2, 2, "b", 3)])
def test_an_operation_on_the_wrong_kind_of_inode_is_refused(wrong: Operation) -> None:
    tree = Tree().after(a_file("a", b""))

    with pytest.raises(TypeError, match="inode"):
        tree.after([wrong])


def test_trees_have_one_digest_only_if_everything_is_the_same() -> None:
    one = Tree().after(a_file("a", b"x"))
    others = [
        Tree(),
        Tree().after(a_file("b", b"x")),
        Tree().after(a_file("a", b"y")),
        Tree().after(a_file("a", b"x\0")),
        Tree().after([MakeFolder(0, 0, ROOT, "a", 2)]),
        Tree().after([Symlink(0, 0, ROOT, "a", 2, "x")]),
        one.after([Link(0, 0, ROOT, "b", 2)]),
        one.after(a_file("b", b"x", 3)),
    ]

    again = Tree().after([*a_file("a", b"z", 7), Write(3, 3, 7, 0, b"x")])

    assert again.digest() == one.digest()
    assert len({tree.digest() for tree in [one, *others]}) == 1 + len(others)


def test_zeros_and_a_hole_are_the_same() -> None:
    hole = Content.of(b"x")
    hole.resize(3 * BLOCK)
    zeros = Content.of(b"x" + bytes(3 * BLOCK - 1))

    assert hole.data() == zeros.data()
    assert hole.digest() == zeros.digest()
    assert hole.first_difference(zeros) is None


@pytest.mark.parametrize(
    ("one", "other", "offset"),
    [
        (b"abc", b"abd", 2),
        (b"abc", b"ab", 2),
        (b"a", b"a\0\0", 1),
        (bytes(BLOCK + 7) + b"x", bytes(BLOCK + 7) + b"y", BLOCK + 7),
    ],
)
def test_the_first_byte_that_differs_is_found(one: bytes, other: bytes, offset: int) -> None:
    assert Content.of(one).first_difference(Content.of(other)) == offset


def test_a_block_that_is_not_full_keeps_its_place_before_the_next_one(tmp_path: Path) -> None:
    tree = Tree().after([*a_file("a", b"x"), Write(2, 2, 2, BLOCK, b"y"), Write(3, 3, 2, 3 * BLOCK, b"z")])

    tree.write_to(tmp_path / "new")

    zeros = bytes(BLOCK - 1)
    assert (tmp_path / "new" / "a").read_bytes() == b"x" + zeros + b"y" + zeros + bytes(BLOCK) + b"z"


def test_a_large_file_with_a_hole_is_read_and_written_without_filling_it(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    with (tmp_path / "old" / "a").open("wb") as file:
        file.write(b"begin")
        file.seek(1 << 30)
        file.write(b"end")
        file.truncate((1 << 30) + 10_000)

    tree = Tree.read(tmp_path / "old")
    tree.write_to(tmp_path / "new")

    written = (tmp_path / "new" / "a").stat()
    assert written.st_size == (1 << 30) + 10_000
    assert written.st_blocks * 512 < 1 << 20
    assert Tree.read(tmp_path / "new").digest() == tree.digest()


def test_a_device_is_refused() -> None:
    with pytest.raises(OSError, match=r"^/dev/.* is (a device|on another file system)|another file system"):
        Tree.read("/dev")


def test_pipes_sockets_and_permissions_are_read_and_made_again(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    (old / "sub").mkdir(parents=True)
    os.mkfifo(old / "sub" / "pipe")
    os.mknod(old / "socket", stat.S_IFSOCK)
    (old / "key").write_text("secret")
    for name, mode in {"sub/pipe": 0o620, "socket": 0o700, "key": 0o400, "sub": 0o500, ".": 0o710}.items():
        os.chmod(old / name, mode)

    tree = Tree.read(old)
    tree.write_to(new)

    assert tree.listing() == {"key": b"secret", "socket": Special.SOCKET, "sub": None, "sub/pipe": Special.PIPE}
    names = ("sub/pipe", "socket", "key", "sub", ".")
    assert [os.lstat(new / name).st_mode for name in names] == [os.lstat(old / name).st_mode for name in names]
    assert Tree.read(new).digest() == tree.digest()


def test_permissions_are_those_of_the_creation_until_they_change() -> None:
    made: list[Operation] = [Create(0, 0, ROOT, "a", 2, 0o600), MakeFolder(1, 1, ROOT, "sub", 3, 0o700)]
    made += [MakeSpecial(2, 2, 3, "pipe", 4, Special.PIPE, 0o640), Create(3, 3, ROOT, "b", 5)]

    before = Tree().after(made)
    after = before.after([ChangeMode(4, 4, 2, 0o400), ChangeMode(5, 5, ROOT, 0o700)])

    assert [before.mode(inode) for inode in (ROOT, 2, 3, 4, 5)] == [None, 0o600, 0o700, 0o640, None]
    assert [after.mode(inode) for inode in (ROOT, 2, 3, 4, 5)] == [0o700, 0o400, 0o700, 0o640, None]
    assert len({before.digest(), after.digest(), before.after([ChangeMode(4, 4, 2, 0o400)]).digest()}) == 3


def test_files_are_some_seconds_old_in_the_order_in_which_they_were_changed(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    for name, then in (("second", 20), ("first", 10), ("third", 30), ("like the third", 30)):
        (old / name).write_text(name)
        os.utime(old / name, (then, then))
    tree = Tree.read(old)
    fourth, fifth = (tree.find(name) for name in ("second", "first"))
    assert fourth
    assert fifth

    tree = tree.after([Write(500, 500, fifth, 0, b"x"), Truncate(400, 400, fourth, 6, 2)])
    tree.write_to(new)

    times = {name: os.stat(new / name).st_mtime_ns for name in os.listdir(new)}
    assert sorted(times, key=lambda name: (times[name], name)) == ["like the third", "third", "second", "first"]
    assert times["third"] == times["like the third"] < times["second"] < times["first"]
    assert all(2 < time.time() - then / 1e9 < 60 for then in [*times.values(), os.stat(new).st_mtime_ns])


_PLACES = st.one_of(st.integers(0, 40), st.integers(BLOCK - 20, BLOCK + 20), st.integers(3 * BLOCK - 3, 3 * BLOCK + 3))
_CHANGES = st.one_of(
    st.tuples(st.just("write"), _PLACES, st.one_of(st.binary(max_size=30), st.just(b"z" * (2 * BLOCK + 5)))),
    st.tuples(st.just("resize"), _PLACES, st.just(b"")),
)


@given(st.lists(_CHANGES, max_size=12))
def test_contents_are_what_a_bytearray_says(changes: list[tuple[str, int, bytes]]) -> None:
    content, model = Content(), bytearray()
    versions = []

    for what, place, data in changes:
        versions.append((content.copy(), bytes(model)))
        content.digest()
        if what == "write":
            content.write(place, data)
            if data:
                model.extend(bytes(max(0, place + len(data) - len(model))))
                model[place : place + len(data)] = data
        else:
            content.resize(place)
            model = model[:place] + bytes(max(0, place - len(model)))

    versions.append((content, bytes(model)))
    assert [version.data() for version, _ in versions] == [data for _, data in versions]
    assert [version.digest() for version, _ in versions] == [Content.of(data).digest() for _, data in versions]


def _operations() -> st.SearchStrategy[list[Operation]]:
    """Any operations at all, in any order: inodes 2 to 4 are files, 5 and 6 folders."""
    names, files, folders = st.sampled_from("abc"), st.integers(2, 4), st.sampled_from([ROOT, 5, 6])
    at = st.just(0)
    return st.lists(
        st.one_of(
            st.builds(Create, at, at, folders, names, files),
            st.builds(MakeFolder, at, at, folders, names, st.integers(5, 6)),
            st.builds(Link, at, at, folders, names, files),
            st.builds(Unlink, at, at, folders, names, files),
            st.builds(Rename, at, at, folders, names, folders, names, files, st.none()),
            st.builds(Write, at, at, files, st.integers(0, 6), st.binary(max_size=4)),
            st.builds(Truncate, at, at, files, at, st.integers(0, 9)),
        ),
        max_size=25,
    )


def _listing_of(operations: list[Operation]) -> dict[str, bytes | None]:
    """A second model: what each name and inode has last become, found by looking at each operation once."""
    leads: dict[tuple[int, str], int] = {}
    data: dict[int, bytes] = {}
    for operation in operations:
        match operation:
            case Rename(_, _, folder, name, to_folder, to_name, inode):
                leads.pop((folder, name), None)
                leads[to_folder, to_name] = inode
            case Unlink(_, _, folder, name, _):
                leads.pop((folder, name), None)
            case Create(_, _, folder, name, inode) | MakeFolder(_, _, folder, name, inode):
                leads[folder, name] = inode
            case Link(_, _, folder, name, inode):
                leads[folder, name] = inode
            case Write(_, _, inode, offset, written) if written:
                old = data.get(inode, b"")
                data[inode] = old[:offset].ljust(offset, b"\0") + written + old[offset + len(written) :]
            case Truncate(_, _, inode, _, size):
                data[inode] = data.get(inode, b"")[:size].ljust(size, b"\0")
            case _:
                pass

    def below(folder: int, prefix: str, shown: set[int]) -> Iterator[tuple[str, bytes | None]]:
        inside = []
        for name in sorted(name for number, name in leads if number == folder):
            inode = leads[folder, name]
            if inode < 5:
                yield prefix + name, data.get(inode, b"")
            elif inode not in shown:
                shown.add(inode)
                yield prefix + name, None
                inside.append((inode, f"{prefix}{name}/"))
        for inode, path in inside:
            yield from below(inode, path, shown)

    return dict(below(ROOT, "", {ROOT}))


@given(_operations())
def test_a_tree_is_what_a_second_model_says(operations: list[Operation]) -> None:
    tree = Tree().after(operations)

    listing = tree.listing()

    assert listing == _listing_of(operations)
    with folder() as real:
        tree.write_to(real / "new")
        assert without_permissions(Tree.read(real / "new")).digest() == tree.digest()


@given(_operations(), st.integers(0, 25))
def test_operations_in_two_steps_lead_to_the_same_tree(operations: list[Operation], first: int) -> None:
    tree = Tree().after(operations)

    half = Tree().after(operations[:first])
    before = half.digest()

    assert half.after(operations[first:]).digest() == tree.digest()
    assert half.digest() == before
