"""The bytes of a file in blocks, so that many versions of a large file share what they have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b

__all__ = ["BLOCK", "Content"]

BLOCK = 4096
"""Bytes in a block: a page of the page cache, which is also what a disk is taken to write at once."""

_AT_ONCE = 256 * BLOCK


class _Block:
    """Up to `BLOCK` bytes; what is missing is zeros. Never changed, so its digest is computed once."""

    __slots__ = ("_digest", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._digest: bytes | None = None

    def digest(self) -> bytes:
        """Return the digest, the same with and without zeros at the end; empty if there is nothing but zeros."""
        if self._digest is None:
            stripped = self.data.rstrip(b"\0")
            self._digest = blake2b(stripped, digest_size=16).digest() if stripped else b""
        return self._digest


class Content:
    """The bytes of one file. `write` and `resize` change it; a `copy` shares all blocks until it is changed itself.

    `size` is in bytes. A hole costs nothing, and counts as zeros. `changed` tells which of two files was changed later:
    the position of the last operation on it, below zero for what was there before.
    """

    __slots__ = ("_blocks", "_digest", "changed", "size")

    def __init__(self) -> None:
        self.size = 0
        self.changed = 0
        self._blocks: dict[int, _Block] = {}
        self._digest: bytes | None = None

    @classmethod
    def of(cls, data: bytes) -> Content:
        """Return the content that is these bytes."""
        content = cls()
        content.write(0, data)
        return content

    @classmethod
    def read(cls, path: str) -> Content:
        """Return the content of a real file. OSError if it cannot be read."""
        content = cls()
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        try:
            size = os.fstat(descriptor).st_size
            for start, end in _parts_with_data(descriptor, size):
                for offset in range(start, end, _AT_ONCE):
                    content.write(offset, os.pread(descriptor, min(end - offset, _AT_ONCE), offset))
        finally:
            os.close(descriptor)
        content.resize(size)
        return content

    def copy(self) -> Content:
        """Return the same content, to be changed on its own."""
        copied = Content()
        copied.size, copied._blocks, copied._digest = self.size, self._blocks.copy(), self._digest
        copied.changed = self.changed
        return copied

    def pages(self) -> list[int]:
        """Return the numbers of the pages that are no holes."""
        return sorted(self._blocks)

    def write(self, offset: int, data: bytes) -> None:
        """Put bytes at an offset. A gap before them is a hole."""
        if not data:
            return
        self._digest = None
        position, blocks = 0, self._blocks
        while position < len(data):
            index, start = divmod(offset + position, BLOCK)
            piece = data[position : position + BLOCK - start]
            position += len(piece)
            if len(piece) < BLOCK and (old := blocks.get(index)):
                piece = old.data[:start].ljust(start, b"\0") + piece + old.data[start + len(piece) :]
            elif start:
                piece = bytes(start) + piece
            blocks[index] = _Block(piece)
        self.size = max(self.size, offset + len(data))

    def resize(self, size: int) -> None:
        """Cut the file, or let it grow by a hole."""
        if size < self.size:
            last, kept = divmod(size, BLOCK)
            for index in [index for index in self._blocks if index >= last]:
                block = self._blocks.pop(index)
                if index == last and kept:
                    self._blocks[index] = _Block(block.data[:kept])
        self.size, self._digest = size, None

    def digest(self) -> bytes:
        """Return what is the same for equal bytes and, as far as anybody knows, for no others."""
        if self._digest is None:
            digest = blake2b(self.size.to_bytes(8, "big"), digest_size=16)
            for index in sorted(self._blocks):
                if block := self._blocks[index].digest():
                    digest.update(index.to_bytes(8, "big") + block)
            self._digest = digest.digest()
        return self._digest

    def data(self) -> bytes:
        """Return all bytes, zeros for holes."""
        data = bytearray(self.size)
        for index, block in self._blocks.items():
            data[index * BLOCK : index * BLOCK + len(block.data)] = block.data
        return bytes(data)

    def first_difference(self, other: Content) -> int | None:
        """Return the offset of the first byte that differs, the smaller size if one ends there, None if they equal."""
        for index in sorted(self._blocks.keys() | other._blocks.keys()):
            mine, theirs = (blocks[index].data if index in blocks else b"" for blocks in (self._blocks, other._blocks))
            if mine == theirs:
                continue
            mine, theirs = mine.ljust(BLOCK, b"\0"), theirs.ljust(BLOCK, b"\0")
            if mine != theirs:
                return index * BLOCK + next(at for at in range(BLOCK) if mine[at] != theirs[at])
        return None if self.size == other.size else min(self.size, other.size)

    def write_to(self, path: str) -> None:
        """Make a new real file of this content, with its holes. FileExistsError if there is one."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            for offset, data in self._runs():
                written = 0
                while written < len(data):
                    written += os.pwrite(descriptor, memoryview(data)[written:], offset + written)
            if self.size and self.size != os.fstat(descriptor).st_size:
                os.ftruncate(descriptor, self.size)
        finally:
            os.close(descriptor)

    def _runs(self) -> Iterator[tuple[int, bytes]]:
        """Give the parts that are not holes, each as long as it can be."""
        run: list[bytes] = []
        first = following = 0
        for index in sorted(self._blocks):
            if run and index != following:
                yield first * BLOCK, b"".join(run)
                run = []
            if run:
                run[-1] = run[-1].ljust(BLOCK, b"\0")
            else:
                first = index
            run.append(self._blocks[index].data)
            following = index + 1
        if run:
            yield first * BLOCK, b"".join(run)


def _parts_with_data(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Give the parts of a real file that are not holes, as far as the file system tells."""
    if not hasattr(os, "SEEK_DATA"):
        yield 0, size
        return
    end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError:  # ENXIO: a hole up to the end
            return
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, min(end, size)
