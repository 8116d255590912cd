"""Giving a worker something to do: a run that waits to be started, or one that was interrupted, leased in one step."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ..errors import ConfigurationError, RunLockedError
from ..records import Status
from .base import ListsRuns, Loads, StateStore
from .leases import Lease, Leases, ListsLeases, has_leases

__all__ = ["OPEN", "Candidate", "Claim", "Claims", "check_claimable", "claim_runs", "lease_candidates"]

OPEN: tuple[Status, ...] = ("waiting", "running")
"""The statuses of runs that are to be worked on; one that nobody holds may be claimed."""

_ASKED_AT_ONCE = 64

Candidate = tuple[str, str]
"""A run id, and the name of its pipeline."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that is to be worked on, the name of its pipeline, and this worker's lease of it."""

    run_id: str
    pipeline: str
    lease: Any


@runtime_checkable
class Claims(Protocol):
    """The capability to find runs that nobody works on and to lease them, in one step.

    A store with `Leases`, `ListsRuns` and `Loads` need not have it; `claim_runs` then does the same in several calls.
    """

    async def claim(
        self, pipelines: Collection[str], holder: str, ttl: float, *, limit: int = 1, skip: Collection[str] = ()
    ) -> list[Claim]:
        """Return at most `limit` runs, each with a lease of `ttl` seconds for `holder`, as `acquire` would give.

        Claimed are runs of these pipelines (by name) of status "waiting" or "running" that no lease holds, or none
        that has not expired, or one whose holder is known to be dead; and none of `skip`. Those that were last updated
        longest ago come first, so that none starves. No two callers get one run, and a caller never waits for
        another. The record itself is not changed: `lives` counts the start. A claimed run is of that status at a
        moment at which the lease is held, so that one which another worker has just finished is not handed out.

        Returns [] at once if there is nothing. A call that raises, or is cancelled, leaves no lease.
        """
        ...


def check_claimable(store: StateStore) -> None:
    """Raise `ConfigurationError` if workers cannot share this store: nobody would ever start what is submitted."""
    lacking = [] if has_leases(store) else ["acquire(), renew() and release()"]
    if not isinstance(store, Claims) and not (isinstance(store, ListsRuns) and isinstance(store, Loads)):
        lacking.append("claim(), or list_runs() and load()")
    elif not isinstance(store, Loads):
        lacking.append("load()")
    if lacking:
        raise ConfigurationError(
            f"workers cannot share the runs of {store!r}: it has no {'; and no '.join(lacking)}. Use a store that has, "
            "such as sqlite:///runs.db."
        )


async def claim_runs(
    store: StateStore, pipelines: Collection[str], holder: str, ttl: float, *, limit: int, skip: Collection[str]
) -> list[Claim]:
    """Return what `Claims.claim` would, also from a store that only lists and leases its runs."""
    if isinstance(store, Claims):
        return await store.claim(pipelines, holder, ttl, limit=limit, skip=skip)
    assert isinstance(store, ListsRuns)  # noqa: S101 - check_claimable
    listed = sorted(await store.list_runs(), key=lambda run: run.updated_at)
    candidates = [
        (run.run_id, run.pipeline)
        for run in listed
        if run.status in OPEN and run.pipeline in pipelines and run.pipeline is not None and run.run_id not in skip
    ]

    async def is_open(run_id: str) -> bool:
        context = await store.load(run_id) if isinstance(store, Loads) else None
        return context is not None and context.status in OPEN

    return await lease_candidates(store, candidates, is_open, holder=holder, ttl=ttl, limit=limit)


async def lease_candidates(
    store: Any,
    candidates: Sequence[Candidate],
    is_open: Callable[[str], Awaitable[bool]],
    *,
    holder: str,
    ttl: float,
    limit: int,
) -> list[Claim]:
    """Lease the first `limit` of these runs that nobody holds and that still are to be worked on.

    `is_open` is asked while the lease is held: since the run was listed, another worker may have finished it.
    """
    async with _all_or_none(store) as claims:
        for start in range(0, len(candidates), _ASKED_AT_ONCE):
            some = candidates[start : start + _ASKED_AT_ONCE]
            held = await _held(store, [run_id for run_id, _ in some])
            for run_id, pipeline in some:
                if len(claims) >= limit:
                    return claims
                if run_id in held:
                    continue
                try:
                    lease = await store.acquire(run_id, holder, ttl)
                except RunLockedError:
                    continue
                claims.append(Claim(run_id, pipeline, lease))
                if not await is_open(run_id):
                    await store.release(lease)
                    claims.pop()
        return claims


async def _held(store: Any, run_ids: list[str]) -> set[str]:
    """Return which of these runs are known to be held, so that not every one has to be tried."""
    leases: list[Lease] = await store.list_leases(run_ids) if isinstance(store, ListsLeases) else []
    return {lease.run_id for lease in leases}


@asynccontextmanager
async def _all_or_none(store: Leases) -> AsyncIterator[list[Claim]]:
    claims: list[Claim] = []
    try:
        yield claims
    except BaseException:
        for claim in claims:
            await store.release(claim.lease)
        raise
