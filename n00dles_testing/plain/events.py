"""What is reported of a home-made loop beside its calls: it does not say itself when it saves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from n00dles.events import Event

__all__ = ["CheckpointWriting", "KnownStored"]


@dataclass(frozen=True, kw_only=True)
class CheckpointWriting(Event):
    """A file of the loop has been emptied to be written anew, or is about to be put in the place of another.

    `node` is the function that was the last to return, of those that run side by side the one of this thread or task;
    empty if none has.
    """

    name: ClassVar[str] = "checkpoint_writing"

    node: str


@dataclass(frozen=True, kw_only=True)
class KnownStored(Event):
    """The outputs of `nodes` are stored by now, or else the loop is at fault; `why` says how that is known.

    `presumed` means that nobody has looked: a function that needs them was started.
    """

    name: ClassVar[str] = "known_stored"

    nodes: tuple[str, ...]
    why: str
    presumed: bool
