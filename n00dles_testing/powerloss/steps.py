"""The operations of a recording, each with what was true when it happened: paths, sizes, whose call it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from n00dles_testing.powerloss.contents import BLOCK, Content
from n00dles_testing.powerloss.operations import (
    ROOT,
    ChangeMode,
    Create,
    Link,
    MakeFolder,
    MakeSpecial,
    Marked,
    Operation,
    Rename,
    Symlink,
    Sync,
    SyncAll,
    Truncate,
    Unlink,
    Write,
)
from n00dles_testing.powerloss.tree import Tree

__all__ = ["Change", "NameChange", "Step", "pages", "steps"]

NameChange = Create | MakeFolder | MakeSpecial | Symlink | Link | Unlink | Rename
"""Operations on the names in a folder."""

Change = NameChange | Write | Truncate | ChangeMode
"""Operations that change something: all but syncs and marks."""


@dataclass(frozen=True, slots=True)
class Step:
    """An operation in its place.

    `path` is that of the file it is about, below the watched folder, and as the program named it then; `to_path` is the
    new name of a rename. `size` is how long the file was before, in bytes. `during` is the token of the call of the
    store that was going on ("INV token" without "ACK token" yet), None between calls, "a or b" if there were several.

    `blocks` tells of each page of a write, by its number, which step was the first to write it: before that it was a
    hole, or beyond the end. -1 is before the recording. `reserved` are those pages for which fallocate had set blocks
    aside.
    """

    index: int
    operation: Operation
    path: str
    to_path: str
    size: int
    during: str | None
    blocks: Mapping[int, int] = field(default_factory=dict)
    reserved: frozenset[int] = frozenset()

    @property
    def grows(self) -> bool:
        """Whether it is a write that goes beyond the end of its file."""
        operation = self.operation
        return isinstance(operation, Write) and operation.offset + len(operation.data) > self.size


def pages(operation: Operation) -> range:
    """Return the numbers of the pages of its file that a write is on; one page stands for any other operation."""
    if not isinstance(operation, Write):
        return range(1)
    first, end = operation.offset, operation.offset + len(operation.data)
    return range(first // BLOCK, max(end - 1, first) // BLOCK + 1)


def steps(base: Tree, operations: Iterable[Operation]) -> list[Step]:
    """Follow the operations from the base on."""
    live = _Live(base)
    return [live.step(index, operation) for index, operation in enumerate(operations)]


class _Live:
    """What the program itself would see: names, sizes, which calls are going on; and where files are no holes."""

    def __init__(self, base: Tree) -> None:
        self._names: dict[int, tuple[int, str]] = {}
        self._sizes: dict[int, int] = {}
        self._blocks: dict[int, dict[int, int]] = {}
        self._reserved: dict[int, set[int]] = {}
        self._calls: list[str] = []
        inodes = {"": ROOT}
        for path, inode in base.names():
            folder, _, name = path.rpartition("/")
            inodes[path] = inode
            self._names.setdefault(inode, (inodes[folder], name))
            if isinstance(content := base.node(inode), Content):
                self._sizes[inode] = content.size
                self._blocks[inode] = dict.fromkeys(content.pages(), -1)

    def step(self, index: int, operation: Operation) -> Step:
        if isinstance(operation, Marked):
            self._mark(operation.text)
            return Step(index, operation, "", "", 0, None)
        path = to_path = ""
        if not isinstance(operation, SyncAll):
            path = self._path(operation)
        if isinstance(operation, Rename):
            to_path = self._below(operation.to_folder, operation.to_name)
        size = 0 if isinstance(operation, SyncAll) else self._sizes.get(operation.inode, 0)
        self._follow(operation)
        blocks, reserved = self._allocate(index, operation)
        return Step(index, operation, path, to_path, size, " or ".join(self._calls) or None, blocks, reserved)

    def _mark(self, text: str) -> None:
        word, _, token = text.partition(" ")
        if word == "INV":
            self._calls.append(token)
        elif word == "ACK" and token in self._calls:
            self._calls.remove(token)

    def _path(self, operation: Change | Sync) -> str:
        if isinstance(operation, Write | Truncate | ChangeMode | Sync):
            return self._path_of(operation.inode)
        return self._below(operation.folder, operation.name)

    def _path_of(self, inode: int) -> str:
        return self._below(*self._names[inode]) if inode in self._names else ""

    def _below(self, folder: int, name: str) -> str:
        parts = [name]
        seen = {ROOT}
        while folder not in seen and folder in self._names:
            seen.add(folder)
            folder, name = self._names[folder]
            parts.append(name)
        return "/".join(reversed(parts))

    def _follow(self, operation: Operation) -> None:
        if isinstance(operation, Create | MakeFolder | MakeSpecial | Symlink | Link):
            self._names[operation.inode] = (operation.folder, operation.name)
        elif isinstance(operation, Rename):
            self._names[operation.inode] = (operation.to_folder, operation.to_name)
        elif isinstance(operation, Write) and operation.data:
            end = operation.offset + len(operation.data)
            self._sizes[operation.inode] = max(self._sizes.get(operation.inode, 0), end)
        elif isinstance(operation, Truncate):
            self._sizes[operation.inode] = operation.size

    def _allocate(self, index: int, operation: Operation) -> tuple[dict[int, int], frozenset[int]]:
        if not isinstance(operation, Write | Truncate):
            return {}, frozenset()
        blocks = self._blocks.setdefault(operation.inode, {})
        reserved = self._reserved.setdefault(operation.inode, set())
        if isinstance(operation, Write):
            found = {page: blocks.setdefault(page, index) for page in pages(operation)}
            return found, frozenset(reserved.intersection(found))
        end = -(-operation.size // BLOCK)
        for page in [page for page in blocks if page >= end]:
            del blocks[page]
        reserved.difference_update([page for page in reserved if page >= end])
        if operation.allocated:
            reserved.update(page for page in range(operation.old // BLOCK, end) if page not in blocks)
        return {}, frozenset()
