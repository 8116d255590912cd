"""From the URL of a store to the store."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ..errors import ConfigurationError
from .adapt import as_store
from .base import StateStore
from .memory import InMemoryStateStore
from .sqlite import SQLiteStateStore

__all__ = ["DEFAULT_URL", "open_store"]

DEFAULT_URL = "sqlite:///n00dles_state.db"

ENTRY_POINT_GROUP = "n00dles.state_stores"


def open_store(target: Any) -> StateStore:
    """Return the store that `target` names: a URL, a store, or anything with a store's three methods.

    `sqlite:///runs.db` is a path relative to the working folder, `sqlite:////var/lib/runs.db` an absolute one;
    `memory://` forgets everything with the process, `postgresql://user@host/database?schema=n00dles` is shared by many
    hosts. Other packages register a scheme by an entry point of the group
    `n00dles.state_stores` whose object takes the URL and returns a store. Raises `ConfigurationError`.
    """
    if not isinstance(target, str):
        return as_store(target)
    scheme, separator, rest = target.partition("://")
    if not separator:
        shown = "that" if "@" in target or "password" in target else repr(target)
        raise ConfigurationError(f"{shown} is no URL of a store; write it as in {DEFAULT_URL!r}.")
    if scheme in _BUILT_IN:
        return _BUILT_IN[scheme](rest)
    registered = _registered()
    if scheme not in registered:
        known = sorted({*_BUILT_IN, *registered})
        close = difflib.get_close_matches(scheme, known, 1)
        hint = f" Did you mean {close[0]}://?" if close else ""
        raise ConfigurationError(
            f"no store is known for {scheme}://; known are "
            f"{', '.join(f'{name}://' for name in known)}.{hint} A package registers one by an entry point of the "
            f"group {ENTRY_POINT_GROUP!r}."
        )
    return as_store(_load(registered[scheme])(target))


def _open_sqlite(rest: str) -> StateStore:
    path = rest.removeprefix("/")
    if rest and not rest.startswith("/") and "@" in rest:
        raise ConfigurationError("that is no URL of a SQLite database; write sqlite:///runs.db, without user and host.")
    if path == ":memory:":
        raise ConfigurationError("a SQLite database in memory cannot be resumed from; use memory:// for tests.")
    if rest and not rest.startswith("/"):
        raise ConfigurationError(
            f"'sqlite://{rest}' names a host; write sqlite:///{rest} for a path relative to the working folder, or "
            f"sqlite:////{rest} for an absolute one."
        )
    return SQLiteStateStore(os.path.expanduser(path) or DEFAULT_URL.rpartition("/")[2])


def _open_memory(rest: str) -> StateStore:
    if rest:
        raise ConfigurationError("memory:// takes nothing behind it.")
    return InMemoryStateStore()


def _open_postgres(rest: str) -> StateStore:
    from .postgres import PostgresStateStore

    return PostgresStateStore(f"postgresql://{rest}")


def _open_redis(scheme: str) -> Callable[[str], StateStore]:
    def open_it(rest: str) -> StateStore:
        from .redis import RedisStateStore

        return RedisStateStore(f"{scheme}://{rest}")

    return open_it


_BUILT_IN: dict[str, Callable[[str], StateStore]] = {
    "sqlite": _open_sqlite,
    "memory": _open_memory,
    "postgresql": _open_postgres,
    "postgres": _open_postgres,
    **{scheme: _open_redis(scheme) for scheme in ("redis", "rediss", "unix")},
}


def _registered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}


def _load(entry: EntryPoint) -> Callable[[str], Any]:
    try:
        opener: Callable[[str], Any] = entry.load()
    except Exception as error:
        raise ConfigurationError(
            f"the store of {entry.name}:// ({entry.value}) cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return opener
