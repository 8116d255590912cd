"""Recordings made by hand: what a program does to its files, one operation after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.powerloss.operations import (
    ROOT,
    ChangeMode,
    Create,
    Link,
    MakeFolder,
    Marked,
    Operation,
    Rename,
    Special,
    Sync,
    SyncAll,
    Truncate,
    Unlink,
    Write,
)
from n00dles_testing.powerloss.recording import Recording
from n00dles_testing.powerloss.state import State
from n00dles_testing.powerloss.states import states
from n00dles_testing.powerloss.tree import Tree

PAGE = 4096


class Log:
    """Files are named by paths. `base` is what was on the disk before."""

    def __init__(self, base: Mapping[str, bytes] | None = None) -> None:
        self.operations: list[Operation] = []
        self.inodes = {"": ROOT}
        self.sizes: dict[int, int] = {}
        self._last = ROOT
        self._base = Tree()
        for path, data in (base or {}).items():
            self.create(path)
            self.append(path, data)
        self._base = Tree().after(self.operations)
        self.operations = []

    def recording(self) -> Recording:
        return Recording(self._base, tuple(self.operations), 0)

    def create(self, path: str) -> None:
        folder, name = self._place(path)
        self._add(Create(*self._time(), folder, name, self._new(path)))

    def mkdir(self, path: str) -> None:
        folder, name = self._place(path)
        self._add(MakeFolder(*self._time(), folder, name, self._new(path)))

    def link(self, path: str, to: str) -> None:
        folder, name = self._place(to)
        self.inodes[to] = self.inodes[path]
        self._add(Link(*self._time(), folder, name, self.inodes[path]))

    def write(self, path: str, data: bytes, offset: int = 0) -> None:
        inode = self.inodes[path]
        self._add(Write(*self._time(), inode, offset, data))
        self.sizes[inode] = max(self.sizes.get(inode, 0), offset + len(data))

    def write_synced(self, path: str, data: bytes, offset: int = 0) -> None:
        """Write as one does who has opened the file with O_DSYNC."""
        self.write(path, data, offset)
        self.sync_part(path, offset, offset + len(data))

    def append(self, path: str, data: bytes) -> None:
        self.write(path, data, self.sizes.get(self.inodes[path], 0))

    def truncate(self, path: str, size: int, *, allocated: bool = False) -> None:
        inode = self.inodes[path]
        self._add(Truncate(*self._time(), inode, self.sizes.get(inode, 0), size, allocated))
        self.sizes[inode] = size

    def chmod(self, path: str, mode: int) -> None:
        self._add(ChangeMode(*self._time(), self.inodes[path], mode))

    def rename(self, path: str, to: str) -> None:
        places = (*self._place(path), *self._place(to))
        inode = self.inodes.pop(path)
        self._add(Rename(*self._time(), *places, inode, self.inodes.get(to)))
        self.inodes[to] = inode

    def unlink(self, path: str) -> None:
        folder, name = self._place(path)
        self._add(Unlink(*self._time(), folder, name, self.inodes.pop(path)))

    def fsync(self, path: str = "", *, failed: bool = False) -> None:
        self._add(Sync(*self._time(), self.inodes[path], data_only=False, failed=failed))

    def fdatasync(self, path: str) -> None:
        self._add(Sync(*self._time(), self.inodes[path], data_only=True))

    def sync_part(self, path: str, start: int, end: int, *, failed: bool = False) -> None:
        self._add(Sync(*self._time(), self.inodes[path], data_only=True, failed=failed, part=(start, end)))

    def sync(self, *, failed: bool = False) -> None:
        self._add(SyncAll(*self._time(), failed))

    def invoke(self, token: str) -> None:
        self._add(Marked(self._time()[0], self._time()[0], f"INV {token}"))

    def acknowledge(self, token: str) -> None:
        self._add(Marked(self._time()[0], self._time()[0], f"ACK {token}"))

    def overlap(self) -> None:
        """Let the last operation enter before the one before it has returned."""
        first, last = self.operations[-2:]
        self.operations[-2] = replace(first, exited=last.entered + 1)

    def _add(self, operation: Operation) -> None:
        self.operations.append(operation)

    def _time(self) -> tuple[int, int]:
        return 10 * len(self.operations), 10 * len(self.operations) + 5

    def _new(self, path: str) -> int:
        self._last += 1
        self.inodes[path] = self._last
        return self._last

    def _place(self, path: str) -> tuple[int, str]:
        folder, _, name = path.rpartition("/")
        return self.inodes[folder], name


def left(log: Log, model: str, budget: int = 5000) -> Iterator[tuple[dict[str, bytes | str | Special | None], State]]:
    """Give what files may be there, with all else of each state."""
    for state in states(log.recording(), MODELS[model], budget):
        yield state.tree.listing(), state


def files(log: Log, model: str) -> list[dict[str, bytes | str | Special | None]]:
    """Return all that may be there at the end of a log, as listings."""
    return [listing for listing, _ in left(log, model)]


def models_with(log: Log, listing: Mapping[str, bytes | None], budget: int = 5000) -> set[str]:
    """Return the models under which these files, and no others, may be there."""
    return {name for name in MODELS if any(found == listing for found, _ in left(log, name, budget))}


def models_with_acknowledged(log: Log, listing: Mapping[str, bytes | None]) -> set[str]:
    """Return the models under which these files may be there after something was acknowledged."""
    return {name for name in MODELS if any(found == listing and s.acknowledged for found, s in left(log, name))}
