"""Each fault that a store's leases may have is seen by the test of that promise: nothing counts that cannot fail."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from n00dles import InMemoryStateStore
from n00dles.stores import Lease, leases
from tests.n00dles.stores import test_leases as promises
from tests.n00dles.stores.test_leases import Clock


class Sound(InMemoryStateStore):
    """No fault."""


class NeverExclusive(InMemoryStateStore):
    """Gives the run to whoever asks."""

    async def acquire(self, run_id: str, holder: str, ttl: float) -> Lease:
        self._leases.end(run_id)
        return await super().acquire(run_id, holder, ttl)


class NeverExpires(InMemoryStateStore):
    """Waits for a holder that hangs for ever."""

    async def acquire(self, run_id: str, holder: str, ttl: float) -> Lease:
        return await super().acquire(run_id, holder, 1e9)


class ExpiresAtOnce(InMemoryStateStore):
    """Takes no notice of the time that was asked for."""

    async def acquire(self, run_id: str, holder: str, ttl: float) -> Lease:
        return await super().acquire(run_id, holder, 0)


class RenewsWithoutEffect(InMemoryStateStore):
    """Says that the lease is renewed."""

    async def renew(self, lease: Lease, ttl: float) -> Lease:
        await super().renew(lease, ttl - 15)
        return leases.renewed(lease, ttl)


class RenewsForAnybody(InMemoryStateStore):
    """Tells nobody that he was overtaken."""

    async def renew(self, lease: Lease, ttl: float) -> Lease:
        return leases.renewed(lease, ttl)


class ReleasesForAnybody(InMemoryStateStore):
    """Lets a late release free the run of the successor."""

    async def release(self, lease: Lease) -> None:
        self._leases.end(lease.run_id)


class NeverReleases(InMemoryStateStore):
    """Lets a lease expire, and not end."""

    async def release(self, lease: Lease) -> None: ...


class OneForAll(InMemoryStateStore):
    """Has one lease for the whole store."""

    async def acquire(self, run_id: str, holder: str, ttl: float) -> Lease:
        return await super().acquire(run_id.lower(), holder, ttl)


class SurvivesDeletion(InMemoryStateStore):
    """Keeps the lease of a run that was deleted."""

    async def delete(self, run_id: str) -> None:
        self._records.pop(run_id, None)


class GoesByTheWall(InMemoryStateStore):
    """Judges expiry by a clock that steps."""

    async def acquire(self, run_id: str, holder: str, ttl: float) -> Lease:
        held, _ = self._leases._held.get(run_id, (None, 0.0))
        if held is not None and vars(leases)["time"].time() >= held.expires_at:
            self._leases.end(run_id)
        return await super().acquire(run_id, holder, ttl)


def failing(store: Callable[[], Any], clock: Clock) -> set[str]:
    """Return which promises a store breaks."""
    return {name for name, promise in _promises() if not _holds(promise, store, clock)}


def _promises() -> list[tuple[str, Callable[..., None]]]:
    return [
        (name, promise)
        for name, promise in vars(promises).items()
        if name.startswith("test_") and "make_store" in inspect.signature(promise).parameters
    ]


def _holds(promise: Callable[..., None], store: Callable[[], Any], clock: Clock) -> bool:
    given = {"make_store": store, "clock": clock, "step": promises.HOUR, "run_id": "r", "holder": "A"}
    wanted = inspect.signature(promise).parameters
    try:
        promise(**{name: value for name, value in given.items() if name in wanted})
    except (AssertionError, pytest.fail.Exception, Exception):
        return False
    return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(leases, "time", clock)
    return clock


def test_a_sound_store_breaks_no_promise(clock: Clock) -> None:
    assert failing(Sound, clock) == set()
    assert len(_promises()) >= 10


@pytest.mark.parametrize(
    ("mutant", "promise"),
    [
        (NeverExclusive, "test_a_run_that_is_held_is_refused_to_others_and_another_run_is_not"),
        (NeverExpires, "test_an_expired_run_is_taken_over_and_its_first_holder_is_told"),
        (ExpiresAtOnce, "test_a_run_that_is_held_is_refused_to_others_and_another_run_is_not"),
        (RenewsWithoutEffect, "test_a_lease_that_is_renewed_lasts_from_then_on"),
        (RenewsForAnybody, "test_a_lease_that_another_has_had_meanwhile_cannot_be_renewed"),
        (ReleasesForAnybody, "test_an_expired_run_is_taken_over_and_its_first_holder_is_told"),
        (NeverReleases, "test_a_released_run_is_free_and_may_be_released_again"),
        (OneForAll, "test_a_run_that_is_held_is_refused_to_others_and_another_run_is_not"),
        (SurvivesDeletion, "test_a_deleted_run_is_free_and_its_holder_is_told"),
        (GoesByTheWall, "test_a_step_of_the_wall_clock_gives_no_second_holder_and_keeps_none_out"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_fault_is_seen_by_the_test_of_that_promise(mutant: Callable[[], Any], promise: str, clock: Clock) -> None:
    assert promise in failing(mutant, clock)
