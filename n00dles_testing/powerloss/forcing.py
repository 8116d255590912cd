"""Which operations a sync has forced to the disk, under a model; all others are pending, and may be lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from n00dles_testing.powerloss.contents import BLOCK
from n00dles_testing.powerloss.models import Model
from n00dles_testing.powerloss.operations import (
    ChangeMode,
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
from n00dles_testing.powerloss.steps import Change, NameChange, Step, pages

__all__ = ["SMALL", "Forcing", "Unit", "before", "flushed_by", "is_metadata"]

SMALL = 1 << 20
"""Up to this size (bytes), a file that replaces another one is written before its rename, under ext4."""

Unit = tuple[int, int]
"""What the disk takes at once: the index of a step, and which page of its file (see `pages`)."""


def before(first: Operation, second: Operation) -> bool:
    """Whether an operation surely came before another one; neither did if they overlapped."""
    return first.exited < second.entered


def is_metadata(operation: Operation) -> bool:
    """Whether a journaling file system keeps it in its journal: names, permissions and explicit sizes, not data."""
    return isinstance(operation, NameChange | Truncate | ChangeMode)


def flushed_by(rename: Step, steps: Iterable[Step], tried: Collection[Unit]) -> set[Unit]:
    """Return which data of a small file its rename over another file takes along, where the model says so.

    Only what has no block on the disk yet: not what goes where an earlier sync, one of the units `tried`, has written,
    or has tried to. Source: ext4_alloc_da_blocks.
    """
    operation = rename.operation
    found: set[Unit] = set()
    if not isinstance(operation, Rename) or operation.replaces is None or rename.size > SMALL:
        return found
    for step in steps:
        write = step.operation
        if isinstance(write, Write) and write.inode == operation.inode and before(write, operation):
            for page, first in step.blocks.items():
                is_new = first == step.index and page not in step.reserved
                if (step.index, page) not in tried and (is_new or (first, page) in found):
                    found.add((step.index, page))
    return found


class Forcing:
    """Follows the syncs of a recording in the order in which they return, and knows what each of them has forced.

    An orphan was pending when a sync of its file failed: no later sync writes it, for the page cache takes it for
    written (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020). It may be on the disk all the
    same, and where file systems keep it in the page cache, it gets there with the next write into its page. Names and
    sizes stay in a journal whatever happens to data; only a folder that cannot be written loses names. `orphans` says
    when the sync failed.
    """

    def __init__(self, steps: Sequence[Step], model: Model) -> None:
        self._steps = steps
        self._model = model
        self._pending = [step for step in steps if isinstance(step.operation, Change)]
        self.forced: set[Unit] = set()
        self.orphans: dict[Unit, int] = {}

    def has_forced(self, step: Step) -> bool:
        """Whether all of an operation is surely on the disk."""
        return all((step.index, page) in self.forced for page in pages(step.operation))

    def complete(self, sync: Sync | SyncAll) -> None:
        """Take in a sync that has returned."""
        done = [step for step in self._pending if before(step.operation, sync)]
        if sync.failed:
            self._give_up(done, sync)
            return
        if isinstance(sync, SyncAll) and not self._model.orders_metadata:
            return  # POSIX lets sync() return before it is done; Linux waits, and so do ext4 and XFS here
        self._write(done, sync)
        if self._model.orders_metadata:
            self._commit(done, sync)
        if self._model.flushes_before_replacing:
            self._flush()
        self._pending = [step for step in self._pending if not self.has_forced(step)]

    def _give_up(self, done: Iterable[Step], sync: Sync | SyncAll) -> None:
        for step in done:
            is_in_journal = self._model.orders_metadata and (
                isinstance(step.operation, Truncate | ChangeMode)
                or (isinstance(sync, SyncAll) and is_metadata(step.operation))
            )
            if not is_in_journal:
                for unit in _covered(sync, step):
                    if unit not in self.forced:
                        self.orphans.setdefault(unit, sync.exited)

    def _write(self, done: Iterable[Step], sync: Sync | SyncAll) -> None:
        """Force what is synced, and with it the orphans of pages that have been written to once more."""
        covered = [(step.operation, unit) for step in done for unit in _covered(sync, step) if unit not in self.forced]
        self.forced.update(unit for _, unit in covered if unit not in self.orphans)
        if self._model.orders_metadata:
            data = [(operation, unit) for operation, unit in covered if isinstance(operation, Write)]
            last: dict[tuple[int, int], int] = {}
            for write, unit in data:
                if unit not in self.orphans:
                    place = write.inode, unit[1]
                    last[place] = max(last.get(place, 0), write.entered)
            orphans = [(write.inode, unit) for write, unit in data if unit in self.orphans]
            self.forced.update(unit for inode, unit in orphans if last.get((inode, unit[1]), 0) > self.orphans[unit])

    def _commit(self, done: Iterable[Step], sync: Sync | SyncAll) -> None:
        """Force what the journal holds up to the last change of what is synced: it is written in its order."""
        changes = [step for step in self._steps if before(step.operation, sync) and self._changes(step, sync)]
        last = max((step.operation.entered for step in changes), default=0)
        own = {step.index for step in changes}
        for step in done:
            if is_metadata(step.operation) and (step.operation.exited < last or step.index in own):
                self.forced.add((step.index, 0))

    def _changes(self, step: Step, sync: Sync | SyncAll) -> bool:
        """Whether an operation changes metadata of what is synced: for fdatasync what is needed to read it, else any.

        Needed are sizes and new blocks, also those of a hole or of what fallocate has set aside.
        """
        operation = step.operation
        if not isinstance(operation, Change) or all((step.index, page) in self.orphans for page in pages(operation)):
            return False
        if isinstance(sync, SyncAll):
            return True
        if isinstance(operation, Write) and operation.inode == sync.inode:
            return not sync.data_only or any(
                unit not in self.orphans and _is_needed(step, unit[1]) for unit in _covered(sync, step)
            )
        if _belongs(operation, sync.inode):
            return True
        created = isinstance(operation, Create | MakeFolder | Symlink)
        return operation.inode == sync.inode and (created or not sync.data_only)

    def _flush(self) -> None:
        tried = self.forced | self.orphans.keys()
        for rename in self._pending:
            if (rename.index, 0) in self.forced:
                self.forced |= flushed_by(rename, self._pending, tried)


def _covered(sync: Sync | SyncAll, step: Step) -> list[Unit]:
    """Return the units of an operation that a sync is about."""
    operation = step.operation
    if isinstance(sync, Sync) and isinstance(operation, ChangeMode):
        return [(step.index, 0)] if operation.inode == sync.inode and not sync.data_only else []
    if isinstance(sync, Sync) and not _belongs(operation, sync.inode):
        return []
    found = pages(operation)
    if isinstance(sync, Sync) and sync.part and isinstance(operation, Write):
        start, end = sync.part
        found = range(max(found.start, start // BLOCK), min(found.stop, -(-end // BLOCK)))
    return [(step.index, page) for page in found]


def _is_needed(step: Step, page: int) -> bool:
    """Whether a write to this page needs something new in the file's metadata: a block, or its size."""
    return step.blocks[page] == step.index or (step.grows and page == pages(step.operation)[-1])


def _belongs(operation: Operation, inode: int) -> bool:
    """Whether an operation is on the bytes of a file, or on the names in a folder, with this inode."""
    if isinstance(operation, Write | Truncate):
        return operation.inode == inode
    if isinstance(operation, Rename):
        return inode in (operation.folder, operation.to_folder)
    return isinstance(operation, NameChange) and operation.folder == inode
