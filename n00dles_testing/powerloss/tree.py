"""The files of one folder in memory, by inodes, as a disk keeps them; operations lead from one tree to the next."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from hashlib import blake2b

from .contents import Content
from .operations import (
    ROOT,
    ChangeMode,
    Create,
    Link,
    MakeFolder,
    MakeSpecial,
    Operation,
    Rename,
    Special,
    Symlink,
    Truncate,
    Unlink,
    Write,
)

__all__ = ["Draft", "Folder", "Node", "Tree"]

Folder = dict[str, int]
"""The names in a folder, and their inodes."""

Node = Content | Folder | str | Special
"""What an inode is: the content of a file, a folder, the target of a symbolic link, a pipe or a socket."""

_AGE = 5_000_000_000
"""So old (nanoseconds) is what is written into a real folder: of now, and yet older than all that comes after it."""
_APART = 1000
"""So far (nanoseconds) apart are the times of two files that were changed one position after the other."""
_FORMATS = {Special.PIPE: stat.S_IFIFO, Special.SOCKET: stat.S_IFSOCK}


class Tree:
    """A folder with all that is below it. Never changed: `after` returns another tree, which shares what is the same.

    Names and inodes are two things, as on a disk: an inode may have no name (yet, or any more) or several, and keeps
    what was written into it. So an operation can be applied without those before it. The last operation on a name
    decides what it leads to; a write goes into its inode, whether that has a name or not. The permissions of an inode
    are kept as far as they are known; of times only in which order files were changed.
    """

    __slots__ = ("_digest", "_modes", "_nodes")

    def __init__(self, nodes: dict[int, Node] | None = None, modes: dict[int, int] | None = None) -> None:
        self._nodes: dict[int, Node] = nodes if nodes is not None else {ROOT: {}}
        self._modes: dict[int, int] = modes if modes is not None else {}
        self._digest: bytes | None = None

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Tree:
        """Return what a real folder holds.

        OSError if something cannot be read, is a device, or is on another file system than the folder itself.
        """
        reader = _Reader()
        reader.read(os.fspath(folder))
        return cls(reader.nodes, reader.modes)

    def after(self, operations: Iterable[Operation]) -> Tree:
        """Return the tree that some operations lead to, applied in their order."""
        draft = Draft(self)
        for operation in operations:
            draft.apply(operation)
        return draft.tree()

    def node(self, inode: int) -> Node | None:
        """Return what an inode is, with or without a name, or None if it is not known."""
        return self._nodes.get(inode)

    def mode(self, inode: int) -> int | None:
        """Return the permissions of an inode (bits as in chmod(2)), or None if they are not known."""
        return self._modes.get(inode)

    def names(self) -> Iterator[tuple[str, int]]:
        """Give each path (relative to the folder, parents first, in the order of names) with its inode."""
        seen = {ROOT}
        waiting = [("", ROOT)]
        while waiting:
            prefix, inode = waiting.pop()
            if prefix:
                yield prefix, inode
            node = self._nodes[inode]
            if isinstance(node, dict):
                inside = []
                for name, to in sorted(node.items()):
                    # Some subsets of renames give a folder two names, which no disk shows; then the first one counts.
                    if to not in seen:
                        inside.append((f"{prefix}/{name}" if prefix else name, to))
                    if isinstance(self._nodes[to], dict):
                        seen.add(to)
                waiting.extend(reversed(inside))

    def find(self, path: str) -> int | None:
        """Return the inode at a path relative to the folder ("" is the folder), or None if there is none."""
        return _find(self._nodes, path)

    def path_of(self, inode: int) -> str | None:
        """Return a path that leads to an inode, or None if it has no name in this tree."""
        return "" if inode == ROOT else next((path for path, found in self.names() if found == inode), None)

    def listing(self) -> dict[str, bytes | str | Special | None]:
        """Return all paths: with the bytes of a file, None for a folder, the target (a str) of a symbolic link."""
        found: dict[str, bytes | str | Special | None] = {}
        for path, inode in self.names():
            node = self._nodes[inode]
            found[path] = node.data() if isinstance(node, Content) else None if isinstance(node, dict) else node
        return found

    def without(self, inodes: Collection[int]) -> Tree:
        """Return the tree without some inodes, all their names, and what has a name only below them."""
        nodes: dict[int, Node] = {}
        for inode, node in self._nodes.items():
            if inode not in inodes:
                nodes[inode] = (
                    {name: to for name, to in node.items() if to not in inodes} if isinstance(node, dict) else node
                )
        return Tree(nodes, self._modes)

    def digest(self) -> bytes:
        """Return what is the same for two trees exactly if all names, kinds, contents, shared inodes and modes are."""
        if self._digest is None:
            digest = blake2b(b"%d" % self._modes.get(ROOT, -1), digest_size=16)
            numbers: dict[int, int] = {}
            for path, inode in self.names():
                node = self._nodes[inode]
                number = numbers.setdefault(inode, len(numbers))
                if isinstance(node, Content):
                    what = b"f%d:" % number + node.digest()
                elif isinstance(node, Special):
                    what = b"s%d:" % number + node.value.encode()
                else:
                    what = b"d" if isinstance(node, dict) else b"l%d:" % number + os.fsencode(node)
                what += b":%d" % self._modes.get(inode, -1)
                name = os.fsencode(path)
                digest.update(b"%d:%d:%s%s" % (len(name), len(what), name, what))
            self._digest = digest.digest()
        return self._digest

    def write_to(self, folder: str | os.PathLike[str]) -> None:
        """Write the tree into a real folder, which is made if it is not there and must be empty if it is.

        All is some seconds old then, in the order in which it was changed; so it can be seen what is changed later.
        """
        root = os.fspath(folder)
        os.makedirs(root, exist_ok=True)
        written: dict[int, str] = {}
        for path, inode in self.names():
            real = f"{root}/{path}"
            if inode in written:
                os.link(written[inode], real, follow_symlinks=False)
            else:
                written[inode] = real
                _make(real, self._nodes[inode])
        long_ago = (time.time_ns() - _AGE) // _APART * _APART + 1
        for inode, real in reversed([(ROOT, root), *written.items()]):  # what is in a folder before the folder
            node = self._nodes[inode]
            if inode in self._modes and not isinstance(node, str):
                os.chmod(real, self._modes[inode])
            then = long_ago + (node.changed * _APART if isinstance(node, Content) else 0)
            os.utime(real, ns=(then, then), follow_symlinks=False)


class Draft:
    """A tree in the making: takes operations one after the other. The tree it began with stays as it is."""

    __slots__ = ("_modes", "_nodes", "_own")

    def __init__(self, tree: Tree) -> None:
        self._nodes = tree._nodes.copy()
        self._modes = tree._modes.copy()
        self._own: set[int] = set()

    def tree(self) -> Tree:
        """Return what it is now. The draft may go on."""
        self._own.clear()
        return Tree(self._nodes.copy(), self._modes.copy())

    def node(self, inode: int) -> Node | None:
        """Return what an inode is now, or None if it is not known."""
        return self._nodes.get(inode)

    def find(self, path: str) -> int | None:
        """Return the inode at a path relative to the folder now, or None if there is none."""
        return _find(self._nodes, path)

    def apply(self, operation: Operation) -> None:
        """Do what an operation does to names, contents and modes; a sync or a mark does nothing."""
        if isinstance(operation, Write):
            self._content(operation).write(operation.offset, operation.data)
        elif isinstance(operation, Truncate):
            self._content(operation).resize(operation.size)
        elif isinstance(operation, ChangeMode):
            self._modes[operation.inode] = operation.mode
        elif isinstance(operation, Unlink):
            self._folder(operation.folder).pop(operation.name, None)
        elif isinstance(operation, Rename):
            self._folder(operation.folder).pop(operation.name, None)
            self._name(operation.to_folder, operation.to_name, operation.inode)
        elif isinstance(operation, Create | MakeFolder | MakeSpecial | Symlink | Link):
            self.expect(operation)
            self._name(operation.folder, operation.name, operation.inode)

    def expect(self, operation: Operation) -> None:
        """Make what an operation will create, without its name, so that its kind is known even if that is left out."""
        if isinstance(operation, Create):
            if operation.inode not in self._nodes:
                new = self._nodes[operation.inode] = Content()
                new.changed = operation.entered
        elif isinstance(operation, MakeFolder):
            self._nodes.setdefault(operation.inode, {})
        elif isinstance(operation, MakeSpecial):
            self._nodes.setdefault(operation.inode, operation.special)
        elif isinstance(operation, Symlink):
            self._nodes.setdefault(operation.inode, operation.target)
        if isinstance(operation, Create | MakeFolder | MakeSpecial) and operation.mode is not None:
            self._modes.setdefault(operation.inode, operation.mode)

    def _name(self, folder: int, name: str, inode: int) -> None:
        if inode not in self._nodes:
            self._nodes[inode] = Content()
        self._folder(folder)[name] = inode

    def _folder(self, inode: int) -> Folder:
        node = self._nodes.get(inode, {})
        if not isinstance(node, dict):
            raise TypeError(f"inode {inode} is no folder, and an operation uses it as one")
        if inode not in self._own:
            self._own.add(inode)
            node = self._nodes[inode] = node.copy()
        return node

    def _content(self, operation: Write | Truncate) -> Content:
        inode = operation.inode
        node = self._nodes.get(inode)
        if node is None:
            node = Content()
        if not isinstance(node, Content):
            raise TypeError(f"inode {inode} is no file, and an operation uses it as one")
        if inode not in self._own:
            self._own.add(inode)
            node = self._nodes[inode] = node.copy()
        node.changed = max(node.changed, operation.entered)
        return node


def _find(nodes: dict[int, Node], path: str) -> int | None:
    inode = ROOT
    for name in path.split("/") if path else ():
        node = nodes[inode]
        if not isinstance(node, dict) or name not in node:
            return None
        inode = node[name]
    return inode


def _make(path: str, node: Node) -> None:
    if isinstance(node, Content):
        node.write_to(path)
    elif isinstance(node, dict):
        os.mkdir(path)
    elif isinstance(node, str):
        os.symlink(node, path)
    else:
        os.mknod(path, _FORMATS[node] | 0o666)


class _Reader:
    """Reads real folders: `nodes` are their inodes by new numbers, `modes` the permissions of these."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.modes: dict[int, int] = {}
        self._known: dict[tuple[int, int], int] = {}
        self._times: dict[int, int] = {}

    def read(self, folder: str) -> None:
        """Read all that is in a folder."""
        self._folder(folder, os.stat(folder))
        order = {then: number for number, then in enumerate(sorted(set(self._times.values())))}
        for inode, then in self._times.items():
            node = self.nodes[inode]
            assert isinstance(node, Content)
            node.changed = order[then] - len(order)

    def _folder(self, folder: str, status: os.stat_result) -> int:
        names: Folder = {}
        inode = self._new(names, status.st_mode)
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            inside = entry.stat(follow_symlinks=False)
            if not stat.S_ISDIR(inside.st_mode):
                names[entry.name] = self._other(entry.path, inside)
            elif inside.st_dev == status.st_dev:
                names[entry.name] = self._folder(entry.path, inside)
            else:
                raise OSError(errno.EXDEV, f"{entry.path} is on another file system than the folder that it is in")
        return inode

    def _other(self, path: str, status: os.stat_result) -> int:
        """Read what is no folder, and may have other names."""
        identity = (status.st_dev, status.st_ino)
        if identity not in self._known:
            node = _read_node(path, status.st_mode)
            inode = self._known[identity] = self._new(node, status.st_mode)
            if isinstance(node, Content):
                self._times[inode] = status.st_mtime_ns
        return self._known[identity]

    def _new(self, node: Node, mode: int) -> int:
        inode = len(self.nodes) + 1
        self.nodes[inode] = node
        if not isinstance(node, str):
            self.modes[inode] = stat.S_IMODE(mode)
        return inode


def _read_node(path: str, mode: int) -> Node:
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    for special, kind in _FORMATS.items():
        if stat.S_IFMT(mode) == kind:
            return special
    if not stat.S_ISREG(mode):
        raise OSError(f"{path} is a device, and cannot be read")
    return Content.read(path)
