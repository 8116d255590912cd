"""What may be done to a call of a traced program."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Fail", "Injection", "Kill", "Short"]


@dataclass(frozen=True, slots=True)
class Fail:
    """The call does nothing, and returns the error, such as `errno.ENOSPC`.

    With `after_writing` a write to a file does its work first, without moving the descriptor. So fails the sync of one
    with O_DSYNC, O_SYNC or RWF_DSYNC: the bytes are in the page cache, and the error is all that is told of them
    (`generic_write_sync` and `ksys_write` of the kernel). For other calls it makes no difference.
    """

    errno: int
    after_writing: bool = False


@dataclass(frozen=True, slots=True)
class Short:
    """A write writes only its first `length` bytes, and says so; nothing happens if it wants to write no more anyway.

    Of a write that is made of parts (`writev`) it is at most the first part that has bytes.
    """

    length: int


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL for the process that calls, with all its threads, before the call does anything."""


Injection = Fail | Short | Kill
