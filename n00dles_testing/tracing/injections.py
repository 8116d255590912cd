"""What may be done to a call of a traced program."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Fail", "Injection", "Kill", "Short"]


@dataclass(frozen=True, slots=True)
class Fail:
    """The call does nothing, and returns the error, such as `errno.ENOSPC`."""

    errno: int


@dataclass(frozen=True, slots=True)
class Short:
    """A write writes only its first `length` bytes, and says so. It must want to write more than that."""

    length: int


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL for the process that calls, with all its threads, before the call does anything."""


Injection = Fail | Short | Kill
