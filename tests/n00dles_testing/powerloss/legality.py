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

Unit = tuple[int, int]
"""Operation, page of its file."""

Blocks = dict[Unit, int | None]
"""Which write was the first to the page of each."""

Files = frozenset[tuple[str, bytes | None]]

PAGE = 4096

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
    blocks = {unit: _first(operations, recording, *unit) for unit in _units(operations)}
    forced, orphans = _forced(operations, model, moment, sizes, blocks)
    always: set[Piece] = set()
    maybe: list[Piece] = []
    for number, operation in enumerate(operations):
        if operation.entered < moment:
            last = max((page for at, page in blocks if at == number), default=0)
            for piece in _pieces(number, operation, model, sizes[number], grain):
                page = last if piece[1] == "size" else piece[2] // PAGE
                always.add(piece) if (number, page) in forced else maybe.append(piece)
    for chosen in product((False, True), repeat=len(maybe)):
        kept = always | {piece for piece, taken in zip(maybe, chosen, strict=True) if taken}
        gone = set(maybe) - kept
        if _is_half_a_page(gone, kept, sizes):
            continue
        if model == "strict" or (
            _is_in_order(operations, kept, blocks)
            and _is_written_again(operations, kept, gone, orphans)
            and (
                model != "ext4"
                or _is_flushed(operations, kept, gone, sizes=sizes, blocks=blocks, tried=forced | set(orphans))
            )
        ):
            yield frozenset(kept)


