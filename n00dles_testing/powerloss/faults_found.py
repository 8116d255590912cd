"""What can be wrong with a store that is opened on what the disk held after a power loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Fault", "FaultKind"]


class FaultKind(StrEnum):
    """The kinds of faults, the worst first. The value is how it is printed."""

    CORRUPT = "CORRUPT"
    """It does not open or load: an unexpected exception, a crash, unreadable data."""

    LOST_ACK = "LOST_ACK"
    """A save that was acknowledged is not there: what is loaded is older, or nothing."""

    PHANTOM = "PHANTOM"
    """What is loaded was never saved."""

    MIXED = "MIXED"
    """What is loaded is put together from several saves."""

    UNSTABLE = "UNSTABLE"
    """Loading twice, or after closing and opening again, gives two things."""

    RECOVERY = "RECOVERY"
    """A second power loss, while it recovers from the first, leaves what does not open, load or go on."""

    LOST_IN_RECOVERY = "LOST_IN_RECOVERY"
    """Such a second power loss takes what was acknowledged before the first, or leaves what was never saved."""

    WEDGED = "WEDGED"
    """It loads, but the next save or load does not work: a lock or temporary file is in the way. Or it hangs."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a judge found wrong with one state: `message` is one sentence, `details` more lines, such as a traceback.

    `hung` says that it took all the time that a call may take, so that another look would take as long.

    After a second power loss `fix` says what to do, and `cause` which kinds of operations were lost, by what was lost
    in that one. `smaller` looks, for so many seconds, for the same fault with less lost in it. `besides` are faults of
    other kinds that other second power losses show, after the same first one.
    """

    kind: FaultKind
    message: str
    details: tuple[str, ...] = ()
    hung: bool = False
    fix: str = ""
    cause: frozenset[str] = frozenset()
    smaller: Callable[[float], Fault] | None = field(default=None, compare=False, repr=False)
    besides: tuple[Fault, ...] = field(default=(), compare=False, repr=False)

    def all(self) -> tuple[Fault, ...]:
        """Return it with those besides it."""
        return self, *self.besides
