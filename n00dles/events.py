"""What a run reports while it goes: one typed event a step, to whoever listens.

Progress bars, traces, metrics and the crash points of `n00dles_testing` all listen here; the executor knows none of
them. An observer is a plain function of one event. It is called in the thread of the event loop, at the moment named,
and must be quick. An `Exception` that it raises is logged and does not touch the run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

__all__ = [
    "BranchRouted",
    "CheckpointFailed",
    "CheckpointSaved",
    "CheckpointSaving",
    "Event",
    "GroupJoined",
    "NodeFailed",
    "NodeRetried",
    "NodeReturned",
    "NodeStarted",
    "Observer",
    "Observers",
    "RunFailed",
    "RunFinished",
    "RunStarted",
]

_log = logging.getLogger("n00dles")


@dataclass(frozen=True, kw_only=True)
class Event:
    """What all events carry. `name` is the stable identifier of the kind."""

    name: ClassVar[str] = "event"

    run_id: str


@dataclass(frozen=True, kw_only=True)
class RunStarted(Event):
    """A life of a run begins: its record is loaded, no node has been started. `life` counts from 1.

    `store` is how the store prints itself, without passwords; `incarnation` tells the run from others of its id.
    """

    name: ClassVar[str] = "run_started"

    pipeline: str
    life: int
    completed: tuple[str, ...]
    store: str = field(default="", compare=False)
    incarnation: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class NodeStarted(Event):
    """A node is about to be called. `arguments` are what it will get.

    `attempt` counts from 1, over all lives, as far as they were saved: a call that a kill has cut short is not counted.
    """

    name: ClassVar[str] = "node_started"

    node: str
    attempt: int
    arguments: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class NodeReturned(Event):
    """A node's call has returned, and its output is not stored yet. `output` is in the form that will be stored."""

    name: ClassVar[str] = "node_returned"

    node: str
    attempt: int
    output: Any
    duration_ms: float
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, kw_only=True)
class NodeRetried(Event):
    """An attempt has failed and another follows after `delay` seconds."""

    name: ClassVar[str] = "node_retried"

    node: str
    attempt: int
    error: str
    delay: float


@dataclass(frozen=True, kw_only=True)
class NodeFailed(Event):
    """The last attempt of a node has failed. `fallback` names the agent that is tried next, if there is one."""

    name: ClassVar[str] = "node_failed"

    node: str
    attempt: int
    error: str
    fallback: str | None


@dataclass(frozen=True, kw_only=True)
class BranchRouted(Event):
    """A branch has chosen its route; the routed node has not been started."""

    name: ClassVar[str] = "branch_routed"

    branch: str
    key: Any
    route: str


@dataclass(frozen=True, kw_only=True)
class GroupJoined(Event):
    """All members of a fan-out are complete and stored; what follows has not been started."""

    name: ClassVar[str] = "group_joined"

    group: str
    members: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CheckpointSaving(Event):
    """A save is about to be handed to the store. `nodes` are the outputs that it makes durable (may be none)."""

    name: ClassVar[str] = "checkpoint_saving"

    nodes: tuple[str, ...]
    revision: int


@dataclass(frozen=True, kw_only=True)
class CheckpointSaved(Event):
    """The store has acknowledged a save."""

    name: ClassVar[str] = "checkpoint_saved"

    nodes: tuple[str, ...]
    revision: int


@dataclass(frozen=True, kw_only=True)
class CheckpointFailed(Event):
    """The store has not acknowledged a save. If the fault may pass, it is tried again; else the run fails with it."""

    name: ClassVar[str] = "checkpoint_failed"

    nodes: tuple[str, ...]
    revision: int
    error: str


@dataclass(frozen=True, kw_only=True)
class RunFinished(Event):
    """The run is complete, and all of it is stored. `calls` counts the node calls of this life."""

    name: ClassVar[str] = "run_finished"

    calls: int


@dataclass(frozen=True, kw_only=True)
class RunFailed(Event):
    """This life ends with an error; what was completed is stored, unless the store itself failed."""

    name: ClassVar[str] = "run_failed"

    node: str | None
    error: str


Observer = Callable[[Event], None]


class Observers(tuple[Observer, ...]):
    """Hands each event to all observers, in order, and keeps an observer's mistake away from the run."""

    __slots__ = ()

    def emit(self, event: Event) -> None:
        """Call every observer with `event`. Only a `BaseException` that is no `Exception` gets through."""
        for observer in self:
            try:
                observer(event)
            except Exception:
                _log.exception("an observer failed at %s of run %r; the run goes on", event.name, event.run_id)
