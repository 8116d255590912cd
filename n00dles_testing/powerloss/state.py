"""One thing that a disk may hold after a power loss, and what was lost on the way to it."""

from __future__ import annotations

from dataclasses import dataclass

from n00dles_testing.powerloss.operations import Operation
from n00dles_testing.powerloss.tree import Tree

__all__ = ["Lost", "State"]


@dataclass(frozen=True, slots=True)
class Lost:
    """An operation that did not reach the disk, or not whole.

    `path` is the name of its file below the watched folder, as in the state if it is there, else as it was then.
    `ranges` are the bytes that are missing, as (from, to); empty if it is not a write. `whole` says that nothing of the
    operation is left. `zeros` says that the file has grown and the missing bytes read as zeros. `during` is the token
    of the call of the store that made it ("INV token"), None between calls. `words` say all of it to a person: "the
    data of `runs.db-wal` from byte 4128 (4096 bytes)".
    """

    operation: Operation
    path: str
    words: str
    ranges: tuple[tuple[int, int], ...] = ()
    whole: bool = True
    zeros: bool = False
    during: str | None = None


@dataclass(frozen=True, slots=True)
class State:
    """The files after the power has failed, and what the program had been told by then.

    `acknowledged` and `invoked` are the tokens of the marks "ACK token" and "INV token" before the crash, in their
    order. `position` is the crash's place in the order of the operations: what entered before it may have happened, and
    only a sync that exited before it has forced anything. `lost` is what had happened and is not in the tree.
    """

    tree: Tree
    acknowledged: tuple[str, ...]
    invoked: tuple[str, ...]
    lost: tuple[Lost, ...]
    position: int
