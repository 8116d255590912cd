"""The files of one folder in memory, by inodes, as a disk keeps them; operations lead from one tree to the next."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from hashlib import blake2b

from .contents import Content
from .operations import (
    ROOT,
    Create,
    Link,
    MakeFolder,
    Operation,
    Rename,
    Symlink,
    Truncate,
    Unlink,
    Write,
)

__all__ = ["Draft", "Folder", "Node", "Tree"]

Folder = dict[str, int]
"""The names in a folder, and their inodes."""

Node = Content | Folder | str
"""What an inode is: the content of a file, a folder, or the target of a symbolic link."""


class Tree:
    """A folder with all that is below it. Never changed: `after` returns another tree, which shares what is the same.

    Names and inodes are two things, as on a disk: an inode may have no name (yet, or any more) or several, and keeps
    what was written into it. So an operation can be applied without those before it. The last operation on a name
    decides what it leads to; a write goes into its inode, whether that has a name or not.
    """

    __slots__ = ("_digest", "_nodes")

    def __init__(self, nodes: dict[int, Node] | None = None) -> None:
        self._nodes: dict[int, Node] = nodes if nodes is not None else {ROOT: {}}
        self._digest: bytes | None = None

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Tree:
        """Return what a real folder holds. OSError if something cannot be read, or is no file, folder or link."""
        nodes: dict[int, Node] = {}
        _read(os.fspath(folder), nodes, {})
        return cls(nodes)

    def after(self, operations: Iterable[Operation]) -> Tree:
        """Return the tree that some operations lead to, applied in their order."""
        draft = Draft(self)
        for operation in operations:
            draft.apply(operation)
        return draft.tree()

    def node(self, inode: int) -> Node | None:
        """Return what an inode is, with or without a name, or None if it is not known."""
        return self._nodes.get(inode)

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

    def listing(self) -> dict[str, bytes | str | None]:
        """Return all paths with the bytes of a file, None for a folder, the target (a str) of a symbolic link."""
        found: dict[str, bytes | str | None] = {}
        for path, inode in self.names():
            node = self._nodes[inode]
            found[path] = node.data() if isinstance(node, Content) else node if isinstance(node, str) else None
        return found

    def without(self, inodes: Collection[int]) -> Tree:
        """Return the tree without some inodes, all their names, and what has a name only below them."""
        nodes: dict[int, Node] = {}
        for inode, node in self._nodes.items():
            if inode not in inodes:
                nodes[inode] = (
                    {name: to for name, to in node.items() if to not in inodes} if isinstance(node, dict) else node
                )
        return Tree(nodes)

    def digest(self) -> bytes:
        """Return what is the same for two trees exactly if all names, kinds, contents and shared inodes are."""
        if self._digest is None:
            digest = blake2b(digest_size=16)
            numbers: dict[int, int] = {}
            for path, inode in self.names():
                node = self._nodes[inode]
                number = numbers.setdefault(inode, len(numbers))
                if isinstance(node, Content):
                    what = b"f%d:" % number + node.digest()
                else:
                    what = b"d" if isinstance(node, dict) else b"l%d:" % number + os.fsencode(node)
                name = os.fsencode(path)
                digest.update(b"%d:%d:%s%s" % (len(name), len(what), name, what))
            self._digest = digest.digest()
        return self._digest

    def write_to(self, folder: str | os.PathLike[str]) -> None:
        """Write the tree into a real folder, which is made if it is not there and must be empty if it is."""
        root = os.fspath(folder)
        os.makedirs(root, exist_ok=True)
        written: dict[int, str] = {}
        for path, inode in self.names():
            real = f"{root}/{path}"
            node = self._nodes[inode]
            if isinstance(node, dict):
                os.mkdir(real)
            elif inode in written:
                os.link(written[inode], real, follow_symlinks=False)
            else:
                written[inode] = real
                if isinstance(node, str):
                    os.symlink(node, real)
                else:
                    node.write_to(real)


class Draft:
    """A tree in the making: takes operations one after the other. The tree it began with stays as it is."""

    __slots__ = ("_nodes", "_own")

    def __init__(self, tree: Tree) -> None:
        self._nodes = tree._nodes.copy()
        self._own: set[int] = set()

    def tree(self) -> Tree:
        """Return what it is now. The draft may go on."""
        self._own.clear()
        return Tree(self._nodes.copy())

    def node(self, inode: int) -> Node | None:
        """Return what an inode is now, or None if it is not known."""
        return self._nodes.get(inode)

    def find(self, path: str) -> int | None:
        """Return the inode at a path relative to the folder now, or None if there is none."""
        return _find(self._nodes, path)

    def apply(self, operation: Operation) -> None:
        """Do what an operation does to names and contents; a sync or a mark does nothing."""
        if isinstance(operation, Write):
            self._content(operation.inode).write(operation.offset, operation.data)
        elif isinstance(operation, Truncate):
            self._content(operation.inode).resize(operation.size)
        elif isinstance(operation, Rename):
            self._folder(operation.folder).pop(operation.name, None)
            self._name(operation.to_folder, operation.to_name, operation.inode, Content())
        elif isinstance(operation, Unlink):
            self._folder(operation.folder).pop(operation.name, None)
        elif isinstance(operation, Create | Link):
            self._name(operation.folder, operation.name, operation.inode, Content())
        elif isinstance(operation, MakeFolder):
            self._name(operation.folder, operation.name, operation.inode, {})
        elif isinstance(operation, Symlink):
            self._name(operation.folder, operation.name, operation.inode, operation.target)

    def expect(self, operation: Operation) -> None:
        """Make what an operation will create, without its name, so that its kind is known even if that is left out."""
        if isinstance(operation, MakeFolder):
            self._nodes.setdefault(operation.inode, {})
        elif isinstance(operation, Symlink):
            self._nodes.setdefault(operation.inode, operation.target)

    def _name(self, folder: int, name: str, inode: int, new: Node) -> None:
        self._nodes.setdefault(inode, new)
        self._folder(folder)[name] = inode

    def _folder(self, inode: int) -> Folder:
        node = self._nodes.get(inode, {})
        if not isinstance(node, dict):
            raise TypeError(f"inode {inode} is no folder, and an operation uses it as one")
        if inode not in self._own:
            self._own.add(inode)
            node = self._nodes[inode] = node.copy()
        return node

    def _content(self, inode: int) -> Content:
        node = self._nodes.get(inode)
        if node is None:
            node = Content()
        if not isinstance(node, Content):
            raise TypeError(f"inode {inode} is no file, and an operation uses it as one")
        if inode not in self._own:
            self._own.add(inode)
            node = self._nodes[inode] = node.copy()
        return node


def _find(nodes: dict[int, Node], path: str) -> int | None:
    inode = ROOT
    for name in path.split("/") if path else ():
        node = nodes[inode]
        if not isinstance(node, dict) or name not in node:
            return None
        inode = node[name]
    return inode


def _read(folder: str, nodes: dict[int, Node], known: dict[tuple[int, int], int]) -> int:
    """Read a real folder into `nodes`, and return its inode; `known` are the files met so far that have more names."""
    inode = len(nodes) + 1
    names: Folder = {}
    nodes[inode] = names
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        status = entry.stat(follow_symlinks=False)
        identity = (status.st_dev, status.st_ino)
        if stat.S_ISDIR(status.st_mode):
            names[entry.name] = _read(entry.path, nodes, known)
        elif identity in known:
            names[entry.name] = known[identity]
        else:
            number = names[entry.name] = known[identity] = len(nodes) + 1
            nodes[number] = _read_node(entry.path, status.st_mode)
    return inode


def _read_node(path: str, mode: int) -> Node:
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if not stat.S_ISREG(mode):
        raise OSError(f"{path} is neither a file nor a folder nor a link, and cannot be read")
    return Content.read(path)
