"""Which operations a sync has forced to the disk, under a model; all others are pending, and may be lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from n00dles_testing.powerloss.models import Model
from n00dles_testing.powerloss.operations import (
    Create,
    MakeFolder,
    Operation,
    Rename,
    Symlink,
    Sync,
    SyncAll,
    Truncate,
    Write,
)
from n00dles_testing.powerloss.steps import Change, NameChange, Step

__all__ = ["SMALL", "Forcing", "before", "flushed_by", "is_metadata"]

SMALL = 1 << 20
"""Up to this size (bytes), a file that replaces another one is written before its rename, under ext4."""


def before(first: Operation, second: Operation) -> bool:
    """Whether an operation surely came before another one; neither did if they overlapped."""
    return first.exited < second.entered


def is_metadata(operation: Operation) -> bool:
    """Whether a journaling file system keeps it in its journal: names and explicit sizes, not data."""
    return isinstance(operation, NameChange | Truncate)


def flushed_by(rename: Step, steps: Sequence[Step]) -> Iterator[Step]:
    """Give the writes of a small file that its rename over another file takes along, where the model says so."""
    operation = rename.operation
    if isinstance(operation, Rename) and operation.replaces is not None and rename.size <= SMALL:
        for step in steps:
            other = step.operation
            if isinstance(other, Write) and other.inode == operation.inode and before(other, operation):
                yield step


class Forcing:
    """Follows the syncs of a recording in the order in which they return, and knows what each of them has forced.

    `forced` and `orphans` are indices of steps. An orphan was pending when a sync of its file failed: no later sync
    writes it, for the page cache takes it for written (Rebello et al., "Can Applications Recover from fsync Failures?",
    ATC 2020). It may be on the disk all the same.
    """

    def __init__(self, steps: Sequence[Step], model: Model) -> None:
        self._steps = steps
        self._model = model
        self._pending = [step for step in steps if isinstance(step.operation, Change)]
        self.forced: set[int] = set()
        self.orphans: set[int] = set()

    def complete(self, sync: Sync | SyncAll) -> None:
        """Take in a sync that has returned."""
        done = [step for step in self._pending if before(step.operation, sync)]
        covered = [step for step in done if isinstance(sync, SyncAll) or _belongs(step.operation, sync.inode)]
        if isinstance(sync, Sync) and sync.failed:
            self.orphans.update(step.index for step in covered)
            return
        self.forced.update(step.index for step in covered if step.index not in self.orphans)
        if self._model.orders_metadata:
            self._commit(done, sync)
        if self._model.flushes_before_replacing:
            self._flush()
        self._pending = [step for step in self._pending if step.index not in self.forced]

    def _commit(self, done: Sequence[Step], sync: Sync | SyncAll) -> None:
        """Force what the journal holds up to the last change of what is synced: it is written in its order."""
        changes = [
            step
            for step in self._steps
            if step.index not in self.orphans and before(step.operation, sync) and _changes(step, sync)
        ]
        last = max((step.operation.entered for step in changes), default=0)
        own = {step.index for step in changes}
        for step in done:
            if is_metadata(step.operation) and (step.operation.exited < last or step.index in own):
                self.forced.add(step.index)

    def _flush(self) -> None:
        for rename in self._pending:
            if rename.index in self.forced:
                flushed = (step.index for step in flushed_by(rename, self._pending))
                self.forced.update(index for index in flushed if index not in self.orphans)


def _belongs(operation: Operation, inode: int) -> bool:
    """Whether an operation is on the bytes of a file, or on the names in a folder, with this inode."""
    if isinstance(operation, Write | Truncate):
        return operation.inode == inode
    if isinstance(operation, Rename):
        return inode in (operation.folder, operation.to_folder)
    return isinstance(operation, NameChange) and operation.folder == inode


def _changes(step: Step, sync: Sync | SyncAll) -> bool:
    """Whether an operation changes metadata of what is synced: for fdatasync what is needed to read it, else any."""
    operation = step.operation
    if not isinstance(operation, Change) or isinstance(sync, SyncAll):
        return isinstance(operation, Change)
    if isinstance(operation, Write):
        return operation.inode == sync.inode and (step.grows or not sync.data_only)
    if _belongs(operation, sync.inode):
        return True
    created = isinstance(operation, Create | MakeFolder | Symlink)
    return operation.inode == sync.inode and (created or not sync.data_only)
