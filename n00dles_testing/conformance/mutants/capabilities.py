"""A store that offers everything, and stores that claim what they do not do, one for each probe.

They keep the clauses; it is their claims that are false. `lies_about` names the capability.
"""

from __future__ import annotations

import fcntl
import json
import time
import uuid
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

from .correct import AppendOnlyLog, JSONFiles, NotStoredError, merged, new_record, record_of

__all__ = [
    "ClaimsDurability",
    "ClaimsSharing",
    "LeasesNeverExpire",
    "LeasesToAnybody",
    "ListsWhatIsGone",
    "LoadCreates",
    "LoadIsNotImplemented",
    "LocksOthersOut",
    "ManagedFiles",
    "PrunesByAge",
    "PrunesWhatIsYoung",
]


@dataclass(frozen=True)
class _Run:
    run_id: str


class HeldError(Exception):
    """Another holder has the lease."""


class ManagedFiles(JSONFiles):
    """One file a run, with each capability, and the claim of each."""

    claims: ClassVar[dict[str, Any]] = {
        "capabilities": ["durable", "shared", "load", "list_runs", "prune", "leases"],
    }
    lies_about: ClassVar[str | None] = None

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.held: dict[str, tuple[str, float]] = {}

    def save(self, run_id: str, context: Any) -> None:
        """Replace the run's file, with its status and the time."""
        with self.lock:
            stored = self.read(run_id)
            if stored is None:
                raise NotStoredError(run_id)
            also = {"status": getattr(context, "status", "running"), "updated_at": time.time()}
            self.write(run_id, {**merged(stored, record_of(context)), **also})

    def load(self, run_id: str) -> Any:
        """Read the run's file."""
        with self.lock:
            return self.read(run_id)

    def list_runs(self, *, status: str | None = None, limit: int | None = None) -> list[Any]:
        """Read each file."""
        with self.lock:
            records = [json.loads(path.read_text()) for path in self.folder.glob("*.json")]
        return [_Run(each["run_id"]) for each in records if status in (None, each.get("status"))][:limit]

    def prune(self, *, older_than: float) -> list[str]:
        """Remove the files of finished runs that are older."""
        with self.lock:
            records = [json.loads(path.read_text()) for path in self.folder.glob("*.json")]
            old = [record["run_id"] for record in records if self.is_old(record, older_than)]
            for run_id in old:
                self.delete(run_id)
            return old

    def is_old(self, record: dict[str, Any], older_than: float) -> bool:
        """Whether a run is to be pruned."""
        is_finished = record.get("status") == "finished"
        return is_finished and bool(record["updated_at"] < time.time() - older_than)

    def acquire(self, run_id: str, holder: str, ttl: float) -> Any:
        """Give a lease, if nobody holds one that has not expired."""
        with self.lock:
            if run_id in self.held and time.monotonic() < self.held[run_id][1]:
                raise HeldError(f"{run_id} is held")
            lease = (run_id, f"{holder}-{uuid.uuid4().hex}")
            self.held[run_id] = lease[1], time.monotonic() + ttl
            return lease

    def renew(self, lease: Any, ttl: float) -> Any:
        """Let it last longer, if it is still the one."""
        with self.lock:
            if self.held.get(lease[0], ("",))[0] != lease[1]:
                raise HeldError(f"{lease[0]} is held by another")
            self.held[lease[0]] = lease[1], time.monotonic() + ttl
            return lease

    def release(self, lease: Any) -> None:
        """Free the run, if it is still the one."""
        with self.lock:
            if self.held.get(lease[0], ("",))[0] == lease[1]:
                del self.held[lease[0]]


class ClaimsDurability:
    """Keeps its runs in a dictionary, behind a claim that was written for the next release."""

    claims: ClassVar[dict[str, Any]] = {"level": 2, "capabilities": ["durable"]}
    lies_about: ClassVar[str | None] = "durable"

    def __init__(self, folder: str) -> None:
        self.runs: dict[str, Any] = {}

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Return a copy of the run, or keep a new one."""
        return deepcopy(self.runs.setdefault(run_id, new_record(run_id, inputs)))

    def save(self, run_id: str, context: Any) -> None:
        """Keep the run."""
        if run_id not in self.runs:
            raise NotStoredError(run_id)
        self.runs[run_id] = merged(self.runs[run_id], record_of(context))

    def delete(self, run_id: str) -> None:
        """Forget the run."""
        self.runs.pop(run_id, None)


class ClaimsSharing(AppendOnlyLog):
    """Reads its log when it is opened, and never again: what another process appends meanwhile, it does not see."""

    claims: ClassVar[dict[str, Any]] = {"capabilities": ["durable", "shared"]}
    lies_about: ClassVar[str | None] = "shared"


class LocksOthersOut(JSONFiles):
    """Keeps its folder locked while it is open: a second worker is refused, however long it waits."""

    claims: ClassVar[dict[str, Any]] = {"capabilities": ["durable", "shared"]}
    lies_about: ClassVar[str | None] = "shared"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.held_open = (self.folder / "owner").open("w")
        try:
            fcntl.flock(self.held_open, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.held_open.close()
            raise

    def close(self) -> None:
        """Let others in."""
        self.held_open.close()


class LoadCreates(ManagedFiles):
    """Reads through `load_or_create`, which leaves an empty run behind for every id that is asked for."""

    lies_about: ClassVar[str | None] = "load"

    def load(self, run_id: str) -> Any:
        """Look for the run."""
        found = self.load_or_create(run_id, {})
        return found if found["inputs"] else None


class LoadIsNotImplemented(ManagedFiles):
    """Overrides what its base class declares, and only raises (the kind of langchain-ai/langgraph #8722)."""

    lies_about: ClassVar[str | None] = "load"

    def load(self, run_id: str) -> Any:
        """Not yet."""
        raise NotImplementedError


class ListsWhatIsGone(ManagedFiles):
    """Keeps an index of its runs, from which a delete takes nothing away."""

    lies_about: ClassVar[str | None] = "list_runs"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.index: dict[str, None] = {}

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Note the run."""
        self.index[run_id] = None
        return super().load_or_create(run_id, inputs)

    def list_runs(self, *, status: str | None = None, limit: int | None = None) -> list[Any]:
        """Read the index."""
        return [_Run(run_id) for run_id in self.index][:limit]


class PrunesByAge(ManagedFiles):
    """Forgets whatever is old, also the run that waits for a person to approve it."""

    lies_about: ClassVar[str | None] = "prune"

    def is_old(self, record: dict[str, Any], older_than: float) -> bool:
        """Look at the time alone."""
        return bool(record.get("updated_at", 0) < time.time() - older_than)


class PrunesWhatIsYoung(ManagedFiles):
    """Takes the seconds for milliseconds."""

    lies_about: ClassVar[str | None] = "prune"

    def is_old(self, record: dict[str, Any], older_than: float) -> bool:
        """Divide by a thousand once too often."""
        return super().is_old(record, older_than / 1e9)


class LeasesToAnybody(ManagedFiles):
    """Notes who holds a run, and asks nobody."""

    lies_about: ClassVar[str | None] = "leases"

    def acquire(self, run_id: str, holder: str, ttl: float) -> Any:
        """Take it."""
        self.held.pop(run_id, None)
        return super().acquire(run_id, holder, ttl)


class LeasesNeverExpire(ManagedFiles):
    """Forgets the time: a run whose worker has died is held for ever."""

    lies_about: ClassVar[str | None] = "leases"

    def acquire(self, run_id: str, holder: str, ttl: float) -> Any:
        """Take it for good."""
        return super().acquire(run_id, holder, float("inf"))
