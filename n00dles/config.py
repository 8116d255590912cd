"""Defaults of this process, for runs that do not say otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .errors import ConfigurationError
from .events import Observer
from .stores.base import StateStore
from .stores.urls import DEFAULT_URL, open_store

__all__ = ["configure", "default_observers", "default_store", "lease_ttl"]


class _Defaults:
    store: StateStore | None = None
    observers: tuple[Observer, ...] = ()
    lease_ttl: float = 30.0


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


def default_observers() -> tuple[Observer, ...]:
    """Return the configured observers."""
    return _Defaults.observers


def lease_ttl() -> float:
    """Return the configured time that a lease lasts, in seconds."""
    return _Defaults.lease_ttl
