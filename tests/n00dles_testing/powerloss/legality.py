"""All states that a disk may hold, by trying every subset at every moment: slow, naive, and sharing no code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

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
from n00dles_testing.powerloss.recording import Recording

Piece = tuple[int, str, int, int]
"""Operation, what of it ("all", "data", "size"), from byte, to byte."""

Files = frozenset[tuple[str, bytes | None]]

NAMES = (Create, MakeFolder, Link, Unlink, Rename)


def legal(recording: Recording, model: str, grain: int = 4096) -> set[tuple[Files, int]]:
    """Return all file trees that may be there, each with the number of acknowledgements given before."""
    operations = recording.operations
    moments = {operation.entered for operation in operations} | {operation.exited for operation in operations}
    found = set()
    for moment in [*sorted(moments), NEVER]:
        acknowledged = sum(isinstance(o, Marked) and o.text[:3] == "ACK" and o.entered < moment for o in operations)
        for kept in _subsets(operations, recording, model, moment, grain):
            found.add((kept, acknowledged))
    trees = {kept: _apply(recording, operations, kept) for kept in {kept for kept, _ in found}}
    return {(trees[kept], acknowledged) for kept, acknowledged in found}


def _subsets(
    operations: Sequence[Operation], recording: Recording, model: str, moment: int, grain: int
) -> Iterator[frozenset[Piece]]:
    sizes = _sizes(operations, recording)
    forced = _forced(operations, model, moment, sizes)
    always: set[Piece] = set()
    maybe: list[Piece] = []
    for number, operation in enumerate(operations):
        if operation.entered < moment:
            pieces = list(_pieces(number, operation, model, sizes[number], grain))
            always.update(pieces) if number in forced else maybe.extend(pieces)
    for chosen in product((False, True), repeat=len(maybe)):
        kept = always | {piece for piece, taken in zip(maybe, chosen, strict=True) if taken}
        if _is_legal(operations, kept, model=model, moment=moment, sizes=sizes, grain=grain):
            yield frozenset(kept)


def _pieces(number: int, operation: Operation, model: str, size: int, grain: int) -> Iterator[Piece]:
    if isinstance(operation, Write):
        start, end = operation.offset, operation.offset + len(operation.data)
        while start < end:
            until = min(end, start - start % grain + grain)
            yield number, "data", start, until
            start = until
        if operation.offset + len(operation.data) > size and model != "ext4":
            yield number, "size", 0, end
    elif isinstance(operation, (Truncate, *NAMES)):
        yield number, "all", 0, 0


def _sizes(operations: Sequence[Operation], recording: Recording) -> list[int]:
    """The size of the file that each operation is about, before it."""
    now: dict[int, int] = {}
    sizes = []
    for operation in operations:
        inode = getattr(operation, "inode", 0)
        if inode not in now:
            now[inode] = getattr(recording.base.node(inode), "size", 0)
        sizes.append(now[inode])
        if isinstance(operation, Write) and operation.data:
            now[inode] = max(now[inode], operation.offset + len(operation.data))
        elif isinstance(operation, Truncate):
            now[inode] = operation.size
    return sizes


def _orphaned(operations: Sequence[Operation], number: int, sync: Any, model: str) -> bool:
    """Whether an operation was an orphan before a sync: an earlier one on it had failed, none before that worked."""
    tries = sorted((s for s in operations if isinstance(s, Sync | SyncAll)), key=lambda s: s.exited)
    for earlier in tries:
        if earlier is sync:
            return False
        if operations[number].exited < earlier.entered and _is_on(operations[number], earlier):
            return isinstance(earlier, Sync) and earlier.failed
    return False


def _is_on(operation: Operation, sync: Any) -> bool:
    if isinstance(sync, SyncAll):
        return True
    if isinstance(operation, Write | Truncate):
        return bool(operation.inode == sync.inode)
    if isinstance(operation, Rename):
        return sync.inode in (operation.folder, operation.to_folder)
    return isinstance(operation, NAMES) and bool(operation.folder == sync.inode)


def _forced(operations: Sequence[Operation], model: str, moment: int, sizes: Sequence[int]) -> set[int]:
    forced: set[int] = set()
    syncs = [s for s in operations if isinstance(s, Sync | SyncAll) and s.exited < moment]
    for sync in sorted(syncs, key=lambda s: s.exited):
        if isinstance(sync, Sync) and sync.failed:
            continue
        for number, operation in enumerate(operations):
            if isinstance(operation, (Write, Truncate, *NAMES)) and operation.exited < sync.entered:
                own = _is_on(operation, sync) and not _orphaned(operations, number, sync, model)
                if own or (model != "strict" and _committed(operations, number, sync, model, sizes)):
                    forced.add(number)
        for number, operation in enumerate(operations):
            if model == "ext4" and number in forced and _replaces_small(operation, sizes[number]):
                forced |= _source_writes(operations, operation, sync.exited + 1)
    return forced


def _committed(operations: Sequence[Operation], number: int, sync: Any, model: str, sizes: Sequence[int]) -> bool:
    operation = operations[number]
    if not isinstance(operation, (Truncate, *NAMES)):
        return False
    for at, change in enumerate(operations):
        if change.exited < sync.entered and (at == number or operation.exited < change.entered):
            if _orphaned(operations, at, sync, model):
                continue
            if isinstance(sync, SyncAll):
                if isinstance(change, (Write, Truncate, *NAMES)):
                    return True
                continue
            touched = _is_on(change, sync)
            own = isinstance(change, NAMES) and change.inode == sync.inode
            if sync.data_only:
                touched = touched and not (isinstance(change, Write) and change.offset + len(change.data) <= sizes[at])
                own = own and isinstance(change, Create | MakeFolder)
            if touched or own:
                return True
    return False


def _replaces_small(operation: Operation, size: int) -> bool:
    return isinstance(operation, Rename) and operation.replaces is not None and size <= 1 << 20


def _source_writes(operations: Sequence[Operation], rename: Any, moment: int) -> set[int]:
    found = set()
    for number, operation in enumerate(operations):
        if isinstance(operation, Write) and operation.inode == rename.inode and operation.exited < rename.entered:
            failed = any(
                isinstance(s, Sync)
                and s.failed
                and s.inode == rename.inode
                and operation.exited < s.entered
                and s.exited < moment
                for s in operations
            )
            if not failed:
                found.add(number)
    return found


def _is_legal(
    operations: Sequence[Operation],
    kept: set[Piece],
    *,
    model: str,
    moment: int,
    sizes: Sequence[int],
    grain: int,
) -> bool:
    if model == "strict":
        return True
    there = {number for number, what, _, _ in kept if what == "all"}
    for number in there:
        for earlier, operation in enumerate(operations):
            metadata = isinstance(operation, (Truncate, *NAMES))
            if metadata and operation.exited < operations[number].entered and earlier not in there:
                return False
        if model == "ext4" and _replaces_small(operations[number], sizes[number]):
            for source in _source_writes(operations, operations[number], moment):
                if not set(_pieces(source, operations[source], model, sizes[source], grain)) <= kept:
                    return False
    return True


def _apply(recording: Recording, operations: Sequence[Operation], kept: frozenset[Piece]) -> Files:
    contents: dict[int, bytearray] = {}
    names: dict[int, dict[str, int]] = {ROOT: {}}
    for path, inode in recording.base.names():
        names[ROOT][path] = inode
        contents[inode] = bytearray(recording.base.listing()[path])  # type: ignore[arg-type]
    for operation in operations:
        if isinstance(operation, MakeFolder):
            names.setdefault(operation.inode, {})
    for number, operation in enumerate(operations):
        for piece in sorted(piece for piece in kept if piece[0] == number):
            _do(operation, piece, contents, names)
    return frozenset(_walk(ROOT, "", contents, names))


def _do(operation: Any, piece: Piece, contents: dict[int, bytearray], names: dict[int, dict[str, int]]) -> None:
    _, what, start, end = piece
    if isinstance(operation, Write | Truncate):
        content = contents.setdefault(operation.inode, bytearray())
        if isinstance(operation, Truncate):
            del content[operation.size :]
            content.extend(bytes(operation.size - len(content)))
            return
        content.extend(bytes(max(0, end - len(content))))
        if what == "data":
            content[start:end] = operation.data[start - operation.offset : end - operation.offset]
    elif isinstance(operation, Rename):
        names[operation.folder].pop(operation.name, None)
        names[operation.to_folder][operation.to_name] = operation.inode
    elif isinstance(operation, Unlink):
        names[operation.folder].pop(operation.name, None)
    else:
        names[operation.folder][operation.name] = operation.inode


def _walk(
    folder: int, prefix: str, contents: dict[int, bytearray], names: dict[int, dict[str, int]]
) -> Iterator[tuple[str, bytes | None]]:
    for name, inode in names[folder].items():
        if inode in names:
            yield prefix + name, None
            yield from _walk(inode, f"{prefix}{name}/", contents, names)
        else:
            yield prefix + name, bytes(contents.get(inode, b""))
