"""The operations of a recording, each with what was true when it happened: paths, sizes, whose call it was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from n00dles_testing.powerloss.contents import Content
from n00dles_testing.powerloss.operations import (
    ROOT,
    Create,
    Link,
    MakeFolder,
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

__all__ = ["Change", "NameChange", "Step", "steps"]

NameChange = Create | MakeFolder | Symlink | Link | Unlink | Rename
"""Operations on the names in a folder."""

Change = NameChange | Write | Truncate
"""Operations that change something: all but syncs and marks."""


@dataclass(frozen=True, slots=True)
class Step:
    """An operation in its place.

    `path` is that of the file it is about, below the watched folder, and as the program named it then; `to_path` is the
    new name of a rename. `size` is how long the file was before, in bytes. `during` is the token of the call of the
    store that was going on ("INV token" without "ACK token" yet), None between calls, "a or b" if there were several.
    """

    index: int
    operation: Operation
    path: str
    to_path: str
    size: int
    during: str | None

    @property
    def grows(self) -> bool:
        """Whether it is a write that goes beyond the end of its file."""
        operation = self.operation
        return isinstance(operation, Write) and operation.offset + len(operation.data) > self.size


def steps(base: Tree, operations: Iterable[Operation]) -> list[Step]:
    """Follow the operations from the base on."""
    live = _Live(base)
    return [live.step(index, operation) for index, operation in enumerate(operations)]


class _Live:
    """What the program itself would see: names, sizes, and which calls are going on."""

    def __init__(self, base: Tree) -> None:
        self._names: dict[int, tuple[int, str]] = {}
        self._sizes: dict[int, int] = {}
        self._calls: list[str] = []
        inodes = {"": ROOT}
        for path, inode in base.names():
            folder, _, name = path.rpartition("/")
            inodes[path] = inode
            self._names.setdefault(inode, (inodes[folder], name))
            if isinstance(content := base.node(inode), Content):
                self._sizes[inode] = content.size

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
        return Step(index, operation, path, to_path, size, " or ".join(self._calls) or None)

    def _mark(self, text: str) -> None:
        word, _, token = text.partition(" ")
        if word == "INV":
            self._calls.append(token)
        elif word == "ACK" and token in self._calls:
            self._calls.remove(token)

    def _path(self, operation: NameChange | Write | Truncate | Sync) -> str:
        if isinstance(operation, Write | Truncate | Sync):
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
        if isinstance(operation, Create | MakeFolder | Symlink | Link):
            self._names[operation.inode] = (operation.folder, operation.name)
        elif isinstance(operation, Rename):
            self._names[operation.inode] = (operation.to_folder, operation.to_name)
        elif isinstance(operation, Write) and operation.data:
            end = operation.offset + len(operation.data)
            self._sizes[operation.inode] = max(self._sizes.get(operation.inode, 0), end)
        elif isinstance(operation, Truncate):
            self._sizes[operation.inode] = operation.size