def _units(operations: Sequence[Operation]) -> Iterator[Unit]:
    for number, operation in enumerate(operations):
        if isinstance(operation, Write):
            yield from sorted({(number, byte // PAGE) for byte in range(operation.offset, _end(operation))})
        elif isinstance(operation, (Truncate, *NAMES)):
            yield number, 0


def _end(write: Write) -> int:
    return write.offset + len(write.data)


def _first(operations: Sequence[Operation], recording: Recording, number: int, page: int) -> int | None:
    """Which write was the first to a page since it was a hole; -1 if it was none in the beginning."""
    inode = getattr(operations[number], "inode", 0)
    first = -1 if page * PAGE < getattr(recording.base.node(inode), "size", 0) else None
    for at, operation in enumerate(operations[: number + 1]):
        if isinstance(operation, Truncate) and operation.inode == inode and operation.size <= page * PAGE:
            first = None
        if isinstance(operation, Write) and operation.inode == inode and first is None:
            first = at if operation.offset < (page + 1) * PAGE and _end(operation) > page * PAGE else None
    return first


def _pieces(number: int, operation: Operation, model: str, size: int, grain: int) -> Iterator[Piece]:
    if isinstance(operation, Write):
        start, end = operation.offset, _end(operation)
        while start < end:
            until = min(end, start - start % grain + grain)
            if grain < PAGE and start < size < until:
                until = size
            yield number, "data", start, until
            start = until
        if end > size and model != "ext4":
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
            now[inode] = max(now[inode], _end(operation))
        elif isinstance(operation, Truncate):
            now[inode] = operation.size
    return sizes


def _is_on(operation: Operation, page: int, sync: Any) -> bool:
    if isinstance(sync, SyncAll):
        return True
    if (
        isinstance(operation, Write)
        and sync.part
        and (sync.part[0] >= (page + 1) * PAGE or sync.part[1] <= page * PAGE)
    ):
        return False
    if isinstance(operation, Write | Truncate):
        return bool(operation.inode == sync.inode)
    if isinstance(operation, Rename):
        return sync.inode in (operation.folder, operation.to_folder)
    return isinstance(operation, NAMES) and bool(operation.folder == sync.inode)


def _forced(
    operations: Sequence[Operation], model: str, moment: int, sizes: Sequence[int], blocks: Blocks
) -> tuple[set[Unit], dict[Unit, int]]:
    """Return what syncs have forced, and what they have failed to force, with the moments when."""
    forced: set[Unit] = set()
    orphans: dict[Unit, int] = {}
    syncs = [s for s in operations if isinstance(s, Sync | SyncAll) and s.exited < moment]
    for sync in sorted(syncs, key=lambda s: s.exited):
        found = [
            (at, page)
            for at, page in blocks
            if operations[at].exited < sync.entered and (at, page) not in forced and _is_on(operations[at], page, sync)
        ]
        if sync.failed:
            for unit in found:
                if unit not in orphans and (model == "strict" or _goes_with(operations[unit[0]], sync)):
                    orphans[unit] = sync.exited
            continue
        if model == "strict" and isinstance(sync, SyncAll):
            continue  # by POSIX it may return before anything is written
        new = {unit for unit in found if unit not in orphans}
        again = {orphan for orphan in found for unit in new if _rewrites(operations, unit, orphan, orphans)}
        forced |= new
        if model != "strict":
            forced |= again
            forced |= {
                unit
                for unit in blocks
                if _committed(operations, unit[0], sync, sizes=sizes, blocks=blocks, orphans=orphans)
            }
        if model == "ext4":
            tried = forced | set(orphans)
            for at, operation in enumerate(operations):
                if (at, 0) in forced and _replaces_small(operation, sizes[at]):
                    forced |= _source(operations, operation, blocks, tried)
    return forced, orphans


def _file(operation: Operation) -> int:
    return operation.inode if isinstance(operation, Write) else 0


def _goes_with(operation: Operation, sync: Any) -> bool:
    """Whether a failed sync takes it away for good where there is a journal: data, and the names in a folder."""
    return isinstance(operation, Write) or (isinstance(sync, Sync) and not isinstance(operation, Truncate))


def _committed(
    operations: Sequence[Operation],
    number: int,
    sync: Any,
    *,
    sizes: Sequence[int],
    blocks: Blocks,
    orphans: dict[Unit, int],
) -> bool:
    operation = operations[number]
    if not isinstance(operation, (Truncate, *NAMES)) or operation.exited >= sync.entered:
        return False
    for (at, page), first in blocks.items():
        change = operations[at]
        if change.exited >= sync.entered or (at, page) in orphans:
            continue
        if at != number and operation.exited >= change.entered:
            continue
        if isinstance(sync, SyncAll):
            return True
        if isinstance(change, Write):
            grows = _end(change) > sizes[at] and (at, page + 1) not in blocks
            needed = _is_on(change, page, sync) and (first == at or grows)
            touched = change.inode == sync.inode and (not sync.data_only or needed)
        else:
            touched = _is_on(change, page, sync)
        own = isinstance(change, NAMES) and change.inode == sync.inode
        if touched or (own and (not sync.data_only or isinstance(change, Create | MakeFolder))):
            return True
    return False


def _replaces_small(operation: Operation, size: int) -> bool:
    return isinstance(operation, Rename) and operation.replaces is not None and size <= 1 << 20


def _source(operations: Sequence[Operation], rename: Any, blocks: Blocks, tried: set[Unit]) -> set[Unit]:
    """Return the data that a rename takes along: it is in pages that have no block on the disk yet."""
    return {
        (at, page)
        for (at, page), first in blocks.items()
        if isinstance(operations[at], Write)
        and operations[at].inode == rename.inode  # type: ignore[union-attr]
        and operations[at].exited < rename.entered
        and first is not None
        and first >= 0
        and not {(at, page), (first, page)} & tried
        and operations[first].exited < rename.entered
    }


def _is_in_order(operations: Sequence[Operation], kept: set[Piece], blocks: Blocks) -> bool:
    """Whether what is in the journal is there in order, and data in new blocks with what the journal has before."""
    there = {number for number, what, _, _ in kept if what == "all"}
    for earlier, operation in enumerate(operations):
        if not isinstance(operation, (Truncate, *NAMES)) or earlier in there:
            continue
        for number, what, start, _ in kept:
            if operation.exited < operations[number].entered:
                if what == "all":
                    return False
                is_new = what == "size" or (blocks[number, start // PAGE] or 0) > earlier
                if isinstance(operation, Truncate) and operation.inode == _file(operations[number]) and is_new:
                    return False
    return True


def _is_written_again(
    operations: Sequence[Operation], kept: set[Piece], gone: set[Piece], orphans: dict[Unit, int]
) -> bool:
    """Whether no page that was written again is there without what an earlier failed sync has left in it."""
    missing = {(number, start // PAGE) for number, what, start, _ in gone if what == "data"}
    whole = {(number, start // PAGE) for number, what, start, _ in kept if what == "data"} - missing
    return not any(_rewrites(operations, unit, orphan, orphans) for unit in whole for orphan in missing)


def _rewrites(operations: Sequence[Operation], unit: Unit, orphan: Unit, orphans: dict[Unit, int]) -> bool:
    """Whether a write goes to the page of an orphan after that has become one."""
    (number, page), (other, place) = unit, orphan
    return (
        orphan in orphans
        and unit not in orphans
        and page == place
        and isinstance(operations[other], Write)
        and _file(operations[number]) == _file(operations[other])
        and operations[number].entered > orphans[orphan]
    )


def _is_flushed(
    operations: Sequence[Operation],
    kept: set[Piece],
    gone: set[Piece],
    *,
    sizes: Sequence[int],
    blocks: Blocks,
    tried: set[Unit],
) -> bool:
    """Whether no rename is there without the data that it takes along."""
    there = {number for number, what, _, _ in kept if what == "all"}
    data = {(number, start // PAGE) for number, what, start, _ in gone if what == "data"}
    return not any(
        _source(operations, operation, blocks, tried) & data
        for number, operation in enumerate(operations)
        if number in there and _replaces_small(operation, sizes[number])
    )


def _is_half_a_page(gone: set[Piece], kept: set[Piece], sizes: Sequence[int]) -> bool:
    """Whether a file has grown by less than a page of a write, which happens only if its size was there before."""
    half = {(number, start // PAGE) for number, what, start, _ in gone if what == "data"}
    sized = {number for number, what, _, _ in kept if what == "size"}
    return any(
        what == "data" and end > sizes[number] and (number, start // PAGE) in half and number not in sized
        for number, what, start, end in kept
    )


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
