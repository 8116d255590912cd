"""Defaults of this process, for runs that do not say otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .events import Observer
from .stores.base import StateStore
from .stores.urls import DEFAULT_URL, open_store

__all__ = ["configure", "default_observers", "default_store"]


class _Defaults:
    store: StateStore | None = None
    observers: tuple[Observer, ...] = ()


def configure(*, state_store: Any = None, observers: Iterable[Observer] | None = None) -> None:
    """Set what `run` and `resume` use when they are not told otherwise; what is left out stays as it is.

    `state_store` is a URL (`"sqlite:///runs.db"`, `"memory://"`), a `StateStore`, or anything with its three methods.
    The default is `sqlite:///n00dles_state.db` in the working folder. `observers` get every event of every run.
    Raises `ConfigurationError`.
    """
    if state_store is not None:
        _Defaults.store = open_store(state_store)
    if observers is not None:
        _Defaults.observers = tuple(observers)


def default_store() -> StateStore:
    """Return the configured store, opening the default one at the first use."""
    if _Defaults.store is None:
        _Defaults.store = open_store(DEFAULT_URL)
    return _Defaults.store


def default_observers() -> tuple[Observer, ...]:
    """Return the configured observers."""
    return _Defaults.observers
