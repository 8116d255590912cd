"""Defaults of this process, for runs that do not say otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .errors import ConfigurationError
from .events import Observer
from .stores.base import StateStore
from .stores.urls import DEFAULT_URL, open_store

__all__ = ["configure", "default_observers", "default_store", "lease_ttl", "own_defaults", "reopen_default_store"]


class _Defaults:
    store: StateStore | None = None
    observers: tuple[Observer, ...] = ()
    lease_ttl: float = 30.0
    is_configured = False
    """Whether somebody has chosen the store. If not, it is the one in the working folder."""


def configure(
    *, state_store: Any = None, observers: Iterable[Observer] | None = None, lease_ttl: float | None = None
) -> None:
    """Set what `run` and `resume` use when they are not told otherwise; what is left out stays as it is.

    `state_store` is a URL (`"sqlite:///runs.db"`, `"memory://"`), a `StateStore`, or anything with its three methods.
    The default is `sqlite:///n00dles_state.db` in the working folder. `observers` get every event of every run.
    `lease_ttl` is for how many seconds a run stays locked after its worker was last heard of, 30 by default: a worker
    whose process has died on the store's machine frees it at once, one that hangs or is cut off does so after this
    time. Raises `ConfigurationError`.
    """
    if state_store is not None:
        _Defaults.store = open_store(state_store)
        _Defaults.is_configured = True
    if observers is not None:
        _Defaults.observers = tuple(observers)
    if lease_ttl is not None:
        if isinstance(lease_ttl, bool) or not isinstance(lease_ttl, (int, float)) or not 0 < lease_ttl < math.inf:
            raise ConfigurationError(f"lease_ttl={lease_ttl!r} is not a positive number of seconds.")
        _Defaults.lease_ttl = float(lease_ttl)


def default_store() -> StateStore:
    """Return the configured store, opening the default one at the first use."""
    if _Defaults.store is None:
        _Defaults.store = open_store(DEFAULT_URL)
    return _Defaults.store


@contextmanager
def own_defaults(*, state_store: Any) -> Iterator[None]:
    """Let a test have a default store of its own, and configure what it likes; afterwards all is as it was before."""
    before = _Defaults.store, _Defaults.observers, _Defaults.lease_ttl, _Defaults.is_configured
    configure(state_store=state_store)
    try:
        yield
    finally:
        _Defaults.store, _Defaults.observers, _Defaults.lease_ttl, _Defaults.is_configured = before


def reopen_default_store() -> StateStore | None:
    """Return the store in the working folder if it was used since the last call, and have the next use open it anew.

    None where a store was configured, or none was used: so a test runner finds the test that has left runs there.
    """
    if _Defaults.is_configured:
        return None
    used, _Defaults.store = _Defaults.store, None
    return used


def default_observers() -> tuple[Observer, ...]:
    """Return the configured observers."""
    return _Defaults.observers


def lease_ttl() -> float:
    """Return the configured time that a lease lasts, in seconds."""
    return _Defaults.lease_ttl
