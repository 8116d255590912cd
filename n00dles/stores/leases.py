"""Who may carry a run on: one worker at a time, for as long as it renews its lease.

A lease keeps a second worker from starting at all, so that nothing is called, and paid for, twice. It is a courtesy
between the living: what keeps a record whole is the revision, which refuses whoever was overtaken, whatever any clock
says (see `fencing`).
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol, TypeGuard, runtime_checkable

from ..errors import RunLockedError

__all__ = [
    "Lease",
    "LeaseTable",
    "Leases",
    "ListsLeases",
    "has_leases",
    "lost_error",
    "new_lease",
    "renewed",
    "run_locked_error",
]


@dataclass(frozen=True, slots=True)
class Lease:
    """One worker's right to carry a run on, until `expires_at` unless it is renewed.

    Times are seconds since the epoch, to be shown to people; whether a lease has expired is for its store to say, by
    the store's own clock. `token` tells this lease from every other, also from one of the same holder.
    """

    run_id: str
    holder: str
    token: str
    since: float
    expires_at: float


@runtime_checkable
class Leases(Protocol):
    """The capability to let one worker at a time carry a run on. A store without it is fenced by the revision only.

    A lease says nothing about the record: it can be had for a run that is not stored yet, and saves do not ask for it.
    It need not survive the store's machine, since no holder does.
    """

    async def acquire(self, run_id: str, holder: str, ttl: float) -> Lease:
        """Return a lease of `ttl` seconds for `holder`, which is a text that names the worker to a person.

        Raises `RunLockedError`, at once, if another lease of the run has neither been released nor expired, nor is its
        holder known to be dead. A cancelled call leaves no lease.
        """
        ...

    async def renew(self, lease: Lease, ttl: float) -> Lease:
        """Return the lease, to last `ttl` seconds from now.

        One that has expired is renewed as long as nobody has acquired the run since. Raises `RunLockedError` if
        somebody has, or if the run was deleted.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Free the run, if the lease still holds it; may be called twice, and never frees another's lease."""
        ...


@runtime_checkable
class ListsLeases(Protocol):
    """The capability to say who holds runs."""

    async def list_leases(self, run_ids: Collection[str]) -> list[Lease]:
        """Return the leases that are held now of any of these runs."""
        ...


def has_leases(store: object) -> TypeGuard[Leases]:
    """Whether a store has the capability `Leases`, as `isinstance` would say, which takes as long as all the rest."""
    return all(callable(getattr(store, name, None)) for name in ("acquire", "renew", "release"))


def new_lease(run_id: str, holder: str, ttl: float) -> Lease:
    """Return a lease that begins now, with a token of its own."""
    now = time.time()
    return Lease(run_id, holder, secrets.token_hex(8), now, now + ttl)


def renewed(lease: Lease, ttl: float) -> Lease:
    """Return the same lease, to last `ttl` seconds from now."""
    return replace(lease, expires_at=time.time() + ttl)


def run_locked_error(lease: Lease, whose: str = "") -> RunLockedError:
    """Return the error for a worker that comes second; `lease` is the one that is in its way."""
    return RunLockedError(
        f"run {lease.run_id!r} is held by {lease.holder}{whose}, since {_clock(lease.since)} and until "
        f"{_clock(lease.expires_at)} unless the lease is renewed. Nothing was called or changed. Wait for it to end "
        "(wait=60 waits up to a minute), or end that process: the run is then free, at once or when its lease expires.",
        run_id=lease.run_id,
        holder=lease.holder,
    )


def lost_error(lease: Lease, successor: Lease | None) -> RunLockedError:
    """Return the error for a worker whose lease was given to another, or went when its run was deleted."""
    if successor is not None:
        what = f"was taken over by {successor.holder} at {_clock(successor.since)}"
        why = "the lease had expired, as it does when its holder is stopped or its event loop is blocked for that long"
        kept = "kept"
    else:
        what = "is no longer held by this worker"
        why = "its lease had expired and another has held it since, or the run was deleted"
        kept = "kept, unless it was deleted"
    return RunLockedError(
        f"run {lease.run_id!r} {what}: {why}. {lease.holder} stops working on it; what it had saved is {kept}.",
        run_id=lease.run_id,
        holder=successor.holder if successor else None,
    )


class LeaseTable:
    """Leases in the memory of this process, by a clock that never steps."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, tuple[Lease, float]] = {}

    def acquire(self, run_id: str, holder: str, ttl: float) -> Lease:
        """Return a new lease. Raises `RunLockedError` if another one holds the run."""
        now = time.monotonic()
        with self._lock:
            lease, expires = self._held.get(run_id, (None, now))
            if lease is not None and now < expires:
                raise run_locked_error(lease)
            lease = new_lease(run_id, holder, ttl)
            self._held[run_id] = lease, now + ttl
            return lease

    def renew(self, lease: Lease, ttl: float) -> Lease:
        """Return the lease, to last `ttl` seconds from now. Raises `RunLockedError` if it is held no longer."""
        with self._lock:
            held, _ = self._held.get(lease.run_id, (None, 0.0))
            if held is None or held.token != lease.token:
                raise lost_error(lease, held)
            lease = renewed(lease, ttl)
            self._held[lease.run_id] = lease, time.monotonic() + ttl
            return lease

    def release(self, lease: Lease) -> None:
        """Free the run, if this lease still holds it."""
        with self._lock:
            held, _ = self._held.get(lease.run_id, (None, 0.0))
            if held is not None and held.token == lease.token:
                del self._held[lease.run_id]

    def end(self, run_id: str) -> None:
        """Free a run that was deleted, whoever holds it."""
        with self._lock:
            self._held.pop(run_id, None)

    def held(self, run_ids: Collection[str]) -> list[Lease]:
        """Return the leases that are held now of any of these runs."""
        now = time.monotonic()
        with self._lock:
            found = [self._held[run_id] for run_id in run_ids if run_id in self._held]
        return [lease for lease, expires in found if now < expires]


def _clock(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return f"{seconds:g} s of the clock"
