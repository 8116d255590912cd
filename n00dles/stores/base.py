"""What a state store is: three methods. The rest are optional capabilities, each a protocol of its own.

A store needs neither this base class nor an import from here; `adapt.as_store` takes anything with the three methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ..context import PipelineContext
from ..errors import StateStoreError
from ..records import Status

__all__ = [
    "ById",
    "Closable",
    "ListsRuns",
    "Loads",
    "MadeAtFirstUse",
    "Prunes",
    "RunSummary",
    "StateStore",
    "TellsTime",
    "check_run_id",
]


MAX_RUN_ID_BYTES = 10_000


class ById:
    """Stands for one object, also for one that cannot be hashed or that says it is equal to others."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __hash__(self) -> int:
        return id(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and self._value is other._value


class StateStore(ABC):
    """Keeps the contexts of runs. `n00dles-testing check` tells whether one keeps them well.

    What every method owes its caller is the contract (clauses S01 to S18 for one process): a returned call is durable
    and comes back, a raised one has changed nothing.
    """

    @property
    def place(self) -> Hashable:
        """Equal for two store objects that keep the same runs; by default, for an object and itself."""
        return ById(self)

    @abstractmethod
    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        """Return the run as it was last acknowledged, or a new one with these inputs.

        A known run is returned as it is, whatever `inputs` says. Raises `CorruptCheckpointError` for a damaged record.
        """

    @abstractmethod
    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        """Make `ctx` durable, whole, before returning.

        Raises `StaleContextError` if the stored revision is not the one that `ctx` was loaded or last saved at.
        """

    @abstractmethod
    async def delete(self, run_id: str) -> None:
        """Remove the run, all of it. An unknown run is no error. A late save does not bring it back."""


@runtime_checkable
class Loads(Protocol):
    """The capability to read a run without creating it."""

    async def load(self, run_id: str) -> PipelineContext | None:
        """Return the run, or None if it is not stored."""
        ...


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of a list of runs. Times are seconds since the epoch."""

    run_id: str
    pipeline: str | None
    status: Status
    completed: int
    created_at: float
    updated_at: float


@runtime_checkable
class ListsRuns(Protocol):
    """The capability to say which runs are stored."""

    async def list_runs(self, *, status: Status | None = None, limit: int | None = None) -> list[RunSummary]:
        """Return stored runs, the last updated first."""
        ...


@runtime_checkable
class Prunes(Protocol):
    """The capability to forget old runs."""

    async def prune(self, *, older_than: float) -> list[str]:
        """Delete finished runs that were last updated more than `older_than` seconds ago; return their ids."""
        ...


@runtime_checkable
class TellsTime(Protocol):
    """The capability to say what time it is where the runs are: by that clock `prune` finds what is old."""

    async def server_time(self) -> float:
        """Return the seconds since the epoch by the clock that the times of `list_runs` are of."""
        ...


@runtime_checkable
class MadeAtFirstUse(Protocol):
    """The capability to say that a store has never been used: its first use would make it."""

    async def unmade(self) -> str | None:
        """Return which thing is not there, as the first part of a sentence; None if there is a store. Makes none."""
        ...


@runtime_checkable
class Closable(Protocol):
    """A store that holds descriptors, threads or connections."""

    async def aclose(self) -> None:
        """Let go of everything that is held. May be called twice; the store opens again when it is used again."""
        ...


def check_run_id(run_id: str) -> None:
    """Refuse what cannot be the id of a run in our stores: an empty text, or one that is no Unicode text.

    Raises `StateStoreError`. Everything else is an id as it is, compared byte for byte.
    """
    if not isinstance(run_id, str) or not run_id:
        raise StateStoreError(f"{run_id!r} is no run id; use a text of at least one character.")
    try:
        encoded = run_id.encode()
    except UnicodeEncodeError:
        raise StateStoreError(f"the run id {run_id!r} holds a lone surrogate, which is no Unicode text.") from None
    if len(encoded) > MAX_RUN_ID_BYTES:
        raise StateStoreError(f"a run id has {len(encoded)} bytes; at most {MAX_RUN_ID_BYTES} are accepted.")
