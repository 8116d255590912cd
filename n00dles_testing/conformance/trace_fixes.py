"""What to do about a fault that a kill, or a failing system call, has shown: the last line of its story."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .expect import BrokenClause

__all__ = ["AGREE", "GO_ON", "IN_ONE_STEP", "RAISE", "fixed_by"]

RAISE = (
    "let the error of each open, write, sync, close and rename reach the caller; a write that returns less than it was "
    "given is not done yet: write the rest"
)
AGREE = (
    "change the memory after the file, not before it; when the call raises, forget what is in memory, so that the next "
    "one reads the file"
)
IN_ONE_STEP = (
    "write the whole record aside, sync it, and let one rename, or one transaction, put it in the old one's place"
)
GO_ON = (
    "undo what was begun also when the call raises: roll back, give up locks, close files, and remove, or write over, "
    "what was written aside"
)


@contextmanager
def fixed_by(text: str) -> Iterator[None]:
    """Add to what breaks in this block what to do about it."""
    try:
        yield
    except BrokenClause as broken:
        raise BrokenClause(broken.message, (*broken.details, ("fix", text)), broken.picture) from broken.__cause__
